"""What a memory with a language model does beside storing turns: segments and events are made in the same
way, a bounded part of what is due with each `add`, and all of it by `settle`."""

from __future__ import annotations

from hmem_core.effects import Program, gather
from hmem_core.options import EventOptions, SegmentOptions
from hmem_core.settling import events as of_events
from hmem_core.settling import segments as of_segments
from hmem_core.settling.segments import places
from hmem_core.store import Store

__all__ = ["catch_up", "places", "settle", "waiting"]


def waiting(store: Store, segments: SegmentOptions, events: EventOptions) -> int:
    """How many segments, turns and events wait for the model."""
    return of_segments.waiting(store, segments) + of_events.waiting(store, events)


def catch_up(store: Store, segments: SegmentOptions, events: EventOptions, new: int) -> Program[int]:
    """Do a bounded part of what is due after `new` turns were added; returns how much. A model that fails
    costs nothing but that."""
    done = yield from gather([of_segments.catch_up(store, segments, new), of_events.catch_up(store, events)])
    return sum(done)


def settle(store: Store, segments: SegmentOptions, events: EventOptions) -> Program[int]:
    """Do all that is due; returns how many pieces of work that were.

    Raises:
        LLMError: the model failed; what it did by then is kept.
    """
    done = yield from gather([of_segments.settle(store, segments), of_events.settle(store, events)])
    return sum(done)
