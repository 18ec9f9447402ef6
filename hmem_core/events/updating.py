"""What is said of an event, as a model says it (HiGMem, arXiv 2604.18349; several turns at once is ours).

While an event is small its whole description is made anew with each question; from `refresh_below` turns on
its summary is frozen, and its timeline alone grows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hmem_core.effects import Program
from hmem_core.errors import LLMError, LLMRefused, MalformedReply
from hmem_core.events.wording import sentence, words
from hmem_core.llm.prompts import event_description, event_timeline
from hmem_core.llm.prompts.event_description import Description
from hmem_core.llm.prompts.event_timeline import Item, Timeline
from hmem_core.llm.prompts.rendering import ShownEvent, ShownFact, ShownTurn

__all__ = ["NEW", "Described", "Fact", "Story", "describe"]

NEW = 24
"""Turns that one question tells of, at most."""
SUMMARY = 1200
"""Characters of a summary that are kept."""
FACT = 400
"""Characters of a line of the timeline that are kept."""
LINES = 3
"""Lines of the timeline that rest on one turn, at most."""

Show = Callable[[int], ShownTurn | None]
"""A turn as a prompt shows it, by its row; None if it was forgotten."""


class Story(NamedTuple):
    """An event as it stands."""

    event: int
    summary: str | None
    facts: tuple[ShownFact, ...]
    """The end of its timeline, if it is to be shown."""
    read: tuple[int, ...]
    """The turns that its summary and these facts rest on, ascending."""
    known: tuple[int, ...]
    """Its turns that were read, ascending."""
    unread: tuple[int, ...]
    """Its turns that were not, ascending."""


class Fact(NamedTuple):
    """A line of a timeline."""

    turn: int
    time: str | None
    fact: str


class Described(NamedTuple):
    """What a question about an event has brought."""

    event: int
    summary: str | None
    """None: the one it has stays."""
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    timeline: tuple[Fact, ...]
    """New lines."""
    read: tuple[int, ...]
    """The turns that this rests on, ascending."""


def describe(story: Story, show: Show, refresh_below: int) -> Program[Described]:
    """What the first unread turns of an event add to it.

    If no reply can be used, fewer turns are asked about; if not about one turn either, it counts as read and
    adds nothing, so that it does not hold up others.

    Args:
        refresh_below: with fewer turns than this before the new ones, the description is made anew.

    Raises:
        LLMError: the model cannot be asked now.
    """
    count = NEW
    while True:
        new = story.unread[:count]
        shown = [turn for row in new if (turn := show(row)) is not None]
        if not shown:  # all were forgotten in this moment
            return Described(story.event, None, (), (), (), (), new)
        try:
            if story.summary is None or len(story.known) < refresh_below:
                return (yield from _anew(story, new, shown, show))
            return (yield from _appended(story, new, shown))
        except LLMError as error:
            if not isinstance(error, (MalformedReply, LLMRefused)):
                raise
            if len(new) == 1:
                if isinstance(error, LLMRefused):
                    raise
                return Described(story.event, None, (), (), (), (), new)
        count = max(len(new) // 4, 1)


def _anew(story: Story, new: Sequence[int], shown: Sequence[ShownTurn], show: Show) -> Program[Described]:
    room = event_description.TURNS - len(new)
    rows = story.known[max(len(story.known) - room, 0) :]
    known = [turn for row in rows if (turn := show(row)) is not None]
    summary = story.summary or ""
    reply: Description = yield event_description.ask(
        ShownEvent(story.event, summary),
        shown,
        known,
        story.facts,
        left_out=len(story.known) - len(rows),
    )
    read = {*new, *rows, *story.read}
    return Described(
        story.event,
        sentence(reply.summary, SUMMARY) or None,
        words(reply.keywords),
        words(reply.tags),
        words(reply.entities),
        _lines(reply.timeline, new),
        tuple(sorted(read)),
    )


def _appended(story: Story, new: Sequence[int], shown: Sequence[ShownTurn]) -> Program[Described]:
    reply: Timeline = yield event_timeline.ask(shown, ShownEvent(story.event, story.summary or ""))
    timeline = _lines(reply.timeline, new)
    return Described(story.event, None, (), (), (), timeline, tuple(sorted({*new, *story.read})))


def _lines(items: Sequence[Item], new: Sequence[int]) -> tuple[Fact, ...]:
    """The lines that rest on one of the `new` turns and say something, by turn."""
    found: dict[int, list[Fact]] = {turn: [] for turn in new}
    for item in items:
        lines = found.get(item.turn)
        fact = sentence(item.fact, FACT)
        if lines is not None and len(lines) < LINES and fact and fact not in (line.fact for line in lines):
            lines.append(Fact(item.turn, sentence(item.time or "", 40) or None, fact))
    return tuple(line for lines in found.values() for line in lines)
