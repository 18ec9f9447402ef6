"""What the order of turns is worth: LoCoMo's evidence found where part of the turns changed places. No LLM.

    python -m bench.quality.shuffling locomo10.json [--share 0.3] [--seeds 3] [--split dev] [--json OUT]

That share of each conversation's turns is drawn at random and exchanged pairwise: a turn gets the session,
the time and the place of its partner, and keeps its speaker, its words and what it is evidence for. A view
that reads the order must find less (SegTreeMem, arXiv 2606.04555, reports 11 to 14 points for its own); one
that does not, as much as before. Rows are means over the seeds; a change is that of the first seed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.quality import arguments
from bench.quality.finding import FEW, VIEWS, Answered, View, answered, change, rows_of
from bench.quality.locomo_data import Conversation
from bench.quality.protocol import SHOWN, SPLITS
from bench.quality.tables import markdown
from bench.quality.vector_cache import CachedEncoder
from hmem_core.embedding.base import Encoder
from hmem_core.embedding.registry import resolve
from hmem_core.errors import HmemError

__all__ = ["SHUFFLED", "main", "measure", "shuffled"]

SHUFFLED = ", shuffled"
ASKED: dict[str, View] = {
    "time": View("time"),
    "time-none": VIEWS["time-none"],
    "fused": VIEWS["fused"],
    "dense": VIEWS["dense"],
    "lexical": VIEWS["lexical"],
}


def shuffled(conversation: Conversation, share: float, seed: int) -> Conversation:
    """The conversation with `share` of its turns exchanged pairwise."""
    turns = list(conversation.turns)
    drawn = random.Random(f"{seed} {conversation.name}").sample(range(len(turns)), round(share * len(turns)))
    for one, other in zip(drawn[::2], drawn[1::2], strict=False):
        first, second = turns[one], turns[other]
        turns[one] = replace(second, session=first.session, at=first.at)
        turns[other] = replace(first, session=second.session, at=second.at)
    return replace(conversation, turns=tuple(turns))


def measure(
    conversations: Sequence[Conversation],
    encoder: Encoder,
    split: str = "all",
    share: float = 0.3,
    seeds: int = 1,
) -> dict[str, Any]:
    """The report: rows as of `bench.quality.locomo`, as they are and shuffled, and what shuffling changes."""
    began = time.perf_counter()
    found = answered(conversations, encoder, ASKED, split, cuts=FEW)
    names = {name: f"{name}{SHUFFLED}" for name in ASKED}
    for seed in range(seeds):
        moved = [shuffled(one, share, seed) for one in conversations]
        again = answered(moved, encoder, ASKED, split, cuts=FEW)
        found += [replace(one, view=names[one.view]) for one in again]
    splits = SPLITS if split == "all" else (split,)
    rows = [
        row | {"questions": row["questions"] // (seeds if row["view"].endswith(SHUFFLED) else 1)}
        for row in rows_of(found, splits)
    ]
    asked = {row["split"] for row in rows}
    return {
        "rows": rows,
        "changes": [
            change(_first(found, name, names[name]), name, names[name], half, f"recall@{SHOWN}")
            for name in ASKED
            for half in splits
            if half in asked
        ],
        "share": share,
        "seeds": seeds,
        "encoder": encoder.identity.name,
        "seconds": round(time.perf_counter() - began, 1),
    }


def _first(found: Sequence[Answered], *names: str) -> list[Answered]:
    """What the first runs of these views gave."""
    runs = {name: [one for one in found if one.view == name] for name in names}
    least = min(map(len, runs.values()))
    return [one for run in runs.values() for one in run[:least]]


def table(report: Mapping[str, Any]) -> str:
    """A row for each view and half."""
    overall = {(row["view"], row["split"]): row for row in report["rows"] if row["category"] == "all"}
    recall = f"recall@{SHOWN}"
    return markdown(
        ["view", "split", "questions", recall, "shuffled", "points"],
        (
            [
                view,
                split,
                row["questions"],
                row[recall],
                after[recall],
                f"{(after[recall] - row[recall]) * 100:+.1f}",
            ]
            for (view, split), row in overall.items()
            if (after := overall.get((f"{view}{SHUFFLED}", split)))
        ),
    )


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments.parser("shuffling", __doc__)
    parser.add_argument("file", type=Path, help="locomo10.json")
    parser.add_argument("--share", type=float, default=0.3, help="of the turns; 0.3")
    parser.add_argument("--seeds", type=int, default=1, help="so many shufflings; 1")
    arguments.add_common(parser, baselines=())
    options = parser.parse_args(given)
    if not 0 <= options.share <= 1 or options.seeds < 1:
        parser.error("--share is from 0 to 1, and --seeds at least 1")
    conversations = arguments.conversations(parser, options.file, options.json)
    try:
        with CachedEncoder(resolve(options.encoder), options.cache) as encoder:
            report = measure(conversations, encoder, options.split, options.share, options.seeds)
    except HmemError as error:
        parser.exit(1, f"measuring stopped: {error}\n")
    print(table(report))
    arguments.write(options.json, report)


if __name__ == "__main__":
    main()
