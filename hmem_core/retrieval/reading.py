"""From rows of a view to the records a user sees."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from hmem_core.records import Evidence, Turn
from hmem_core.state import View
from hmem_core.times import datetime_of

__all__ = ["evidence", "turn"]


def turn(view: View, row: int) -> Turn | None:
    """The turn in `row`; None if it was forgotten."""
    text = view.text[row]
    if text is None or not view.narrow["live"][row]:
        return None
    metadata = view.metadata[row]
    return Turn(
        id=row,
        text=text,
        role=view.roles.text(int(view.narrow["role"][row])) or "user",
        speaker=view.speakers.text(int(view.narrow["speaker"][row])),
        session=view.sessions.text(int(view.narrow["session"][row])),
        at=datetime_of(view.narrow["at"][row]),
        key=view.key[row],
        part=int(view.narrow["part"][row]),
        metadata=msgspec.msgpack.decode(metadata) if metadata else {},
    )


def evidence(view: View, row: int, score: float, signals: Mapping[str, float] | None) -> Evidence | None:
    """The turn in `row` as evidence; None if it was forgotten meanwhile."""
    found = turn(view, row)
    if found is None or found.at is None:
        return None
    return Evidence(
        kind="turn",
        text=found.text,
        score=score,
        span=(row, row),
        turns=(row,),
        at=found.at,
        role=found.role,
        speaker=found.speaker,
        session=found.session,
        key=found.key,
        metadata=found.metadata,
        signals=signals,
    )
