"""To which events do turns belong? Asked of one turn, or of several in one question (HiGMem, affiliation)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import msgspec

from hmem_core.effects import Ask
from hmem_core.llm.fitting import as_id
from hmem_core.llm.prompts.rendering import (
    QUOTED,
    SHOWN,
    Prompt,
    ShownEvent,
    ShownTurn,
    event_line,
    line,
    turn_line,
)

__all__ = ["CHARACTERS", "EVENTS", "PROMPT", "TURNS", "Affiliated", "Affiliations", "ask", "named"]

TURNS = 32
"""Turns that one question asks about, at most."""
EVENTS = 24
"""Events that one question shows, at most."""
CHARACTERS = 9_000
"""Characters of the texts of all turns together, about; of all events', two thirds of it."""
SUMMARY = 600
"""Characters of a summary that are shown, at most."""

Name = int | Annotated[str, msgspec.Meta(max_length=200)]


class Affiliated(msgspec.Struct, frozen=True):
    """The events of one turn: numbers, or words for new ones."""

    id: int
    events: Annotated[list[Name], msgspec.Meta(max_length=100)]


class Affiliations(msgspec.Struct, frozen=True):
    """The events of each turn."""

    turns: Annotated[list[Affiliated], msgspec.Meta(max_length=200)]


PROMPT = Prompt(
    name="event_affiliation",
    version=1,
    system=f"""\
You sort the turns of a conversation into events. An event is something that goes on in the lives or the \
work of the speakers and that turns speak of, now or weeks apart: a trip, a job search, an illness, a task, \
a discussion of one subject. You are shown events that exist, and some new turns. For each new turn, decide \
which events it belongs to.

A turn belongs to an event if it tells, asks or answers something about it, or goes on with the talk about \
it; a short answer belongs where its question does. Most turns belong to one event; name several only if the \
turn says something about each of them. If it belongs to none that exists, it begins a new event: write \
"new1" for the first new event, "new2" for the next, and use the same word for every turn that belongs to \
the same new event.

{QUOTED}

Reply with one JSON object and nothing else, with an entry for every new turn, under its id: \
{{"turns": [{{"id": 12, "events": [3]}}, {{"id": 13, "events": ["new1"]}}]}}.""",
    reply=Affiliations,
    max_tokens=512,
)


_NEW = re.compile(r"\W*new(?:[\s_-]*event)?[\s_-]*(\d{0,4})\W*", re.ASCII | re.IGNORECASE)


def named(name: int | str) -> int | str | None:
    """The event that a reply means: a number, however it is written; ``"new"`` with a number for a new one;
    None for anything else."""
    if (number := as_id(name)) is not None:
        return number
    match = _NEW.fullmatch(str(name))
    return None if match is None else f"new{int(match[1] or 1)}"


def ask(
    turns: Sequence[ShownTurn],
    events: Sequence[ShownEvent],
    updated: int | None = None,
    before: Sequence[ShownTurn] = (),
) -> Ask:
    """To which of `events` (`EVENTS` at most) each of `turns` (`TURNS` at most) belongs.

    Args:
        updated: the event that got a turn last.
        before: turns said just before, in order.

    Reply: `Affiliations`; it may name turns and events that were not shown, and lack some.
    """
    limit = min(SUMMARY, CHARACTERS * 2 // 3 // max(len(events) * 2, 1))
    lines = ["The events:", *(event_line(event, limit) for event in events)]
    if not events:
        lines.append("There are none so far.")
    if updated is not None:
        lines += ["", "The event that got a turn last:", line({"event": updated})]
    if before:
        near = min(SHOWN, CHARACTERS // 3 // len(before))
        lines += ["", "Said before:", *(turn_line(turn, near) for turn in before)]
    limit = min(SHOWN, CHARACTERS // max(len(turns), 1))
    lines += ["", "The new turns:", *(turn_line(turn, limit) for turn in turns)]
    asked = PROMPT.ask("\n".join(lines))
    return msgspec.structs.replace(asked, max_tokens=32 * len(turns) + 96)
