"""LoCoMo as typed records: conversations of dated sessions, and questions whose evidence is named by turn.

The data set is Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents"
(arXiv 2402.17753). It is not part of this project; see its own licence (CC BY-NC 4.0).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["CATEGORIES", "Conversation", "Question", "Turn", "load"]

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}

_EVIDENCE = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")


@dataclass(frozen=True)
class Turn:
    """One turn; a conversation holds them in order."""

    dia_id: str
    """``D<session>:<number>``, unique in its conversation."""
    session: int
    at: datetime
    """When the session began, in UTC; the data dates sessions, not turns."""
    speaker: str
    text: str
    caption: str | None = None
    """What a picture sent with the turn shows, in words."""

    @property
    def content(self) -> str:
        """The text, with the caption of its picture in brackets before it."""
        return f"[{self.caption}] {self.text}".rstrip() if self.caption else self.text

    @property
    def index_text(self) -> str:
        """Speaker and content: what retrieval is measured on."""
        return f"{self.speaker}: {self.content}"


@dataclass(frozen=True)
class Question:
    """A question, and the turns that answer it."""

    text: str
    answer: str
    """For an adversarial question the answer that would be wrong."""
    category: int
    """A key of `CATEGORIES`."""
    evidence: tuple[str, ...]
    """`Turn.dia_id`s in the order given, without repetition; all exist. Empty for a few questions."""


@dataclass(frozen=True)
class Conversation:
    """Two people over many months."""

    name: str
    speakers: tuple[str, str]
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def load(path: str | Path) -> list[Conversation]:
    """All conversations of a file in the format of ``locomo10.json``.

    Evidence is read leniently: some of it is malformed ("D8:6; D9:17", "D"), and some names turns that do not
    exist. What matches ``D<session>:<number>`` and exists is evidence, the rest is not.
    """
    samples = json.loads(Path(path).read_text(encoding="utf-8"))
    return [_conversation(sample) for sample in samples]


def _conversation(sample: dict[str, Any]) -> Conversation:
    source = sample["conversation"]
    sessions = sorted(int(m[1]) for key in source if (m := _SESSION.fullmatch(key)))
    turns = tuple(turn for session in sessions for turn in _turns(source, session))
    known = {turn.dia_id for turn in turns}
    return Conversation(
        name=sample["sample_id"],
        speakers=(source["speaker_a"], source["speaker_b"]),
        turns=turns,
        questions=tuple(_question(record, known) for record in sample["qa"]),
    )


def _turns(source: dict[str, Any], session: int) -> list[Turn]:
    began = source[f"session_{session}_date_time"]  # "1:56 pm on 8 May, 2023"
    at = datetime.strptime(began, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    return [
        Turn(
            dia_id=record["dia_id"],
            session=session,
            at=at,
            speaker=record["speaker"],
            text=record["text"],
            caption=record.get("blip_caption"),
        )
        for record in source[f"session_{session}"]
    ]


def _question(record: dict[str, Any], known: set[str]) -> Question:
    named = (dia_id for text in record["evidence"] for dia_id in _EVIDENCE.findall(text))
    return Question(
        text=record["question"],
        answer=str(record.get("answer", record.get("adversarial_answer", ""))),
        category=record["category"],
        evidence=tuple(dict.fromkeys(dia_id for dia_id in named if dia_id in known)),
    )
