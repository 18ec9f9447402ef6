"""From rows of a view to the records a user sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from hmem_core.errors import InvalidInput, TurnForgotten, TurnNotFound
from hmem_core.records import Evidence, Turn
from hmem_core.retrieval.views import Hit
from hmem_core.state import View
from hmem_core.times import datetime_of

__all__ = ["evidence", "lead_ins", "row", "turn"]


_SHORT = 6.0
"""A turn of fewer terms says little alone."""


def row(view: View, id: Any) -> int:
    """The row of the turn with that id.

    Raises:
        TurnNotFound: it was never stored.
        TurnForgotten: it was stored and forgotten.
        InvalidInput: `id` is not a whole number.
    """
    if isinstance(id, bool) or not isinstance(id, (int, np.integer)):
        raise InvalidInput(f"id={id!r} is not a turn id; ids are whole numbers")
    if not 0 <= id < view.rows:
        given = f"the memory has given out ids 0 to {view.rows - 1}" if view.rows else "the memory is empty"
        raise TurnNotFound(f"there is no turn {id}; {given}")
    if not view.narrow["live"][id]:
        raise TurnForgotten(f"turn {id} was forgotten")
    return int(id)


def turn(view: View, row: int) -> Turn | None:
    """The turn in `row`; None if it was forgotten."""
    text = view.text[row]
    if text is None:
        return None
    metadata = view.metadata[row]
    found = Turn(
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
    # Last: a row that is forgotten meanwhile is dead before anything else of it is gone.
    return found if view.narrow["live"][row] else None


def evidence(view: View, hit: Hit, *, explain: bool) -> Evidence | None:
    """What a view found, as a user sees it; None if it was forgotten meanwhile.

    A segment's text is that of its turns, one a line with its speaker; its time, role and session are those
    of its first turn, and it has a speaker if all its turns have the same.
    """
    turns = [found for row in hit.rows if (found := turn(view, row)) is not None]
    if not turns:
        return None
    first = turns[0]
    assert first.at is not None
    single = len(turns) == 1
    speakers = {one.speaker for one in turns}
    return Evidence(
        kind="turn" if single else "segment",
        text=first.text if single else "\n".join(f"{one.speaker or one.role}: {one.text}" for one in turns),
        score=hit.score,
        span=(first.id, turns[-1].id),
        turns=tuple(one.id for one in turns),
        repeats=hit.repeats,
        at=first.at,
        role=first.role,
        speaker=speakers.pop() if len(speakers) == 1 else None,
        session=first.session,
        key=first.key if single else None,
        metadata=first.metadata if single else {},
        signals=hit.signals if explain else None,
    )


def lead_ins(view: View, found: Sequence[Evidence], allowed: npt.NDArray[np.uint8]) -> dict[int, Evidence]:
    """By turn id, the turn before it in its session, for turns that say little alone: those that answer a
    question, and short ones. Turns that are not allowed lead in to nothing."""
    narrow = view.narrow
    leads = {}
    for piece in found:
        if piece.kind != "turn":
            continue
        row = piece.turns[0]
        before = int(narrow["previous"][row])
        if before < 0 or not allowed[before]:
            continue
        if narrow["asks"][before] or narrow["length"][row] < _SHORT:
            lead = evidence(view, Hit((before, before), (before,), piece.score, {}), explain=False)
            if lead is not None:
                leads[row] = lead
    return leads
