"""Guided readings of LoCoMo, and what their stages find with a judge in place of the model."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import hmem_core as hmem
from bench.quality.judges import Judge, Judged
from bench.quality.locomo_data import CATEGORIES, Conversation, Question
from bench.quality.protocol import SHOWN, SPLITS, asked_at, fill, halves, progress
from bench.quality.tables import markdown
from hmem_core.embedding.base import Encoder
from hmem_core.options import GuidedOptions

__all__ = ["READINGS", "Reading", "measure", "tables"]

FAITHFUL = GuidedOptions.faithful()


@dataclass(frozen=True)
class Reading:
    """One way to read."""

    view: str
    """As `Memory.search` knows it."""
    options: GuidedOptions | None
    """None: without a model."""


READINGS = {
    "unguided": Reading("fused", None),
    "guided": Reading("fused", GuidedOptions()),
    "guided, no events": Reading("fused", GuidedOptions(events=False)),
    "guided, no prediction": Reading("fused", GuidedOptions(prediction=False)),
    "guided, no filter": Reading("fused", GuidedOptions(filter=False)),
    "faithful": Reading("dense", FAITHFUL),
    "faithful, no events": Reading(
        "dense", GuidedOptions(query="keywords", events=False, predicted=0.0, candidates=4096)
    ),
}

STAGES = ("vectors", "prediction", "filter", f"shown, k={SHOWN}")
FIGURES = ("recall", "precision", "turns")


@dataclass(frozen=True)
class _Measured:
    split: str
    category: int
    asks: int
    stages: Mapping[str, tuple[float, float, int]]
    """Recall, precision and number of turns after each stage."""


def measure(
    conversations: Sequence[Conversation],
    encoder: Encoder,
    judge: Judge,
    readings: Iterable[str],
    split: str = "all",
) -> dict[str, Any]:
    """The report: what each reading's stages find, with events as they are made without a model."""
    began = time.perf_counter()
    names = tuple(readings)
    found: dict[str, list[_Measured]] = {name: [] for name in names}
    chosen = halves(conversations, split)
    for number, (half, conversation) in enumerate(chosen, 1):
        progress(number, len(chosen), conversation)
        with hmem.open(encoder=encoder, clock=asked_at(conversation)) as memory:
            fill(memory, conversation)
            driver = Judged(encoder.embed, judge)
            memory._driver = driver  # type: ignore[assignment]  # it does what is asked of one here
            ids = {turn.key: turn.id for turn in memory.turns()}
            for question in conversation.questions:
                if question.evidence:
                    driver.question = f"{conversation.name}: {question.text}"
                    driver.gold = frozenset(ids[key] for key in question.evidence)
                    for name in names:
                        found[name].append(_measured(memory, driver, half, question, READINGS[name]))
    return {
        "rows": list(_rows(found, SPLITS if split == "all" else (split,))),
        "judge": {"miss": judge.miss, "wrong": judge.wrong, "seed": judge.seed},
        "encoder": encoder.identity.name,
        "seconds": round(time.perf_counter() - began, 1),
    }


def _measured(
    memory: hmem.Memory, driver: Judged, half: str, question: Question, reading: Reading
) -> _Measured:
    before = driver.asks
    if reading.options is None:
        hits = memory.search(question.text, SHOWN, view=reading.view)
        left = {}
    else:
        guided = memory.guided(question.text, SHOWN, view=reading.view, options=reading.options)
        hits = list(guided.evidence)
        left = {stage.name: stage.turns for stage in guided.stages if stage.name in STAGES}
    left[STAGES[-1]] = tuple(turn for hit in hits for turn in hit.turns)
    return _Measured(
        half,
        question.category,
        driver.asks - before,
        {name: _figures(set(turns), set(driver.gold)) for name, turns in left.items()},
    )


def _figures(turns: set[int], gold: set[int]) -> tuple[float, float, int]:
    right = len(turns & gold)
    return right / len(gold), right / max(len(turns), 1), len(turns)


def _rows(found: Mapping[str, Sequence[_Measured]], splits: Sequence[str]) -> Iterator[dict[str, Any]]:
    for name, measured in found.items():
        for split in splits:
            for category in ("all", *CATEGORIES):
                some = [
                    one
                    for one in measured
                    if split in ("all", one.split) and category in ("all", one.category)
                ]
                for stage in STAGES if some else ():
                    if stage not in some[0].stages:
                        continue
                    means = (
                        fmean(column) for column in zip(*(one.stages[stage] for one in some), strict=True)
                    )
                    yield {
                        "reading": name,
                        "split": split,
                        "category": category,
                        "questions": len(some),
                        "stage": stage,
                        **{figure: round(mean, 4) for figure, mean in zip(FIGURES, means, strict=True)},
                        "asks": round(fmean(one.asks for one in some), 2),
                    }


def tables(report: dict[str, Any]) -> list[str]:
    """The report as tables: the stages of each reading, and the recall of what is kept by category."""
    rows = report["rows"]
    overall = [row for row in rows if row["category"] == "all"]
    widest = overall[0]["split"] if overall else "all"
    shown = [
        markdown(
            ["reading", "split", "stage", *FIGURES, "asks"],
            (
                [row[name] for name in ("reading", "split", "stage", *FIGURES, "asks")]
                for row in overall
                if row["split"] == widest
            ),
        )
    ]
    last = [row for row in rows if row["split"] == widest and row["stage"] == STAGES[-1]]
    counts = {row["category"]: row["questions"] for row in last if row["category"] != "all"}
    by_name: dict[str, dict[Any, float]] = {}
    for row in last:
        by_name.setdefault(row["reading"], {})[row["category"]] = row["recall"]
    head = [f"recall, k={SHOWN}", *(f"{CATEGORIES[one]} ({count})" for one, count in counts.items())]
    shown.append(markdown(head, ([name, *(of[one] for one in counts)] for name, of in by_name.items())))
    return shown
