"""What each signal of the fused view is worth: LoCoMo's evidence found without it. No LLM.

    python -m bench.quality.ablation locomo10.json [--split dev] [--json OUT]

One signal or step of selection is left out at a time; all else stays as it is by default. A change is the
mean over questions of the difference in recall at 8, with its standard error.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.quality import arguments
from bench.quality.finding import FEW, View, answered, change, rows_of
from bench.quality.locomo_data import Conversation
from bench.quality.protocol import SHOWN, SPLITS
from bench.quality.tables import markdown
from bench.quality.vector_cache import CachedEncoder
from hmem_core.embedding.base import Encoder
from hmem_core.embedding.registry import resolve
from hmem_core.errors import HmemError
from hmem_core.options import ReadingOptions

__all__ = ["RERANKING", "SETTINGS", "WITHOUT", "main", "measure", "readings"]

WITHOUT: dict[str, Mapping[str, Any]] = {
    "dense": {"dense": 0.0},
    "lexical": {"lexical": 0.0},
    "late": {"late": 0.0},
    "lateral": {"lateral": ()},
    "answer": {"answer": 0.0},
    "session": {"session": 0.0},
    "speaker": {"speaker": 0.0},
    "period": {"period": 0.0},
    "tree": {"tree": 0.0},
    "event": {"event": 0.0},
    "centroid": {"centroid": 0.0},
    "coverage": {"coverage": 0.0},
    "fact": {"fact": 0.0},
    "diversity": {"diversity": 0.0},
    "fold": {"fold": False},
}
"""What leaves a signal out. One that `ReadingOptions` does not know is not measured."""
SETTINGS = frozenset(
    {
        "k1",
        "b",
        "past",
        "policy",
        "decay",
        "horizon",
        "by_height",
        "enough",
        "candidates",
    }
)
"""Options that say how, not how much: there is nothing to leave out."""
ALL = "fused"
RERANKING = frozenset({"rerank", "rerank_tokens", "reranked"})
"""Options of a reranker, which no report has."""


def readings() -> dict[str, View]:
    """The fused view with everything, and without each signal."""
    known = {field.name for field in msgspec.structs.fields(ReadingOptions)}
    left_out = {f"without {name}": off for name, off in WITHOUT.items() if known >= off.keys()}
    return {ALL: View("fused")} | {
        name: View("fused", msgspec.structs.replace(ReadingOptions(), **off))
        for name, off in left_out.items()
    }


def measure(conversations: Sequence[Conversation], encoder: Encoder, split: str = "all") -> dict[str, Any]:
    """The report: rows as of `bench.quality.locomo`, and what each signal changes."""
    began = time.perf_counter()
    views = readings()
    found = answered(conversations, encoder, views, split, cuts=FEW)
    splits = SPLITS if split == "all" else (split,)
    rows = list(rows_of(found, splits))
    asked = {row["split"] for row in rows}
    return {
        "rows": rows,
        "changes": [
            change(found, ALL, name, half, f"recall@{SHOWN}")
            for name in views
            if name != ALL
            for half in splits
            if half in asked
        ],
        "encoder": encoder.identity.name,
        "seconds": round(time.perf_counter() - began, 1),
    }


def table(report: Mapping[str, Any]) -> str:
    """A row for each signal, halves side by side."""
    changes = {(one["view"], one["split"]): one for one in report["changes"]}
    overall = [row for row in report["rows"] if row["category"] == "all"]
    halves = list(dict.fromkeys(row["split"] for row in overall))
    rows = []
    for view in dict.fromkeys(row["view"] for row in overall):
        cells: list[Any] = [view]
        for half in halves:
            (row,) = (row for row in overall if (row["view"], row["split"]) == (view, half))
            one = changes.get((view, half))
            moved = f"{one['change'] * 100:+.1f} ± {one['error'] * 100:.1f}" if one else ""
            cells += [row[f"recall@{SHOWN}"], moved]
        rows.append(cells)
    head = ["", *(name for half in halves for name in (f"{half}, @{SHOWN}", "points"))]
    return markdown(head, rows)


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments.parser("ablation", __doc__)
    parser.add_argument("file", type=Path, help="locomo10.json")
    arguments.add_common(parser, baselines=())
    options = parser.parse_args(given)
    conversations = arguments.conversations(parser, options.file, options.json)
    try:
        with CachedEncoder(resolve(options.encoder), options.cache) as encoder:
            report = measure(conversations, encoder, options.split)
    except HmemError as error:
        parser.exit(1, f"measuring stopped: {error}\n")
    print(table(report))
    arguments.write(options.json, report)


if __name__ == "__main__":
    main()
