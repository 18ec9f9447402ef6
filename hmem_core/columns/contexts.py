"""Contexts: what a turn is about, with the turns before it in its session (`hmem_kernels.affiliation`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_kernels import frozen
from hmem_kernels.affiliation import contexts

__all__ = ["CONTEXT", "TurnsSoFar", "context_rows", "context_vectors"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

CONTEXT = frozen(np.array([1.0, 0.5, 0.25], np.float32))
"""What a turn and those before it in its session count in its context. No option, since the sums of events,
which are part of the state, rest on it."""


def context_rows(turns: IntArray, live: npt.NDArray[np.uint8], previous: IntArray) -> IntArray:
    """The turns that make up the context of each of `turns`: int32 of shape (turns, depth), -1 for none.

    Args:
        live: of every turn, 0 if it is forgotten.
        previous: of every turn, the one before it in its session, or -1.
    """
    rows = np.full((turns.size, CONTEXT.size), -1, np.int32)
    if turns.size:
        rows[:, 0] = np.where(live[turns] == 1, turns, -1)
        for depth in range(1, CONTEXT.size):
            before = rows[:, depth - 1]
            rows[:, depth] = np.where(before >= 0, previous[before], -1)
    return rows


def context_vectors(vectors: Sequence[FloatArray], rows: IntArray) -> FloatArray:
    """The contexts of turns, float32 of shape (turns, d).

    Args:
        vectors: the vector column, in blocks.
        rows: as of `context_rows`.
    """
    needed = np.unique(rows[rows >= 0]).astype(np.int64)
    block = len(vectors[0]) if len(vectors) > 1 else 1 << 62  # all but the last are full
    dimension = vectors[0].shape[1] if vectors else 0
    gathered = np.empty((needed.size, dimension), np.float32)
    for number in np.unique(needed // block).tolist():
        here = needed // block == number
        gathered[here] = vectors[number][needed[here] - number * block]
    place = np.where(rows >= 0, np.searchsorted(needed, rows), -1).astype(np.int32)
    out = np.empty((len(rows), dimension), np.float32)
    contexts(frozen(gathered), frozen(place), CONTEXT, out)
    return out


class TurnsSoFar(NamedTuple):
    """What contexts are made of."""

    vectors: Sequence[FloatArray]
    """The vector column, in blocks."""
    live: npt.NDArray[np.uint8]
    previous: IntArray

    def contexts(self, turns: IntArray) -> FloatArray:
        """The contexts of these turns, float32 of shape (turns, d)."""
        return context_vectors(self.vectors, context_rows(turns, self.live, self.previous))
