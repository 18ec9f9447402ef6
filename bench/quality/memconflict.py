"""Whether changes, contradictions and conditions come back as such: MemConflict, told as facts. No LLM.

    python -m bench.quality.memconflict step4_1.jsonl [--strategies NAME]... [--scrambled] [--json OUT]

The sessions of each persona are told in order, each as one turn and as facts whose source it is. Right after
a session its questions are asked by `Memory.search(view="facts")` and `memory.facts.find`, with no other
knowledge than the question's text. No judge: what is returned is held against the annotations.

SEH@3   1 if the first fact returned that has the right value and the right session as a source is among the
        first three; of facts that are shown together as one piece of evidence, the rank is that of the piece.
SRS@3   1 / log2(rank + 1) of that fact, 0 beyond the third.
UOCS    dynamic questions. In what is returned, put in the order of time, the old value stands before the new
        one, the old one until the session's day and the new one since. A value that ended is shown until that
        day and nothing that holds after it; one that began where there was none is shown since that day, and
        before it only what has ended; one that stayed is shown without an end, and nothing else of its slot
        since that day.
CRS     static questions: the first statement and the one that contradicts it are returned as one
        contradiction, and it is the first one that holds. Conditional questions: the first fact returned of
        the relation is the item of the condition asked for, and `find` returns every rule told so far, each
        under its own condition.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import hmem_core as hmem
from bench.quality import memconflict_data
from bench.quality.memconflict_data import Fact, Persona, Question, Session
from bench.quality.tables import markdown
from bench.quality.vector_cache import CachedEncoder
from hmem_core.embedding.base import Encoder
from hmem_core.embedding.registry import resolve
from hmem_core.errors import HmemError
from hmem_core.options import FactOptions, ReadingOptions
from hmem_core.records import Evidence, Rewrite

STRATEGIES = {
    "full": FactOptions(),
    "path": FactOptions(cascade="path"),
    "full, no localisation": FactOptions(localisation=False),
    "relation-level": FactOptions(strategy="relation-level"),
    "append-only": FactOptions(strategy="append-only"),
}
TYPES = ("all", "dynamic", "static", "conditional")
FIGURES = ("SEH@3", "SRS@3", "UOCS", "CRS")
CUT = 3
SHOWN = 8
"""Facts that a search returns at most: the default of `Memory.search`."""
CACHE = Path(".cache") / "quality"

Figures = dict[str, float]


@dataclass
class Cost:
    """What rewrites and searches came to."""

    changed: list[int] = field(default_factory=list)
    """Units that a rewrite changed or added."""
    looked: list[int] = field(default_factory=list)
    """Units, MicroGraphs and edges that localisation read for a rewrite, and steps of paths it tried."""
    rewriting: float = 0.0
    """Seconds."""
    searches: int = 0
    searching: float = 0.0


@dataclass
class Result:
    """How one strategy did."""

    turns: dict[float, list[int]] = field(default_factory=dict)
    """By `ReadingOptions.fact`: of each question, the rank of the turn that tells the answer; 0 if it is not
    among `SHOWN`."""

    scrambled: bool = False
    """How questions are worded."""
    answers: list[tuple[str, Figures]] = field(default_factory=list)
    """Types of questions and their figures."""
    cost: Cost = field(default_factory=Cost)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.json and not options.json.parent.is_dir():
        parser.error(f"--json {options.json}: there is no directory {options.json.parent}")
    try:
        personas = memconflict_data.load(options.file)
    except OSError as error:
        parser.error(f"{options.file} cannot be read: {error}")
    except (KeyError, TypeError, ValueError) as error:
        parser.error(f"{options.file} is not in MemConflict's format: {error!r}")
    try:
        with CachedEncoder(resolve(options.encoder), options.cache) as encoder:
            report = measure(
                personas, encoder, options.strategies, scrambled=options.scrambled, weights=options.weights
            )
    except HmemError as error:
        parser.exit(1, f"measuring stopped: {error}\n")
    print("\n\n".join(tables(report)))
    if options.json:
        rows = {"rows": report["rows"]}
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        print(f"\nAll figures: {options.json}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quality.memconflict",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, help="step4_1.jsonl")
    parser.add_argument(
        "--strategies",
        type=_strategies,
        action="extend",
        help=f"one of {'; '.join(STRATEGIES)}; may be repeated; default: all",
    )
    parser.add_argument(
        "--scrambled",
        action="store_true",
        help="ask with the words of relations and conditions in reverse order, so that names do not stand in "
        "the question in one piece",
    )
    parser.add_argument(
        "--weights",
        type=lambda text: tuple(map(float, text.split(","))),
        default=(),
        help="for example 0,1: find the turns of the answers in the fused view, too, with these weights",
    )
    parser.add_argument("--encoder", help="a model directory; default: the model hmem uses")
    parser.add_argument(
        "--cache", type=Path, default=CACHE, help=f"embeddings of earlier runs; default: {CACHE}"
    )
    parser.add_argument("--json", type=Path, help="write the rows there")
    return parser


def _strategies(text: str) -> list[str]:
    if text not in STRATEGIES:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {'; '.join(STRATEGIES)}")
    return [text]


# -- measuring ---------------------------------------------------------------------------------------


def measure(
    personas: Sequence[Persona],
    encoder: Encoder,
    strategies: Iterable[str] | None = None,
    *,
    scrambled: bool = False,
    weights: Iterable[float] = (),
) -> dict[str, Any]:
    """The report: rows of figures, and the cost of each strategy.

    Args:
        scrambled: see `Question.text`.
        weights: of facts in the fused view, to find the turns by.
    """
    report: dict[str, Any] = {"rows": [], "cost": [], "turns": []}
    for name in strategies or STRATEGIES:
        result = Result(scrambled=scrambled, turns={weight: [] for weight in weights})
        for persona in personas:
            print(f"{name}: {persona.name}, {len(persona.sessions)} sessions", file=sys.stderr)
            _live(persona, encoder, STRATEGIES[name], result)
        report["rows"] += _rows(name, result)
        report["cost"].append(_cost(name, result.cost))
        report["turns"] += _turns(name, result)
    return report


def _live(persona: Persona, encoder: Encoder, options: FactOptions, result: Result) -> None:
    """Tell the sessions of a persona, and ask after each what it raises."""
    now = persona.sessions[0].at
    with hmem.open(encoder=encoder, facts=options, clock=lambda: int(now.timestamp() * 1e6)) as memory:
        turns: dict[int, int] = {}
        for session in persona.sessions:
            now = session.at
            turns[session.number] = tell(memory, session, result.cost)
            for question in session.questions:
                figures = _answer(memory, question, session, turns, result)
                result.answers.append((question.kind, figures))


def tell(memory: hmem.Memory, session: Session, cost: Cost) -> int:
    """Add a session as a turn and its facts with that as their source; returns the turn."""
    [turn] = memory.add(session.text, session=f"session {session.number}", at=session.at).ids
    for fact in session.facts:
        began = time.perf_counter()
        rewrite = _tell(memory, fact, session, turn)
        cost.rewriting += time.perf_counter() - began
        cost.changed.append(len(rewrite.changes))
        cost.looked.append(0 if rewrite.explain is None else rewrite.explain.touched)
    return turn


def _tell(memory: hmem.Memory, fact: Fact, session: Session, turn: int) -> Rewrite:
    return memory.facts.add(
        fact.subject,
        fact.relation,
        fact.object,
        category=fact.category,
        context=fact.context,
        valid_from=session.at if fact.dated else None,
        valid_to=session.at if fact.ended else None,
        source=turn,
        explain=True,
    )


def _answer(
    memory: hmem.Memory, question: Question, session: Session, turns: dict[int, int], result: Result
) -> Figures:
    """The figures of one question."""
    text, cost = question.text(scrambled=result.scrambled), result.cost
    began = time.perf_counter()
    found = memory.search(text, k=SHOWN, view="facts")
    cost.searching += time.perf_counter() - began
    cost.searches += 1
    rank = _rank(found, question, turns[question.session])
    for weight, ranks in result.turns.items():
        hits = memory.search(text, k=SHOWN, reading=ReadingOptions(fact=weight))
        ranks.append(next((n for n, hit in enumerate(hits, 1) if turns[question.session] in hit.turns), 0))
    figures = {
        "SEH@3": float(rank is not None and rank <= CUT),
        "SRS@3": 1 / math.log2(rank + 1) if rank is not None and rank <= CUT else 0.0,
    }
    match question.kind:
        case "dynamic":
            figures["UOCS"] = float(_shows_update(found, question, f"{session.at:%Y-%m-%d}"))
        case "static":
            figures["CRS"] = float(_shows_contradiction(found, question))
        case "conditional":
            figures["CRS"] = float(_keeps_conditions(memory, found, question))
    return figures


def _rank(found: Sequence[Evidence], question: Question, turn: int) -> int | None:
    """The rank of the first supporting fact, from 1."""
    for rank, piece in enumerate(found, 1):
        for unit in piece.facts:
            slot = unit.subject == question.subject and unit.relation == question.relation
            if slot and unit.object == question.value and turn in unit.sources:
                return rank
    return None


def _shows_update(found: Sequence[Evidence], question: Question, day: str) -> bool:
    """Whether the texts say what became of a value on that day."""
    slot = [piece for piece in found if _of_slot(piece, question)]
    slot.sort(key=lambda piece: piece.at)  # as `Memory.context` prints them
    ends = [_says(piece, question.before, f"until {day}") for piece in slot]
    others = [_starts(piece, day) and piece.facts[0].object != question.before for piece in slot]
    match question.change:
        case "changed":
            begins = [_says(piece, question.value, f"since {day}") for piece in slot]
            return any(ends) and any(begins) and ends.index(True) < begins.index(True)
        case "began":
            begins = [_says(piece, question.value, f"since {day}") for piece in slot]
            earlier = slot[: begins.index(True)] if any(begins) else []
            return any(begins) and all("until" in piece.text for piece in earlier)
        case "gone":
            after = slot[ends.index(True) + 1 :] if any(ends) else slot
            return any(ends) and all("until" in piece.text for piece in after) and not any(others)
        case _:
            last = slot[-1] if slot else None
            held = last is not None and last.facts[0].object == question.before and "until" not in last.text
            return held and not any(others)


def _of_slot(piece: Evidence, question: Question) -> bool:
    unit = piece.facts[0]
    return unit.subject == question.subject and unit.relation == question.relation


def _says(piece: Evidence, value: str | None, when: str) -> bool:
    """Whether a text says of a value until or since when it holds."""
    return piece.facts[0].object == value and f" {value} (" in piece.text and when in piece.text


def _starts(piece: Evidence, day: str) -> bool:
    return f"since {day}" in piece.text or f"from {day}" in piece.text


def _shows_contradiction(found: Sequence[Evidence], question: Question) -> bool:
    for piece in found:
        if _of_slot(piece, question) and "nothing says which is newer" in piece.text:
            held, *others = piece.facts
            right = held.object == question.value and held.status == "active"
            return right and any(unit.object == question.against for unit in others)
    return False


def _keeps_conditions(memory: hmem.Memory, found: Sequence[Evidence], question: Question) -> bool:
    first = next((piece.facts[0] for piece in found if _of_slot(piece, question)), None)
    if first is None or (first.object, first.contexts) != (question.value, (question.rules[-1][1],)):
        return False
    held = {(unit.object, *unit.contexts) for unit in memory.facts.find(question.subject, question.relation)}
    return held >= set(question.rules)


# -- reporting ---------------------------------------------------------------------------------------


def _rows(strategy: str, result: Result) -> Iterator[dict[str, Any]]:
    for kind in TYPES:
        figures = [found for type_, found in result.answers if kind in ("all", type_)]
        if figures:
            row: dict[str, Any] = {"strategy": strategy, "type": kind, "questions": len(figures)}
            for name in FIGURES:
                values = [found[name] for found in figures if name in found]
                row[name] = round(fmean(values), 4) if values else None
            yield row


def _cost(strategy: str, cost: Cost) -> dict[str, Any]:
    rewrites = max(len(cost.changed), 1)
    return {
        "strategy": strategy,
        "rewrites": len(cost.changed),
        "touched": round(sum(cost.looked) / rewrites, 2),
        "changed": round(sum(cost.changed) / rewrites, 2),
        "ms a rewrite": round(1000 * cost.rewriting / rewrites, 2),
        "ms a search": round(1000 * cost.searching / max(cost.searches, 1), 2),
    }


def _turns(strategy: str, result: Result) -> Iterator[dict[str, Any]]:
    kinds = [kind for kind, _ in result.answers]
    for weight, ranks in result.turns.items():
        for kind in TYPES:
            found = [rank for rank, one in zip(ranks, kinds, strict=True) if kind in ("all", one)]
            if found:
                yield {
                    "strategy": strategy,
                    "type": kind,
                    "weight of facts": weight,
                    "turn first": fmean(rank == 1 for rank in found),
                    f"turn in {CUT}": fmean(0 < rank <= CUT for rank in found),
                    f"turn in {SHOWN}": fmean(rank > 0 for rank in found),
                }


def tables(report: dict[str, Any]) -> list[str]:
    """The figures of each strategy by type, and what they cost."""
    rows = [
        [row["strategy"], row["type"], row["questions"], *("" if row[n] is None else row[n] for n in FIGURES)]
        for row in report["rows"]
    ]
    return [
        markdown(["strategy", "type", "questions", *FIGURES], rows),
        *(
            markdown(list(part[0]), (one.values() for one in part))
            for part in (report["cost"], report["turns"])
            if part
        ),
    ]


if __name__ == "__main__":
    main()
