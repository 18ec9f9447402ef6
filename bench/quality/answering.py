"""Questions of LoCoMo, read under the guidance of a model, answered and graded by it.

What was answered is kept in a file (`answers.Record`), and what the model replied in a cache. So a run that
was stopped, by whatever, goes on where it was, and what was paid for is not paid again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import hmem_core as hmem
from bench.quality.answers import PROMPTS, Answered, Record, Settings
from bench.quality.guided import READINGS, Reading
from bench.quality.locomo_data import CATEGORIES, Conversation, Question
from bench.quality.protocol import SPLITS, asked_at, fill, halves, progress
from bench.quality.spending import accounted
from bench.quality.tables import markdown
from hmem_core.effects import Priority, Program
from hmem_core.embedding.base import Encoder
from hmem_core.errors import MalformedReply
from hmem_core.llm.prompts import answer_verdict, short_answer
from hmem_core.llm.prompts.rendering import ShownTurn
from hmem_core.memory import Memory
from hmem_core.methods import written
from hmem_core.options import EventOptions, SegmentOptions
from hmem_core.records import Evidence
from hmem_core.reports import Usage

__all__ = ["measure", "tables"]

FIGURES = ("recall", "precision", "turns", "f1", "set f1", "bleu-1", "judge")
BUILDING = "building the memory"


@dataclass(frozen=True)
class _Asked:
    split: str
    answered: Answered


def measure(
    conversations: Sequence[Conversation],
    encoder: Encoder,
    settings: Settings,
    record: Record,
    split: str = "all",
) -> dict[str, Any]:
    """The report: figures by split and category, and what was spent by purpose, in this run and in all.

    Raises:
        LLMError: the server is down, refuses, or a budget is spent; what was answered by then is recorded.
    """
    began = time.perf_counter()
    asked: list[_Asked] = []
    building = Usage()
    chosen = halves(conversations, split)
    new = 0
    for number, (half, conversation) in enumerate(chosen, 1):
        progress(number, len(chosen), conversation)
        questions = list(enumerate(conversation.questions))[: settings.questions]
        keys = [settings.key(conversation.name, place, question) for place, question in questions]
        waiting = [
            (key, question)
            for key, (_, question) in zip(keys, questions, strict=True)
            if key not in record.known
        ]
        if waiting:
            building += _answer(conversation, waiting, encoder, settings, record)
        new += len(waiting)
        asked += [_Asked(half, record.known[key]) for key in keys]
    return {
        "rows": list(_rows(asked, SPLITS if split == "all" else (split,))),
        "spent": list(_spent([one.answered for one in asked], building)),
        "reading": settings.reading,
        "model": settings.llm.model,
        "events": settings.events,
        "k": settings.k,
        "answered": {"now": new, "before": len(asked) - new},
        "encoder": encoder.identity.name,
        "seconds": round(time.perf_counter() - began, 1),
    }


def _answer(
    conversation: Conversation,
    waiting: Sequence[tuple[str, Question]],
    encoder: Encoder,
    settings: Settings,
    record: Record,
) -> Usage:
    """Answer and record; returns what building the memory took."""
    model = settings.events == "model"
    events = EventOptions() if model else EventOptions(affiliation="cosine", describe=False)
    segments = SegmentOptions(summarise=False)
    with hmem.open(
        encoder=encoder, llm=settings.llm, events=events, segments=segments, clock=asked_at(conversation)
    ) as memory:
        fill(memory, conversation)
        if model:
            memory.settle()
        stats = memory.stats().llm
        keys = {turn.id: str(turn.key) for turn in memory.turns()}

        def answer(key: str, question: Question) -> None:
            spent: dict[str, Usage] = {}
            program = accounted(_program(memory, question, settings), spent)
            answer, correct, hits = memory._run(program, Priority.SEARCH)
            record.add(
                Answered(
                    key=key,
                    conversation=conversation.name,
                    question=question.text,
                    expected=question.answer,
                    category=question.category,
                    answer=answer,
                    correct=correct,
                    keys=[keys[turn] for hit in hits for turn in hit.turns],
                    evidence=list(question.evidence),
                    spent=spent,
                )
            )

        with ThreadPoolExecutor(settings.llm.concurrency) as pool:
            futures = [pool.submit(answer, *one) for one in waiting]
            try:
                for future in futures:
                    future.result()
            finally:
                for future in futures:
                    future.cancel()
        return Usage() if stats is None else stats.total


def _program(
    memory: Memory, question: Question, settings: Settings
) -> Program[tuple[str, bool | None, list[Evidence]]]:
    """Read, answer and grade. An answer or a verdict that cannot be used is none."""
    hits = yield from _read(memory, question, READINGS[settings.reading], settings.k)
    hits.sort(key=lambda hit: (hit.at, hit.turns))
    shown = [ShownTurn(hit.turns[0], hit.at, hit.speaker or hit.role, hit.text) for hit in hits]
    try:
        reply: short_answer.Answer = yield short_answer.ask(question.text, shown)
    except MalformedReply:
        return "", False if settings.judge else None, hits
    if not settings.judge:
        return reply.answer, None, hits
    expected = None if question.category == 5 else question.answer
    try:
        verdict: answer_verdict.Verdict = yield answer_verdict.ask(question.text, expected, reply.answer)
    except MalformedReply:
        return reply.answer, None, hits
    return reply.answer, verdict.correct, hits


def _read(memory: Memory, question: Question, reading: Reading, k: int) -> Program[list[Evidence]]:
    if reading.options is None:
        found: list[Evidence] = yield from written(Memory.search).method(
            memory, question.text, k, view=reading.view
        )
        return found
    guided = yield from written(Memory.guided).method(
        memory, question.text, k, view=reading.view, options=reading.options
    )
    return list(guided.evidence)


def _rows(asked: Sequence[_Asked], splits: Sequence[str]) -> Iterator[dict[str, Any]]:
    for split in splits:
        for category in ("all", *CATEGORIES):
            some = [
                one.answered.figures()
                for one in asked
                if split in ("all", one.split) and category in ("all", one.answered.category)
            ]
            if some:
                means = {name: _mean([of[name] for of in some]) for name in FIGURES}
                yield {"split": split, "category": category, "questions": len(some), **means}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), 4) if known else None


def _spent(answered: Sequence[Answered], building: Usage) -> Iterator[dict[str, Any]]:
    total: dict[str, Usage] = {}
    for one in answered:
        for purpose, usage in one.spent.items():
            total[purpose] = total.get(purpose, Usage()) + usage
    questions = max(len(answered), 1)
    order = [prompt.name for prompt in PROMPTS if prompt.name in total]
    usages = {"all stages": sum(total.values(), Usage()), **{name: total[name] for name in order}}
    for name, usage in usages.items():
        yield {
            "purpose": name,
            "asks a question": round((usage.calls + usage.saved) / questions, 2),
            **_tokens(usage),
        }
    if building != Usage():
        yield {"purpose": f"{BUILDING}, in this run", "asks a question": None, **_tokens(building)}


def _tokens(usage: Usage) -> Mapping[str, Any]:
    return {
        "calls": usage.calls,
        "from the cache": usage.saved,
        "failed": usage.failures,
        "tokens read": usage.input_tokens,
        "tokens written": usage.output_tokens,
    }


def tables(report: dict[str, Any]) -> list[str]:
    """The report as tables: by split, by category, and what was spent."""
    rows, spent = report["rows"], report["spent"]
    head = ["questions", *FIGURES]

    def cells(row: dict[str, Any]) -> list[Any]:
        return ["–" if row[name] is None else row[name] for name in head]

    widest = rows[0]["split"] if rows else "all"
    return [
        markdown(["split", *head], ([row["split"], *cells(row)] for row in rows if row["category"] == "all")),
        markdown(
            ["category", *head],
            (
                [CATEGORIES[row["category"]], *cells(row)]
                for row in rows
                if row["category"] != "all" and row["split"] == widest
            ),
        ),
        markdown(list(spent[0]), (["–" if cell is None else cell for cell in row.values()] for row in spent)),
    ]
