"""What is an event about, and what happened in it? A description made anew (HiGMem, update, full refresh)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from hmem_core.effects import Ask
from hmem_core.llm.prompts.event_timeline import Item
from hmem_core.llm.prompts.rendering import (
    QUOTED,
    SHOWN,
    Prompt,
    ShownEvent,
    ShownFact,
    ShownTurn,
    event_line,
    fact_line,
    line,
    turn_line,
)
from hmem_core.llm.prompts.turn_analysis import Words

__all__ = ["CHARACTERS", "FACTS", "PROMPT", "TURNS", "Description", "ask"]

TURNS = 32
"""Turns that one question shows, at most."""
FACTS = 12
"""Lines of the timeline that one question shows, at most: the latest."""
CHARACTERS = 9_000
"""Characters of the texts of all turns together, about; of the rest, two thirds of it."""


class Description(msgspec.Struct, frozen=True):
    """What an event is about, and what its new turns add to its timeline."""

    summary: Annotated[str, msgspec.Meta(max_length=4000)] = ""
    keywords: Words = []
    tags: Words = []
    entities: Words = []
    timeline: Annotated[list[Item], msgspec.Meta(max_length=100)] = []


PROMPT = Prompt(
    name="event_description",
    version=2,
    system=f"""\
You keep the memory of a conversation as events. You are shown one event: what is known of it, turns that \
were read before, and new turns. Describe the event as it stands now, so that someone can find it again and \
know what happened.

- "summary": 2 or 3 sentences on the whole event, the earlier part too: who, what, when, how it stands. Keep \
names, dates, numbers and places word for word, and say who did or said what.
- "keywords": 3 to 8 words or names that the event is about, the most important first.
- "tags": the field of life that it belongs to, in one word; seldom 2.
- "entities": the people, places, organisations, works and products that matter in it.
- "timeline": what the new turns say that happened, was decided or is planned: for each such fact the id of \
the new turn that says it, the fact in one sentence with names in place of "he" or "it", and the time that \
it is about as a date (the time of a turn tells when it was said: put "last week" or "tomorrow" as the date \
it means), or null. A new turn that only greets or agrees needs no line; what the timeline has already \
needs none either.

Where turns contradict each other, the later ones hold; say what it was before. Add nothing that is not \
there. Write in the language of the turns.

{QUOTED}

Reply with one JSON object and nothing else: {{"summary": "2 or 3 sentences", "keywords": ["word"], \
"tags": ["topic"], "entities": ["name"], "timeline": [{{"turn": 12, "fact": "one sentence", \
"time": "2026-03-02"}}]}}.""",
    reply=Description,
    max_tokens=1024,
)


def ask(
    event: ShownEvent,
    new: Sequence[ShownTurn],
    known: Sequence[ShownTurn] = (),
    facts: Sequence[ShownFact] = (),
    left_out: int = 0,
) -> Ask:
    """What `event` is about, and what its `new` turns add to it (with `known`, `TURNS` at most).

    Args:
        known: turns of it that were read before, in order.
        facts: its timeline so far, in order; the last `FACTS` are shown.
        left_out: turns of it that are not shown.

    Reply: `Description`; its timeline may name turns that were not shown, and its summary may be empty.
    """
    limit = min(SHOWN, CHARACTERS // max(len(new) + len(known), 1))
    small = min(SHOWN, CHARACTERS // 3 // FACTS)
    lines = ["The event so far:", event_line(event, CHARACTERS // 3)]
    lines += [*(fact_line(fact, small) for fact in facts[-FACTS:]), ""]
    if left_out:
        lines += [line({"turns_left_out": left_out})]
    if known:
        lines += ["Turns that were read before:", *(turn_line(turn, limit) for turn in known), ""]
    lines += ["The new turns:", *(turn_line(turn, limit) for turn in new)]
    asked = PROMPT.ask("\n".join(lines))
    return msgspec.structs.replace(asked, max_tokens=96 * len(new) + 512)
