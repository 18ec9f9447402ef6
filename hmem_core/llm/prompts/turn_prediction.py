"""Which turns of an event are worth reading for a question? (HiGMem, guided retrieval)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from hmem_core.effects import Ask
from hmem_core.llm.prompts.rendering import (
    QUOTED,
    Prompt,
    ShownEvent,
    ShownFact,
    ShownTurn,
    event_line,
    fact_line,
    line,
    question_line,
    share,
    turn_line,
)
from hmem_core.llm.replies import offered

__all__ = ["CHARACTERS", "PROMPT", "Opened", "Predicted", "ask", "named"]

CHARACTERS = 9_000
"""Characters of the texts of all turns of one question, at most; of facts and of summaries, a third each."""
SUMMARY = 1500
"""Characters of a summary that are shown."""


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """An event, and what is read of it."""

    id: int
    summary: str = ""
    facts: tuple[ShownFact, ...] = ()
    """Its timeline, in order."""
    turns: tuple[ShownTurn, ...]
    """In the order of their times."""
    left_out: int = 0
    """Turns of it that are not shown."""


class Predicted(msgspec.Struct, frozen=True):
    """The turns worth reading."""

    turns: Annotated[
        list[int | Annotated[str, msgspec.Meta(max_length=200)]],
        # A small model counts on without end.
        msgspec.Meta(max_length=500, extra_json_schema={"askedItems": 32}),
    ]


PROMPT = Prompt(
    name="turn_prediction",
    version=1,
    system=f"""\
You search the memory of a conversation. You are shown a question and one event or several: what it is \
about, lines of its timeline if there are any, and turns that belong to it, each with its id, its time, who \
said it and what. Decide which turns are worth reading to answer the question.

A turn is worth reading if it states the answer, a part of it, or something from which it follows, such as \
when a thing happened or who is meant by "she" or "it"; with a short answer, the turn that asked for it. \
Mind who speaks and whom the question is about. When a turn was said is its time; "last week" in it means \
the week before that. A turn that is only about the same subject is not worth reading. Name few turns rather \
than many, and none if none helps. Name only ids of turns that are shown.

{QUOTED}

Reply with one JSON object and nothing else: {{"turns": [12, 31]}}, or {{"turns": []}} for none.""",
    reply=Predicted,
    max_tokens=512,
)


def ask(question: str, events: Sequence[Opened]) -> Ask:
    """Which turns of `events` are worth reading. Reply: `Predicted`; see `named`."""
    shown = [len(turn.text) for event in events for turn in event.turns]
    limit = share(shown, CHARACTERS)
    short = share((len(fact.fact) for event in events for fact in event.facts), CHARACTERS // 3)
    summary = min(SUMMARY, CHARACTERS // 3 // max(len(events), 1))
    lines = ["The question:", question_line(question)]
    for event in events:
        lines += ["", "An event:", event_line(ShownEvent(event.id, event.summary), summary)]
        lines += [fact_line(fact, short) for fact in event.facts]
        lines += ["Its turns:", *(turn_line(turn, limit) for turn in event.turns)]
        if event.left_out:
            lines.append(line({"left_out": event.left_out}))
    asked = PROMPT.ask("\n".join(lines))
    return msgspec.structs.replace(asked, max_tokens=min(8 * len(shown) + 64, PROMPT.max_tokens))


def named(reply: Predicted, events: Sequence[Opened]) -> list[int]:
    """The turns of `events` that a reply names, each once; others are dropped."""
    return offered(reply.turns, {turn.id for event in events for turn in event.turns})
