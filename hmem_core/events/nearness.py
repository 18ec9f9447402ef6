"""How near events are to turns, for offering them to a model (ours; HiGMem compares descriptions alone)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.contexts import TurnsSoFar
from hmem_core.state import State, View

__all__ = ["Nearness", "nearness"]

FloatArray = npt.NDArray[np.float32]


class Nearness(NamedTuple):
    """Cosines of some turns, each in its context (`hmem_kernels.affiliation`), with events."""

    scores: FloatArray
    """Of shape (turns, events): with the event's description or with the sum of its turns, whichever is
    nearer; -inf for an event all of whose turns are forgotten."""
    likeness: FloatArray
    """Of the turns with one another, of shape (turns, turns)."""


def nearness(state: State, view: View, turns: npt.NDArray[np.int32]) -> Nearness:
    """How near each event is to each of `turns`. `view` is one of `state`, which is held still meanwhile,
    as the sums of events are not copied: O(events · turns · d)."""
    contexts = TurnsSoFar(view.vectors, view.narrow["live"], view.narrow["previous"]).contexts(turns).rows
    norms = state.events.links.norms()
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = contexts @ state.events.links.sums().T / norms
    scores[:, norms == 0] = -np.inf
    notes = view.events.descriptions
    if notes.subjects.size:
        described = np.concatenate([contexts @ block.T for block in notes.vectors], axis=1)
        near = described[:, notes.vector_rows]
        alive = norms[notes.subjects] > 0
        subjects = notes.subjects[alive]
        scores[:, subjects] = np.maximum(scores[:, subjects], near[:, alive])
    return Nearness(scores, contexts @ contexts.T)
