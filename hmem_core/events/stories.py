"""What is known of an event, put together for questions about it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hmem_core.events.updating import Story
from hmem_core.llm.prompts import event_description
from hmem_core.llm.prompts.rendering import ShownEvent, ShownFact, ShownTurn
from hmem_core.state import View

__all__ = ["offer", "story"]

LATEST = 2
"""Of an event's turns that its summary does not tell of, so many are shown beside it: the latest."""

Show = Callable[[int], ShownTurn | None]
"""A turn as a prompt shows it, by its row; None if it was forgotten."""


def story(view: View, event: int, refresh_below: int, show: Show) -> Story:
    """An event as it stands.

    Args:
        refresh_below: with fewer turns than this before the new ones, the description is made anew, and so
            its timeline is needed.
    """
    linked = np.unique(view.events.links.turns_of(event))
    turns = linked[view.narrow["live"][linked] == 1].tolist()
    told = view.events.descriptions_of(event)
    covered = {turn for entry in told for turn in entry.read}
    summarised = [entry for entry in told if entry.summary is not None]
    known = tuple(turn for turn in turns if turn in covered)
    read = set(summarised[-1].read) if summarised else set()
    facts: list[ShownFact] = []
    if len(known) < refresh_below:
        for entry in told:
            read |= {*entry.read, *(item.turn for item in entry.timeline)}
            for item in entry.timeline:
                if (turn := show(item.turn)) is not None:
                    facts.append(ShownFact(item.turn, item.time or turn.at.date().isoformat(), item.fact))
    return Story(
        event,
        summarised[-1].summary if summarised else None,
        tuple(facts[-event_description.FACTS :]),
        tuple(sorted(read)),
        known,
        tuple(turn for turn in turns if turn not in covered),
    )


def offer(view: View, event: int, show: Show) -> ShownEvent:
    """An event to choose among others: its summary, and the latest turns that it does not tell of."""
    told = story(view, event, 0, show)
    latest = [turn for row in told.unread[-LATEST:] if (turn := show(row)) is not None]
    if told.summary is None and not latest:
        latest = [turn for row in told.known[-LATEST:] if (turn := show(row)) is not None]
    lines = (f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text for turn in latest)
    return ShownEvent(event, told.summary or "", tuple(lines))
