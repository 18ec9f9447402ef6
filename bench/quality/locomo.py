"""How much of the evidence of LoCoMo's questions each view finds, and how much it shows for it. No LLM.

    python -m bench.quality.locomo locomo10.json [--views dense,lexical,...] [--baselines all] [--split dev]
        [--json OUT]

With a language model behind any OpenAI-compatible server: guided reading, answers, and their scores. A run
that was stopped goes on when it is started again.

    python -m bench.quality.locomo locomo10.json --llm --model NAME [--base-url URL]

What the stages of guided reading find where the evidence itself decides, or decides with errors; no model:

    python -m bench.quality.locomo locomo10.json --judge oracle
    python -m bench.quality.locomo locomo10.json --judge noisy --miss 0.2 --wrong 0.05

Every conversation is one memory, filled by `Memory.add` and asked by `Memory.search`. A question's recall at
k is the share of its evidence among the first k turns shown; figures are means over the questions that have
evidence. The first five conversations are the *dev* half, on which defaults were chosen; the others are the
*test* half.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bench.quality import arguments, modes
from bench.quality.finding import FIGURES, VIEWS, answered, rows_of
from bench.quality.locomo_data import Conversation
from bench.quality.protocol import SHOWN, SPLITS, halves
from bench.quality.structure import Structure, structure
from bench.quality.tables import locomo_tables
from bench.quality.vector_cache import CachedEncoder
from hmem_core.embedding.base import Encoder
from hmem_core.embedding.registry import resolve
from hmem_core.errors import HmemError
from hmem_core.options import SegmentOptions


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments.parser("locomo", __doc__)
    parser.add_argument("file", type=Path, help="locomo10.json")
    parser.add_argument(
        "--views",
        type=arguments.names_among(VIEWS),
        default=tuple(VIEWS),
        help=f"some of {','.join(VIEWS)}; default: all",
    )
    arguments.add_common(parser)
    modes.add_options(parser)
    options = parser.parse_args(given)
    modes.check(parser, options)
    conversations = arguments.conversations(parser, options.file, options.json)
    try:
        with CachedEncoder(resolve(options.encoder), options.cache) as encoder:
            if options.llm or options.judge:
                report, tables = modes.run(conversations, encoder, options)
            else:
                report = measure(conversations, encoder, options.views, options.split, options.baselines)
                tables = [*locomo_tables(report, FIGURES), _last_word(report)]
    except HmemError as error:
        parser.exit(1, f"measuring stopped: {error}\n")
    print("\n\n".join(tables))
    arguments.write(options.json, report)


def measure(
    conversations: Sequence[Conversation],
    encoder: Encoder,
    views: Iterable[str] = tuple(VIEWS),
    split: str = "all",
    baselines: Sequence[str] = (),
) -> dict[str, Any]:
    """The report: rows of figures, the trees, the encoder, and the seconds it took."""
    began = time.perf_counter()
    found = answered(conversations, encoder, {name: VIEWS[name] for name in views}, split, baselines)
    return {
        "rows": list(rows_of(found, SPLITS if split == "all" else (split,))),
        "tree": list(_trees([one for _, one in halves(conversations, split)], encoder)),
        "encoder": encoder.identity.name,
        "seconds": round(time.perf_counter() - began, 1),
    }


def _trees(conversations: Sequence[Conversation], encoder: Encoder) -> Iterator[dict[str, Any]]:
    """The tree of each conversation, and that of all of them in one memory."""
    vectors = [
        # Rounded as a memory rounds them.
        encoder.embed([turn.index_text for turn in conversation.turns]).astype(np.float16).astype(np.float32)
        for conversation in conversations
    ]
    for conversation, turns in zip(conversations, vectors, strict=True):
        yield _tree(conversation.name, structure(turns, SegmentOptions()))
    if len(vectors) > 1:
        yield _tree("all, one after the other", structure(np.concatenate(vectors), SegmentOptions()))


def _tree(name: str, found: Structure) -> dict[str, Any]:
    return {"conversation": name, **asdict(found), "log2 turns": found.logarithm}


def _last_word(report: dict[str, Any]) -> str:
    """One sentence on the last view, over all that was asked."""
    found = [row for row in report["rows"] if row["category"] == "all" and row["view"] in VIEWS]
    if not found:
        return "No question has evidence, so there is nothing to say."
    view = found[-1]["view"]
    row = next(row for row in found if row["view"] == view)
    return (
        f"{view}: {row[f'recall@{SHOWN}']:.1%} of the evidence in {row['turns']:.2f} turns "
        f"({row['tokens']:.0f} tokens), {row['questions']} questions, {report['encoder']}, "
        f"{report['seconds']:.0f} s."
    )


if __name__ == "__main__":
    main()
