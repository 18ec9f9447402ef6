"""Contexts: what a turn is about, with the turns before it in its session (`hmem_kernels.affiliation`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_kernels import frozen
from hmem_kernels.affiliation import contexts

__all__ = ["CONTEXT", "Contexts", "TurnsSoFar", "context_rows", "context_vectors"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

CONTEXT = frozen(np.array([1.0, 0.5, 0.25], np.float32))
"""What a turn and those before it in its session count in its context. No option, since the sums of events,
which are part of the state, rest on it."""


class Contexts(NamedTuple):
    """Contexts of turns."""

    rows: FloatArray
    """Unit vectors, float32 of shape (turns, d); 0 for turns that are forgotten."""
    length: FloatArray
    """What each was divided by, float32 of shape (turns,)."""


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


def context_vectors(
    vectors: Sequence[FloatArray], rows: IntArray, coming: FloatArray | None = None
) -> Contexts:
    """The contexts of turns.

    Args:
        vectors: the vector column, in blocks.
        rows: as of `context_rows`.
        coming: vectors of turns that are about to be added, numbered on from those there are.
    """
    known = sum(map(len, vectors))
    needed = np.unique(rows[rows >= 0]).astype(np.int64)
    block = len(vectors[0]) if len(vectors) > 1 else 1 << 62  # all but the last are full
    dimension = coming.shape[1] if coming is not None else vectors[0].shape[1] if vectors else 0
    gathered = np.empty((needed.size, dimension), np.float32)
    if coming is not None:
        gathered[needed >= known] = coming[needed[needed >= known] - known]
    for number in np.unique(needed[needed < known] // block).tolist():
        here = (needed < known) & (needed // block == number)
        gathered[here] = vectors[number][needed[here] - number * block]
    place = np.where(rows >= 0, np.searchsorted(needed, rows), -1).astype(np.int32)
    out, length = np.empty((len(rows), dimension), np.float32), np.empty(len(rows), np.float32)
    contexts(frozen(gathered), frozen(place), CONTEXT, out, length)
    return Contexts(out, length)


class TurnsSoFar(NamedTuple):
    """What contexts are made of."""

    vectors: Sequence[FloatArray]
    """The vector column, in blocks."""
    live: npt.NDArray[np.uint8]
    previous: IntArray

    def contexts(self, turns: IntArray) -> Contexts:
        """The contexts of these turns."""
        return context_vectors(self.vectors, context_rows(turns, self.live, self.previous))
