"""What a memory with a language model does beside storing turns: segments, events and facts are made in the
same way, a bounded part of what is due with each `add`, and all of it by `settle`."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from hmem_core.effects import Program, gather
from hmem_core.options import EventOptions, FactOptions, SegmentOptions
from hmem_core.settling import events as of_events
from hmem_core.settling import facts as of_facts
from hmem_core.settling import segments as of_segments
from hmem_core.settling.segments import places
from hmem_core.store import Store

__all__ = ["Work", "catch_up", "places", "settle", "waiting"]


class Work(NamedTuple):
    """A memory, and what a model is to do for it."""

    store: Store
    segments: SegmentOptions
    events: EventOptions
    facts: FactOptions
    tz: dt.tzinfo


def waiting(work: Work) -> int:
    """How many segments, turns, events and contradictions of facts wait for the model."""
    return (
        of_segments.waiting(work.store, work.segments)
        + of_events.waiting(work.store, work.events)
        + of_facts.waiting(work.store, work.facts)
    )


def catch_up(work: Work, new: int) -> Program[int]:
    """Do a bounded part of what is due after `new` turns were added; returns how much. A model that fails
    costs nothing but that."""
    done = yield from gather(
        [
            of_segments.catch_up(work.store, work.segments, new),
            of_events.catch_up(work.store, work.events),
            of_facts.catch_up(work.store, work.facts, work.tz),
        ]
    )
    return sum(done)


def settle(work: Work) -> Program[int]:
    """Do all that is due; returns how many pieces of work that were.

    Raises:
        LLMError: the model failed; what it did by then is kept.
    """
    done = yield from gather(
        [
            of_segments.settle(work.store, work.segments),
            of_events.settle(work.store, work.events),
            of_facts.settle(work.store, work.facts, work.tz),
        ]
    )
    return sum(done)
