"""Recall against how much is shown: LoCoMo's evidence by turns, by tokens, and at k="auto". No LLM.

    python -m bench.quality.curves locomo10.json [--views fused,dense] [--baselines bm25,rrf] [--split test]
        [--json OUT] [--plot OUT.svg]

By turns: `Memory.search` at each k. By tokens: `Memory.context` at each budget, dates, speakers and lead-ins
included, by hmem's own estimate; *share* is the part of the tokens that the whole conversation takes in the
same form. A baseline's turns are packed likewise, without lead-ins.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple

import hmem_core as hmem
from bench.quality import arguments
from bench.quality.baselines import BASELINES
from bench.quality.finding import VIEWS, Beside, View, counted, everything
from bench.quality.locomo_data import Conversation, Question
from bench.quality.plots import curves_plot
from bench.quality.protocol import SPLITS, asked_at, fill, halves, progress
from bench.quality.tables import markdown
from bench.quality.vector_cache import CachedEncoder
from hmem_core.embedding.base import Encoder
from hmem_core.embedding.registry import resolve
from hmem_core.errors import HmemError
from hmem_core.records import Evidence, Line
from hmem_core.retrieval.context import pack

__all__ = ["BUDGETS", "KS", "main", "measure"]

KS = (1, 2, 3, 5, 8, 10, 15, 20, 30, 40)
BUDGETS = (100, 250, 500, 1000, 1500, 2000, 4000)
ASKED = ("fused", "dense", "lexical")
LEAST = 12
"""Tokens of the shortest line of a context, about."""


class Point(NamedTuple):
    """What one question was shown at one place of a curve, in figures."""

    view: str
    split: str
    by: str
    """``"k"``, ``"auto"`` or ``"tokens"``."""
    at: int
    """k, or the budget; 0 for ``"auto"``."""
    figures: dict[str, float]


def measure(
    conversations: Sequence[Conversation],
    encoder: Encoder,
    views: Sequence[str] = ASKED,
    split: str = "all",
    baselines: Sequence[str] = (),
) -> dict[str, Any]:
    """The report: a row for each view, half and place of its curves."""
    began = time.perf_counter()
    chosen = halves(conversations, split)
    points: list[Point] = []
    full: list[tuple[str, int]] = []
    for number, (half, conversation) in enumerate(chosen, 1):
        progress(number, len(chosen), conversation)
        with hmem.open(encoder=encoder, clock=asked_at(conversation)) as memory:
            fill(memory, conversation)
            curve = _Curve(memory, half, Beside(memory, encoder, baselines) if baselines else None)
            full.append((half, curve.full))
            for question in conversation.questions:
                if question.evidence:
                    for name in views:
                        points += curve.of_view(name, VIEWS[name], question)
                    for name in baselines:
                        points += curve.of_baseline(name, question)
    splits = SPLITS if split == "all" else (split,)
    whole = {
        half: round(fmean(tokens for of, tokens in full if half in ("all", of)))
        for half in splits
        if any(half in ("all", of) for of, _ in full)
    }
    return {
        "rows": list(_rows(points, splits)),
        "full context, tokens": whole,
        "encoder": encoder.identity.name,
        "seconds": round(time.perf_counter() - began, 1),
    }


class _Curve:
    """Asks one conversation's memory."""

    def __init__(self, memory: hmem.Memory, half: str, beside: Beside | None) -> None:
        self._memory = memory
        self._half = half
        self._beside = beside
        self._keys = {turn.id: turn.key for turn in memory.turns()}
        self.full = pack(everything(memory), sys.maxsize, counted, UTC).tokens

    def of_view(self, name: str, view: View, question: Question) -> Iterator[Point]:
        def search(k: int | Literal["auto"]) -> list[Evidence]:
            return self._memory.search(question.text, k=k, view=view.name, reading=view.reading)

        ranked = [] if view.anew else search(max(KS))
        for k in KS:
            yield self._point(name, "k", k, question, search(k) if view.anew else ranked[:k])
        yield self._point(name, "auto", 0, question, search("auto"))
        for budget in BUDGETS:
            packed = self._memory.context(question.text, budget, view=view.name, count=counted)
            yield self._point(name, "tokens", budget, question, packed.lines, packed.tokens)

    def of_baseline(self, name: str, question: Question) -> Iterator[Point]:
        assert self._beside is not None
        ranked = self._beside.search(name, question.text, max(*KS, max(BUDGETS) // LEAST))
        for k in KS:
            yield self._point(name, "k", k, question, ranked[:k])
        for budget in BUDGETS:
            packed = pack(ranked[: max(8, budget // LEAST)], budget, counted, UTC)
            yield self._point(name, "tokens", budget, question, packed.lines, packed.tokens)

    def _point(
        self,
        view: str,
        by: str,
        at: int,
        question: Question,
        shown: Sequence[Evidence] | Sequence[Line],
        tokens: int | None = None,
    ) -> Point:
        ids = {self._keys[turn] for one in shown for turn in one.turns}
        met = len(ids.intersection(question.evidence))
        figures = {
            "recall": met / len(question.evidence),
            "precision": met / max(len(ids), 1),
            "turns": float(len(ids)),
        }
        if tokens is not None:
            figures |= {"tokens": float(tokens), "share": tokens / self.full}
        return Point(view, self._half, by, at, figures)


def _rows(points: Sequence[Point], splits: Sequence[str]) -> Iterator[dict[str, Any]]:
    grouped: dict[tuple[str, str, int], list[Point]] = {}
    for point in points:
        grouped.setdefault((point.view, point.by, point.at), []).append(point)
    for (view, by, at), group in grouped.items():
        for split in splits:
            figures = [point.figures for point in group if split in ("all", point.split)]
            if figures:
                yield {
                    "view": view,
                    "split": split,
                    "category": "all",
                    "questions": len(figures),
                    "by": by,
                    "at": at,
                    **{name: round(fmean(of[name] for of in figures), 4) for name in figures[0]},
                }


# -- showing -----------------------------------------------------------------------------------------


def tables(report: Mapping[str, Any], split: str) -> list[str]:
    """Of one half: recall by turns, recall by tokens, and what `k="auto"` shows."""
    rows = [row for row in report["rows"] if row["split"] == split]
    found = []
    for by, places, name in (("k", KS, "recall, k ="), ("tokens", BUDGETS, "recall, tokens ≤")):
        curves = {
            view: [row["recall"] for row in rows if (row["view"], row["by"]) == (view, by)]
            for view in dict.fromkeys(row["view"] for row in rows)
        }
        found.append(markdown([name, *map(str, places)], [[view, *curve] for view, curve in curves.items()]))
    spent = [row for row in rows if (row["by"], row["at"]) == ("tokens", 1000)]
    head = ["at most 1,000 tokens", "recall", "precision", "turns", "tokens", "of full context"]
    columns = ("view", "recall", "precision", "turns", "tokens")
    found.append(markdown(head, [[*(row[of] for of in columns), f"{row['share']:.1%}"] for row in spent]))
    auto = [row for row in rows if row["by"] == "auto"]
    found.append(
        markdown(
            ['k="auto"', "recall", "precision", "turns"],
            [[row[of] for of in ("view", "recall", "precision", "turns")] for row in auto],
        )
    )
    return found


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments.parser("curves", __doc__)
    parser.add_argument("file", type=Path, help="locomo10.json")
    parser.add_argument(
        "--views",
        type=arguments.names_among(VIEWS),
        default=ASKED,
        help=f"some of {','.join(VIEWS)}; default: {','.join(ASKED)}",
    )
    parser.add_argument("--plot", type=Path, help="draw the curves there, as SVG")
    arguments.add_common(parser, baselines=[name for name in BASELINES if name != "full-context"])
    options = parser.parse_args(given)
    conversations = arguments.conversations(parser, options.file, options.json)
    try:
        with CachedEncoder(resolve(options.encoder), options.cache) as encoder:
            report = measure(conversations, encoder, options.views, options.split, options.baselines)
    except HmemError as error:
        parser.exit(1, f"measuring stopped: {error}\n")
    asked = list(dict.fromkeys(row["split"] for row in report["rows"]))
    if not asked:
        parser.exit(1, "No question has evidence, so there is nothing to say.\n")
    shown = asked[-1]
    print(f"{shown}:\n")
    print("\n\n".join(tables(report, shown)))
    arguments.write(options.json, report)
    if options.plot:
        curves_plot(report, shown, options.plot)
        print(f"Curves: {options.plot}")


if __name__ == "__main__":
    main()
