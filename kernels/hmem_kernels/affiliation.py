"""Events and the turns that belong to them: what a turn is about, and the sums that stand for events. Ours.

A short turn says little by itself. So what is compared is its *context*: the direction of its vector and
those of the few turns before it in its session, each of these counting less the further back it is. An event
is the sum of the contexts of its turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hmem_kernels._kernel import frozen, kernel

__all__ = ["add_contexts", "contexts"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]


def _context_examples() -> Iterator[tuple[Any, ...]]:
    weights = frozen(np.array([1, 0.5, 0.25], np.float32))
    vectors = np.arange(12, dtype=np.float32).reshape(4, 3)
    vectors[2] = 0
    for place in ([[1, 0, -1], [3, 2, 1], [2, -1, -1], [-1, -1, -1]], np.empty((0, 3))):
        places = frozen(np.array(place, np.int32))
        yield frozen(vectors), places, weights, np.zeros((len(places), 3), np.float32)


@kernel(examples=_context_examples)
def contexts(vectors: FloatArray, place: IntArray, weights: FloatArray, out: FloatArray) -> None:
    """Write the context of each turn, of length 1, or 0 where there is nothing.

    vectors  float32 (m, d)
    place    int32 (n, depth): rows of `vectors`: the turn itself, the one before it, …; -1 for none. A turn
             without a place of its own has no context.
    weights  float32 (depth,): what each of them counts
    out      float32 (n, d), written
    """
    for i in range(place.shape[0]):
        row = out[i]
        row[:] = 0.0
        if place[i, 0] < 0:
            continue
        for j in range(place.shape[1]):
            if place[i, j] >= 0:
                other = vectors[np.uint32(place[i, j])]
                weight = weights[j]
                for k in range(row.size):
                    row[k] += weight * other[k]
        square = np.float64(0.0)
        for k in range(row.size):
            square += np.float64(row[k]) * np.float64(row[k])
        if square > 0.0:
            scale = np.float32(1.0 / np.sqrt(square))
            for k in range(row.size):
                row[k] *= scale


def _add_examples() -> Iterator[tuple[Any, ...]]:
    rows = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
    for turns, events in (([0, 1, 1, 2], [0, 0, 1, 0]), ([], [])):
        which, event = (frozen(np.array(column, np.int32)) for column in (turns, events))
        yield frozen(rows), which, event, np.zeros((2, 2), np.float32), np.zeros(2, np.float32)


@kernel(examples=_add_examples)
def add_contexts(
    rows: FloatArray, which: IntArray, event: IntArray, sums: FloatArray, norm: FloatArray
) -> None:
    """Add the contexts of turns to the sums of their events, one link after the other.

    rows   float32 (n, d): contexts
    which  int32 (links,): rows of `rows`
    event  int32 (links,): rows of `sums`
    sums   float32 (events, d), updated
    norm   float32 (events,), updated: the length of each sum
    """
    for i in range(which.size):
        row = rows[np.uint32(which[i])]
        e = np.uint32(event[i])
        total = sums[e]
        square = np.float64(0.0)
        for k in range(row.size):
            total[k] += row[k]
            square += np.float64(total[k]) * np.float64(total[k])
        norm[e] = np.sqrt(square)
