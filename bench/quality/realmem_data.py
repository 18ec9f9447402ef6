"""RealMem as typed records: the dated sessions of one person with an assistant, and what each query draws on.

The data set (Apache-2.0) is not part of this project.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

__all__ = ["Query", "Session", "load"]


@dataclass(frozen=True)
class Session:
    """One sitting."""

    id: str
    at: datetime
    """The day, in UTC."""
    turns: tuple[tuple[str, str], ...]
    """Speaker and text of each."""


@dataclass(frozen=True)
class Query:
    """A user turn whose reply rests on earlier sessions."""

    text: str
    before: int
    """Position of the session in which it is asked: only sessions before that can be found."""
    evidence: tuple[int, ...]
    """Positions of the sessions the reply rests on, all below `before`."""


def load(path: str | Path) -> tuple[list[Session], list[Query]]:
    """All sessions of a person in order, and all queries that have evidence.

    The reply carries the evidence; the query is the turn before it.
    """
    dialogues = json.loads(Path(path).read_text(encoding="utf-8"))["dialogues"]
    positions = {record["session_uuid"]: i for i, record in enumerate(dialogues)}
    sessions, queries = [], []
    for i, record in enumerate(dialogues):
        at = datetime.fromisoformat(record["current_time"].split()[0]).replace(tzinfo=UTC)
        turns = record["dialogue_turns"]
        sessions.append(
            Session(record["session_uuid"], at, tuple((turn["speaker"], turn["content"]) for turn in turns))
        )
        for query, reply in pairwise(turns):
            named = {positions.get(uuid, i) for uuid in reply.get("memory_session_uuids") or ()}
            evidence = tuple(sorted(position for position in named if position < i))
            if evidence:
                queries.append(Query(query["content"], i, evidence))
    return sessions, queries
