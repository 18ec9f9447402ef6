"""Ways to find, views of a memory and baselines alike, and what they show of the evidence, in figures."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np

import hmem_core as hmem
from bench.quality.baselines import BASELINES, Corpus
from bench.quality.baselines.base import Asked
from bench.quality.locomo_data import CATEGORIES, Conversation, Question
from bench.quality.protocol import SHOWN, asked_at, fill, halves, progress
from hmem_core.embedding.base import Encoder
from hmem_core.options import ReadingOptions
from hmem_core.records import Evidence, Turn, index_text
from hmem_core.retrieval.context import pack
from hmem_core.retrieval.tokens import estimate_tokens

__all__ = [
    "CUTS",
    "FEW",
    "FIGURES",
    "VIEWS",
    "Answered",
    "Beside",
    "Moment",
    "Search",
    "View",
    "answered",
    "change",
    "counted",
    "everything",
    "figures_of",
    "rows_of",
    "searches",
]

CUTS = (5, 8, 10, 20)
FIGURES = (*(f"recall@{cut}" for cut in CUTS), f"precision@{SHOWN}", "turns", "tokens")
FEW = (SHOWN, 20)
"""Cuts where many ways to find are compared, each asked anew."""
counted = lru_cache(maxsize=1 << 16)(estimate_tokens)
"""`estimate_tokens`; the same lines come again and again."""


@dataclass(frozen=True)
class View:
    """One way to ask."""

    name: str
    """As `Memory.search` knows it."""
    reading: ReadingOptions = ReadingOptions()
    anew: bool = True
    """What is shown at k need not be the beginning of what is shown at more: segments fill a cut differently,
    and turns are selected for variety. So it is asked anew for every k."""


VIEWS = {
    "dense": View("dense", anew=False),
    "lexical": View("lexical", anew=False),
    "time-none": View("time", ReadingOptions(policy="none")),
    "time-top-down": View("time", ReadingOptions(policy="top-down")),
    "time-bottom-up": View("time", ReadingOptions(policy="bottom-up")),
    "time-auto": View("time", ReadingOptions(policy="auto")),
    "events": View("events"),
    "fused-no-events": View("fused", ReadingOptions(event=0.0)),
    "fused": View("fused"),
}


class Moment(NamedTuple):
    """A state of a memory while it grew."""

    seq: int
    turns: int
    at: datetime
    """When it is asked."""


class Beside:
    """Baselines over the turns of a memory: the same texts and the same vectors, rounded as the memory's."""

    def __init__(self, memory: hmem.Memory, encoder: Encoder, names: Iterable[str]) -> None:
        self._turns = sorted(memory.turns(), key=lambda turn: turn.id or 0)
        self._encoder = encoder
        texts = [index_text(turn.text, turn.speaker) for turn in self._turns]
        vectors = encoder.embed(texts).astype(np.float16).astype(np.float32)
        corpus = Corpus(texts, vectors)
        self._finds = {name: BASELINES[name](corpus) for name in names}

    def search(self, name: str, query: str, k: int, before: int | None = None) -> list[Evidence]:
        """What a baseline finds among the first `before` turns, best first."""
        vector = self._encoder.embed([query])[0]
        found = self._finds[name](Asked(query, vector, k, len(self._turns) if before is None else before))
        return [_evidence(self._turns[place], len(found) - rank) for rank, place in enumerate(found)]


def everything(memory: hmem.Memory) -> list[Evidence]:
    """All turns of a memory, the earliest first."""
    return [_evidence(turn, 0.0) for turn in memory.turns()]


def _evidence(turn: Turn, score: float) -> Evidence:
    assert turn.id is not None
    assert turn.at is not None
    return Evidence(
        kind="turn",
        text=turn.text,
        score=score,
        span=(turn.id, turn.id),
        turns=(turn.id,),
        at=turn.at,
        role=turn.role,
        speaker=turn.speaker,
        session=turn.session,
        key=turn.key,
    )


class Search(NamedTuple):
    """Something that finds, ready to be asked."""

    find: Callable[[str, int], list[Evidence]]
    anew: bool
    """As `View.anew`."""


def searches(
    memory: hmem.Memory,
    views: Mapping[str, View],
    baselines: Sequence[str] = (),
    encoder: Encoder | None = None,
) -> dict[str, Search]:
    """Views and baselines of one memory by their names."""
    found = {name: Search(_search_of(memory, view), view.anew) for name, view in views.items()}
    if baselines:
        assert encoder is not None
        beside = Beside(memory, encoder, baselines)
        for name in baselines:
            found[name] = Search(_baseline_of(beside, name), anew=name == "full-context")
    return found


def _search_of(memory: hmem.Memory, view: View) -> Callable[[str, int], list[Evidence]]:
    return lambda query, k: memory.search(query, k=k, view=view.name, reading=view.reading)


def _baseline_of(beside: Beside, name: str) -> Callable[[str, int], list[Evidence]]:
    return lambda query, k: beside.search(name, query, k)


# -- figures -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answered:
    """What a view showed for a question, in figures."""

    view: str
    split: str
    category: int
    figures: dict[str, float]


def answered(
    conversations: Sequence[Conversation],
    encoder: Encoder,
    views: Mapping[str, View],
    split: str = "all",
    baselines: Sequence[str] = (),
    cuts: Sequence[int] = CUTS,
) -> list[Answered]:
    """All questions with evidence, asked of all views and baselines; the questions of each in one order."""
    chosen = halves(conversations, split)
    found: list[Answered] = []
    for number, (half, conversation) in enumerate(chosen, 1):
        progress(number, len(chosen), conversation)
        with hmem.open(encoder=encoder, clock=asked_at(conversation)) as memory:
            fill(memory, conversation)
            keys = {turn.id: turn.key for turn in memory.turns() if turn.id is not None}
            for name, search in searches(memory, views, baselines, encoder).items():
                for question in conversation.questions:
                    if question.evidence:
                        figures = figures_of(search, keys, question, cuts)
                        found.append(Answered(name, half, question.category, figures))
    return found


def figures_of(
    search: Search, keys: Mapping[int, str | None], question: Question, cuts: Sequence[int] = CUTS
) -> dict[str, float]:
    """Recall at each cut, and what is shown at `SHOWN`."""
    if search.anew:
        shown = {cut: search.find(question.text, cut) for cut in cuts}
    else:
        ranked = search.find(question.text, max(cuts))
        shown = {cut: ranked[:cut] for cut in cuts}
    ids = {cut: {keys[turn] for one in shown[cut] for turn in one.turns} for cut in cuts}
    gold = set(question.evidence)
    context = pack(shown[SHOWN], sys.maxsize, counted, UTC)
    return {
        **{f"recall@{cut}": len(gold & ids[cut]) / len(gold) for cut in cuts},
        f"precision@{SHOWN}": len(gold & ids[SHOWN]) / max(len(ids[SHOWN]), 1),
        "turns": len(ids[SHOWN]),
        "tokens": context.tokens,
    }


def rows_of(found: Sequence[Answered], splits: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A row of means for each view, split and category that has questions."""
    for view in dict.fromkeys(one.view for one in found):
        of_view = [one for one in found if one.view == view]
        for split in splits:
            for category in ("all", *CATEGORIES):
                chosen = [
                    one.figures
                    for one in of_view
                    if split in ("all", one.split) and category in ("all", one.category)
                ]
                if chosen:
                    yield {
                        "view": view,
                        "split": split,
                        "category": category,
                        "questions": len(chosen),
                        **{name: round(fmean(of[name] for of in chosen), 4) for name in chosen[0]},
                    }


def change(found: Sequence[Answered], view: str, other: str, split: str, figure: str) -> dict[str, Any]:
    """By how much `other` differs from `view` in a figure: mean over questions, and its standard error."""
    pairs = zip(
        *(
            [one.figures[figure] for one in found if one.view == name and split in ("all", one.split)]
            for name in (view, other)
        ),
        strict=True,
    )
    differences = [b - a for a, b in pairs]
    error = stdev(differences) / math.sqrt(len(differences)) if len(differences) > 1 else 0.0
    return {
        "view": other,
        "beside": view,
        "split": split,
        "figure": figure,
        "change": round(fmean(differences), 4),
        "error": round(error, 4),
    }
