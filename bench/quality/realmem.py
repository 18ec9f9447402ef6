"""Which earlier sessions a person's queries draw on, and how soon each view shows them. No LLM.

    python -m bench.quality.realmem PERSON.json ... [--views dense,fused,...] [--baselines all] [--split dev]
        [--json OUT]

Every person is one memory, filled a session at a time. A query is asked of the memory as it was before its
session began, as it stands; sessions are ranked by their best turn. Session recall at k is the share of the
sessions named as evidence among the first k; NDCG counts them with gain 1. The first two persons in the order
of their files' names are the *dev* half, the others the *test* half.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import hmem_core as hmem
from bench.quality import arguments, realmem_data
from bench.quality.baselines import BASELINES
from bench.quality.finding import Beside, Moment
from bench.quality.realmem_data import Query, Session
from bench.quality.tables import markdown
from bench.quality.vector_cache import CachedEncoder
from hmem_core.embedding.base import Encoder
from hmem_core.embedding.registry import resolve
from hmem_core.errors import HmemError
from hmem_core.options import ReadingOptions
from hmem_core.records import Evidence

CUTS = (5, 10)
FIGURES = (*(f"session_recall@{cut}" for cut in CUTS), "ndcg@10")
DEV = 2
"""Persons of the dev half."""
VIEWS = ("dense", "lexical", "time", "fused")
RANKED = tuple(name for name in BASELINES if name != "full-context")
"""Baselines that rank."""
_FIRST = 64
"""Turns that are asked for at first; more, if they lie in too few sessions."""

Find = Callable[[str, int, Moment], list[Evidence]]
"""(query, k, when) -> what was to be found then, best first."""


@dataclass(frozen=True)
class Person:
    """One file."""

    name: str
    sessions: list[Session]
    queries: list[Query]


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments.parser("realmem", __doc__)
    parser.add_argument("files", type=Path, nargs="+", help="dialogue files, one a person")
    parser.add_argument("--views", default=",".join(VIEWS), help=f"default: {','.join(VIEWS)}")
    arguments.add_common(parser, baselines=RANKED)
    options = parser.parse_args(given)
    people = []
    for path in sorted(options.files, key=lambda path: path.name):
        try:
            people.append(Person(path.name.split("_dialogues")[0], *realmem_data.load(path)))
        except (OSError, KeyError, TypeError, ValueError) as error:
            parser.error(f"{path} is not a file of RealMem: {error!r}")
    try:
        with CachedEncoder(resolve(options.encoder), options.cache) as encoder:
            views = options.views.split(",")
            report = measure(people, encoder, views, options.split, baselines=options.baselines)
    except HmemError as error:
        parser.exit(1, f"measuring stopped: {error}\n")
    rows = [
        [row["view"], row["split"], row["persona"], row["questions"], *(row[name] for name in FIGURES)]
        for row in report["rows"]
    ]
    print(markdown(["view", "split", "persona", "questions", *FIGURES], rows))
    arguments.write(options.json, report)


def measure(
    people: Sequence[Person],
    encoder: Encoder,
    views: Iterable[str] = VIEWS,
    split: str = "all",
    reading: ReadingOptions | None = None,
    baselines: Sequence[str] = (),
) -> dict[str, Any]:
    """The report: rows of figures by view or baseline, half and person."""
    began = time.perf_counter()
    views = tuple(views)
    names = (*views, *baselines)
    found: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for number, person in enumerate(people):
        half = "dev" if number < DEV else "test"
        if split not in ("all", half):
            continue
        print(f"{person.name}: {len(person.queries)} queries", file=sys.stderr)
        for view, figures in _ask(person, encoder, views, reading, baselines):
            groups = [(view, half, person.name), (view, half, "all")]
            if split == "all":
                groups.append((view, "all", "all"))
            for group in groups:
                found.setdefault(group, []).append(figures)
    rows = [
        {
            "view": view,
            "split": half,
            "persona": name,
            "questions": len(figures),
            **{figure: round(fmean(of[figure] for of in figures), 4) for figure in FIGURES},
        }
        for (view, half, name), figures in sorted(
            found.items(), key=lambda item: (names.index(item[0][0]), item[0][1:] != ("all", "all"), item[0])
        )
    ]
    return {"rows": rows, "encoder": encoder.identity.name, "seconds": round(time.perf_counter() - began, 1)}


def _ask(
    person: Person,
    encoder: Encoder,
    views: Sequence[str],
    reading: ReadingOptions | None,
    baselines: Sequence[str],
) -> Iterator[tuple[str, dict[str, float]]]:
    with hmem.open(encoder=encoder) as memory:
        before = []  # as each session began
        for position, session in enumerate(person.sessions):
            stats = memory.stats()
            before.append(Moment(stats.seq, stats.turns, session.at))
            memory.add(
                [{"role": _role(speaker), "content": text} for speaker, text in session.turns],
                session=str(position),
                at=session.at,
            )
        finds: dict[str, Find] = {view: _of_view(memory, view, reading) for view in views}
        if baselines:
            beside = Beside(memory, encoder, baselines)
            finds |= {name: _of_baseline(beside, name) for name in baselines}
        for name, find in finds.items():
            for query in person.queries:
                yield name, figures_of(_ranked(find, query, before[query.before]), query.evidence)


def _of_view(memory: hmem.Memory, view: str, reading: ReadingOptions | None) -> Find:
    return lambda query, k, when: memory.search(
        query, k=k, view=view, as_of=when.seq, now=when.at, reading=reading
    )


def _of_baseline(beside: Beside, name: str) -> Find:
    return lambda query, k, when: beside.search(name, query, k, when.turns)


def _role(speaker: str) -> str:
    return "assistant" if speaker.lower() == "assistant" else "user"


def _ranked(find: Find, query: Query, when: Moment) -> list[int]:
    """Sessions, the one of the best turn first."""
    k = _FIRST
    while True:
        hits = find(query.text, k, when)
        sessions = list(dict.fromkeys(int(hit.session) for hit in hits if hit.session is not None))
        shown = sum(len(hit.turns) for hit in hits)
        if len(sessions) >= max(CUTS) or shown < k:
            return sessions
        k *= 4


def figures_of(ranked: Sequence[int], evidence: Sequence[int]) -> dict[str, float]:
    """Session recall and NDCG of one ranking."""
    gold = set(evidence)
    gains = [1 / math.log2(rank + 2) for rank, one in enumerate(ranked[:10]) if one in gold]
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(len(gold), 10)))
    return {
        **{f"session_recall@{cut}": len(gold & set(ranked[:cut])) / len(gold) for cut in CUTS},
        "ndcg@10": sum(gains) / ideal,
    }


if __name__ == "__main__":
    main()
