"""What waits for a language model: turns that no model has read, turns without an event, events that grew."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.state import State, View

__all__ = ["Told", "stale", "told", "unanalysed", "unlinked"]

IntArray = npt.NDArray[np.int32]


class Told(NamedTuple):
    """Which turns the descriptions of events rest on."""

    subject: IntArray
    """The event of each description; int32 of shape (descriptions,)."""
    resting: IntArray
    """How many turns it rests on."""
    turns: IntArray
    """These turns, description after description."""


def told(state: State) -> Told:
    """Copied, so that it can be read while descriptions are erased."""
    notes = state.events.descriptions
    narrow = notes.narrow
    return Told(narrow["subject"].view().copy(), narrow["resting"].view().copy(), notes.read.view())


def unanalysed(view: View) -> npt.NDArray[np.intp]:
    """The turns that no model has analysed, ascending; those that are forgotten left out."""
    waiting = view.narrow["live"] == 1
    analysed = np.array(list(view.events.analyses.rows_of), np.int64)  # in one step: it may grow meanwhile
    waiting[analysed[analysed < view.rows]] = False
    return np.flatnonzero(waiting)


def unlinked(view: View) -> npt.NDArray[np.intp]:
    """The turns that belong to no event, ascending; those that are forgotten left out."""
    waiting = view.narrow["live"] == 1
    waiting[view.events.links.turn] = False
    return np.flatnonzero(waiting)


def stale(view: View, told: Told) -> npt.NDArray[np.intp]:
    """The events with turns that no description of them rests on, ascending; forgotten turns do not count."""
    links, rows = view.events.links, max(view.rows, 1)
    known = np.repeat(told.subject.astype(np.int64), told.resting) * rows + told.turns
    unread = ~np.isin(links.event.astype(np.int64) * rows + links.turn, known)
    unread &= view.narrow["live"][links.turn] == 1
    return np.unique(links.event[unread]).astype(np.intp)
