"""LongMemEval as typed records: a user's chats with an assistant, and a question about them.

The data set is Wu et al., "LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory" (arXiv
2410.10813, MIT). It is not part of this project.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["Instance", "Session", "Turn", "load"]


@dataclass(frozen=True)
class Turn:
    """One message."""

    key: str
    """``<position of the session>:<number>``, unique in its instance."""
    role: str
    text: str
    answers: bool
    """Whether it holds the answer, or a part of it."""


@dataclass(frozen=True)
class Session:
    """One chat."""

    key: str
    """Its position and its name; a name may come twice."""
    name: str
    at: datetime
    """When it began, in UTC."""
    turns: tuple[Turn, ...]


@dataclass(frozen=True)
class Instance:
    """A question, and all that was said before it."""

    id: str
    kind: str
    """Such as ``"multi-session"``."""
    question: str
    answer: str
    at: datetime
    """When it is asked, in UTC."""
    sessions: tuple[Session, ...]
    """In the order of their times."""
    evidence: frozenset[str]
    """Keys of the sessions that answer it; empty for a question that nothing answers."""

    @property
    def turns(self) -> frozenset[str]:
        """Keys of the turns that answer it."""
        return frozenset(turn.key for session in self.sessions for turn in session.turns if turn.answers)


def load(path: str | Path) -> list[Instance]:
    """All instances of a file in the format of ``longmemeval_s.json``.

    A question whose id ends in ``_abs`` cannot be answered, so nothing is evidence for it.
    """
    return [_instance(record) for record in json.loads(Path(path).read_text(encoding="utf-8"))]


def _instance(record: dict[str, Any]) -> Instance:
    answerable = not record["question_id"].endswith("_abs")
    given = zip(
        record["haystack_dates"], record["haystack_session_ids"], record["haystack_sessions"], strict=True
    )
    ordered = sorted(((_time(date), name, turns) for date, name, turns in given), key=lambda one: one[0])
    sessions = tuple(
        Session(
            key=f"{position} {name}",
            name=name,
            at=at,
            turns=tuple(
                Turn(
                    key=f"{position}:{number}",
                    role=turn["role"],
                    text=turn["content"],
                    answers=answerable and bool(turn.get("has_answer")),
                )
                for number, turn in enumerate(turns)
                if turn["content"].strip()
            ),
        )
        for position, (at, name, turns) in enumerate(ordered)
    )
    named = set(record["answer_session_ids"]) if answerable else set()
    return Instance(
        id=record["question_id"],
        kind=record["question_type"],
        question=record["question"],
        answer=str(record["answer"]),
        at=_time(record["question_date"]),
        sessions=sessions,
        evidence=frozenset(session.key for session in sessions if session.name in named),
    )


def _time(text: str) -> datetime:
    """Of "2023/05/30 (Tue) 23:40"."""
    day, _, clock = text.split()
    return datetime.strptime(f"{day} {clock}", "%Y/%m/%d %H:%M").replace(tzinfo=UTC)
