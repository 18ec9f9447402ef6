"""How much of the evidence of LoCoMo's questions each view finds, and how much it shows for it. No LLM.

    python -m bench.quality.locomo locomo10.json [--views dense,lexical,...] [--split dev] [--json OUT]

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

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

import hmem_core as hmem
from bench.quality import locomo_data, modes
from bench.quality.locomo_data import CATEGORIES, Conversation, Question
from bench.quality.protocol import SHOWN, SPLITS, fill, halves, progress
from bench.quality.structure import Structure, structure
from bench.quality.tables import locomo_tables
from bench.quality.vector_cache import CachedEncoder
from hmem_core.embedding.base import Encoder
from hmem_core.embedding.registry import resolve
from hmem_core.errors import HmemError
from hmem_core.options import ReadingOptions, SegmentOptions
from hmem_core.records import Evidence
from hmem_core.retrieval.context import pack
from hmem_core.retrieval.tokens import estimate_tokens

CUTS = (5, 8, 10, 20)
FIGURES = (*(f"recall@{cut}" for cut in CUTS), f"precision@{SHOWN}", "turns", "tokens")
CACHE = Path(".cache") / "quality"


@dataclass(frozen=True)
class View:
    """One way to ask."""

    name: str
    """As `Memory.search` knows it."""
    reading: ReadingOptions = ReadingOptions()
    segments: bool = False
    """Evidence may be segments, which fill the cut differently for every k."""


VIEWS = {
    "dense": View("dense"),
    "lexical": View("lexical"),
    "time-none": View("time", ReadingOptions(policy="none"), segments=True),
    "time-top-down": View("time", ReadingOptions(policy="top-down"), segments=True),
    "time-bottom-up": View("time", ReadingOptions(policy="bottom-up"), segments=True),
    "time-auto": View("time", ReadingOptions(policy="auto"), segments=True),
    "events": View("events"),
    "fused-no-events": View("fused", ReadingOptions(event=0.0)),
    "fused": View("fused"),
}


@dataclass(frozen=True)
class Answered:
    """What a view showed for a question, in figures."""

    view: str
    split: str
    category: int
    figures: dict[str, float]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = _parser()
    options = parser.parse_args(arguments)
    modes.check(parser, options)
    if options.json and not options.json.parent.is_dir():
        parser.error(f"--json {options.json}: there is no directory {options.json.parent}")
    try:
        conversations = locomo_data.load(options.file)
    except OSError as error:
        parser.error(f"{options.file} cannot be read: {error}")
    except (KeyError, TypeError, ValueError) as error:
        parser.error(f"{options.file} is not in LoCoMo's format: {error!r}")
    try:
        with CachedEncoder(resolve(options.encoder), options.cache) as encoder:
            if options.llm or options.judge:
                report, tables = modes.run(conversations, encoder, options)
            else:
                report = measure(conversations, encoder, options.views, options.split)
                tables = [*locomo_tables(report, FIGURES), _last_word(report)]
    except HmemError as error:
        parser.exit(1, f"measuring stopped: {error}\n")
    print("\n\n".join(tables))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"All figures: {options.json}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quality.locomo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, help="locomo10.json")
    parser.add_argument(
        "--views", type=_views, default=tuple(VIEWS), help=f"some of {','.join(VIEWS)}; default: all"
    )
    parser.add_argument("--split", choices=SPLITS, default="all", help="the conversations to ask")
    parser.add_argument("--encoder", help="a model directory; default: the model hmem uses")
    parser.add_argument(
        "--cache", type=Path, default=CACHE, help=f"embeddings of earlier runs; default: {CACHE}"
    )
    parser.add_argument("--json", type=Path, help="write all figures there")
    modes.add_options(parser)
    return parser


def _views(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in VIEWS:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(VIEWS)}")
    return names


# -- measuring ---------------------------------------------------------------------------------------


def measure(
    conversations: Sequence[Conversation],
    encoder: Encoder,
    views: Iterable[str] = tuple(VIEWS),
    split: str = "all",
) -> dict[str, Any]:
    """The report: rows of figures, the trees, the encoder, and the seconds it took."""
    began = time.perf_counter()
    names = tuple(views)
    chosen = halves(conversations, split)
    answered: list[Answered] = []
    for number, (half, conversation) in enumerate(chosen, 1):
        progress(number, len(chosen), conversation)
        answered += _ask(conversation, half, encoder, names)
    return {
        "rows": list(_rows(answered, names, SPLITS if split == "all" else (split,))),
        "tree": list(_trees([conversation for _, conversation in chosen], encoder)),
        "encoder": encoder.identity.name,
        "seconds": round(time.perf_counter() - began, 1),
    }


def _ask(
    conversation: Conversation, split: str, encoder: Encoder, views: Sequence[str]
) -> Iterator[Answered]:
    with hmem.open(encoder=encoder) as memory:
        fill(memory, conversation)
        keys = {turn.id: turn.key for turn in memory.turns()}
        for name in views:
            for question in conversation.questions:
                if question.evidence:
                    figures = _figures(memory, keys, question, VIEWS[name])
                    yield Answered(name, split, question.category, figures)


def _figures(
    memory: hmem.Memory, keys: dict[int, str | None], question: Question, view: View
) -> dict[str, float]:
    def search(k: int) -> list[Evidence]:
        return memory.search(question.text, k=k, view=view.name, reading=view.reading)

    if view.segments:
        shown = {cut: search(cut) for cut in CUTS}
    else:
        ranked = search(max(CUTS))
        shown = {cut: ranked[:cut] for cut in CUTS}
    ids = {cut: {keys[turn] for one in shown[cut] for turn in one.turns} for cut in CUTS}
    gold = set(question.evidence)
    context = pack(shown[SHOWN], sys.maxsize, estimate_tokens, UTC)
    return {
        **{f"recall@{cut}": len(gold & ids[cut]) / len(gold) for cut in CUTS},
        f"precision@{SHOWN}": len(gold & ids[SHOWN]) / max(len(ids[SHOWN]), 1),
        "turns": len(ids[SHOWN]),
        "tokens": context.tokens,
    }


def _rows(
    answered: Sequence[Answered], views: Iterable[str], splits: Sequence[str]
) -> Iterator[dict[str, Any]]:
    for view in views:
        for split in splits:
            for category in ("all", *CATEGORIES):
                figures = [
                    one.figures
                    for one in answered
                    if one.view == view and split in ("all", one.split) and category in ("all", one.category)
                ]
                if figures:
                    means = {name: round(fmean(of[name] for of in figures), 4) for name in FIGURES}
                    yield {
                        "view": view,
                        "split": split,
                        "category": category,
                        "questions": len(figures),
                        **means,
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
    found = [row for row in report["rows"] if row["category"] == "all"]
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
