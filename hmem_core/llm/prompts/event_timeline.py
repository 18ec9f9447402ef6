"""What do new turns add to what happened in an event? Its summary stays (HiGMem, update, append only)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from hmem_core.effects import Ask
from hmem_core.llm.prompts.rendering import (
    QUOTED,
    SHOWN,
    Prompt,
    ShownEvent,
    ShownTurn,
    event_line,
    turn_line,
)

__all__ = ["CHARACTERS", "PROMPT", "TURNS", "Item", "Timeline", "ask"]

TURNS = 32
"""New turns that one question shows, at most."""
CHARACTERS = 9_000
"""Characters of all their texts together, about."""
SUMMARY = 1500
"""Characters of the summary that are shown."""


class Item(msgspec.Struct, frozen=True):
    """One line of a timeline."""

    turn: int
    fact: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    time: Annotated[str, msgspec.Meta(max_length=200)] | None = None


class Timeline(msgspec.Struct, frozen=True):
    """What new turns add to a timeline."""

    timeline: Annotated[list[Item], msgspec.Meta(max_length=100)]


PROMPT = Prompt(
    name="event_timeline",
    version=1,
    system=f"""\
You keep the memory of a conversation as events. You are shown one event and some new turns of it. Write the \
lines that the new turns add to the event's timeline: what they say that happened, was decided or is planned.

For each such fact give the id of the new turn that says it, the fact in one sentence with names in place of \
"he" or "it", and the time that it is about as a date (the time of a turn tells when it was said: put "last \
week" or "tomorrow" as the date it means), or null. Keep names, dates, numbers and places word for word. A \
turn that only greets or agrees needs no line. Add nothing that is not there. Write in the language of the \
turns.

{QUOTED}

Reply with one JSON object and nothing else: {{"timeline": [{{"turn": 12, "fact": "one sentence", \
"time": "2026-03-02"}}]}}, or {{"timeline": []}} if there is nothing to add.""",
    reply=Timeline,
    max_tokens=1024,
)


def ask(new: Sequence[ShownTurn], event: ShownEvent) -> Ask:
    """What `new` turns (`TURNS` at most) add to the timeline of `event`.

    Reply: `Timeline`; it may name turns that were not shown.
    """
    limit = min(SHOWN, CHARACTERS // max(len(new), 1))
    lines = ["The event:", event_line(event, SUMMARY), ""]
    lines += ["The new turns:", *(turn_line(turn, limit) for turn in new)]
    asked = PROMPT.ask("\n".join(lines))
    return msgspec.structs.replace(asked, max_tokens=96 * len(new) + 128)
