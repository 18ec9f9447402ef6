"""Answers to the questions of LoCoMo: how they are come to, how they are kept, what they score."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from threading import Lock

import msgspec

from bench.quality import scores
from bench.quality.guided import READINGS
from bench.quality.locomo_data import Question
from bench.quality.protocol import SHOWN
from hmem_core.llm.prompts import (
    answer_verdict,
    question_keywords,
    short_answer,
    turn_filter,
    turn_prediction,
)
from hmem_core.options import LLM
from hmem_core.reports import Usage

__all__ = ["PROMPTS", "Answered", "Record", "Settings"]

PROMPTS = [
    one.PROMPT for one in (question_keywords, turn_prediction, turn_filter, short_answer, answer_verdict)
]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How questions are read, answered and graded."""

    llm: LLM
    reading: str = "guided"
    """A key of `READINGS`."""
    k: int = SHOWN
    """Turns that an answer is read from, at most."""
    events: str = "cosine"
    """``"model"``: the model builds the events too."""
    judge: bool = True
    """Let the model grade answers."""
    questions: int | None = None
    """Of each conversation, so many questions; None for all."""

    def key(self, conversation: str, number: int, question: Question) -> str:
        """Tells apart what was answered under other circumstances."""
        llm = {"model": self.llm.model, "temperature": self.llm.temperature, "extra": dict(self.llm.extra)}
        reading = READINGS[self.reading]
        told = [
            llm,
            [reading.view, repr(reading.options), self.k, self.events, self.judge],
            [(prompt.name, prompt.version) for prompt in PROMPTS],
            [conversation, number, question.text],
        ]
        return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """One question, as it was answered."""

    key: str
    conversation: str
    question: str
    expected: str
    category: int
    answer: str
    correct: bool | None
    """By the model; None if it was not asked, or gave no verdict."""
    keys: list[str]
    """The turns that were read, by their ids in the data."""
    evidence: list[str]
    spent: dict[str, Usage]
    """By purpose."""

    def figures(self) -> dict[str, float | None]:
        """What it scores. Recall and precision are None without evidence, the verdict without a judge."""
        wanted = short_answer.NOT_MENTIONED if self.category == 5 else self.expected
        gold, got = set(self.evidence), set(self.keys)
        return {
            "recall": len(gold & got) / len(gold) if gold else None,
            "precision": len(gold & got) / max(len(got), 1) if gold else None,
            "turns": float(len(got)),
            "f1": scores.official(self.answer, self.expected, self.category),
            "set f1": scores.set_f1(self.answer, wanted),
            "bleu-1": scores.bleu1(self.answer, wanted),
            "judge": None if self.correct is None else float(self.correct),
        }


class Record:
    """Answers in a file, one a line. A line that was cut by a crash is answered anew."""

    def __init__(self, path: Path) -> None:
        self._lock = Lock()
        self.known: dict[str, Answered] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_bytes().split(b"\n") if path.exists() else []
        for line in lines:
            try:
                one = msgspec.json.decode(line, type=Answered)
            except msgspec.DecodeError:
                continue
            self.known[one.key] = one
        self._file = path.open("ab")
        if lines and lines[-1]:
            self._file.write(b"\n")

    def add(self, one: Answered) -> None:
        with self._lock:
            self.known[one.key] = one
            self._file.write(msgspec.json.encode(one) + b"\n")
            self._file.flush()

    def close(self) -> None:
        self._file.close()
