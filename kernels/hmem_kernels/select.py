"""From scores to what is shown: scores of several kinds on one scale; the best nodes, none above another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hmem_kernels._kernel import REORDER, frozen, kernel

__all__ = ["add_standardised", "select_nodes"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
MaskArray = npt.NDArray[np.uint8]

_POOL = 4
"""So many candidates for each node wanted are ranked first."""

_GROWTH = 8
"""If they overlap too much, so many times more."""


def _standard_examples() -> Iterator[tuple[Any, ...]]:
    for n, live in ((0, 0), (5, 0), (5, 5)):
        scores = np.arange(n, dtype=np.float32)
        mask = np.arange(live, dtype=np.uint8) % 3
        yield frozen(scores), frozen(mask), 0.5, np.zeros(n, np.float32)


@kernel(fastmath=REORDER)
def _sums(scores: FloatArray, live: MaskArray, centre: float) -> tuple[int, float, float]:
    """The number of live rows, and the sums of their distances from `centre` and of the squares of these."""
    count, distances, squares = 0, 0.0, 0.0
    for i in range(scores.size):
        if live.size == 0 or live[i] != 0:
            distance = np.float64(scores[i]) - centre
            count += 1
            distances += distance
            squares += distance * distance
    return count, distances, squares


@kernel(examples=_standard_examples)
def add_standardised(scores: FloatArray, live: MaskArray, weight: float, total: FloatArray) -> None:
    """Add `weight` times each score's distance from the mean, in standard deviations, to the totals.

    scores  float32 (n,), finite
    live    uint8 (n,): a row with 0 counts for neither mean nor deviation, and its total stays; of length 0,
            every row is live
    weight  of this kind of score among those that are added up
    total   float32 (n,), updated

    Mean and deviation (that of the live rows, divided by their number) are float64. Where all scores are
    equal, nothing is added: they tell nothing.
    """
    count, together, _ = _sums(scores, live, 0.0)
    if count == 0:
        return
    mean = together / count
    deviation = math.sqrt(_sums(scores, live, mean)[2] / count)
    if deviation == 0.0:
        return
    for i in range(scores.size):
        if live.size == 0 or live[i] != 0:
            total[i] += weight * (np.float64(scores[i]) - mean) / deviation


@kernel
def _worse(scores: FloatArray, a: int, b: int) -> bool:
    return bool(scores[a] < scores[b] or (scores[a] == scores[b] and a > b))


@kernel
def _sink(scores: FloatArray, heap: IntArray, hole: int, node: int) -> None:
    """Put a node into a heap, the worst first, at `hole` or further down."""
    while True:
        child = 2 * hole + 1
        if child >= heap.size:
            break
        if child + 1 < heap.size and _worse(scores, heap[child + 1], heap[child]):
            child += 1
        if not _worse(scores, heap[child], node):
            break
        heap[hole] = heap[child]
        hole = child
    heap[hole] = node


@kernel
def _counts(scores: FloatArray, live: MaskArray, node: int) -> bool:
    return not np.isnan(scores[node]) and (live.size == 0 or live[node] != 0)


@kernel
def _rank(scores: FloatArray, live: MaskArray, ranked: IntArray) -> int:
    """Write as many of the best nodes as there is room for, the best first; returns how many there are."""
    held = 0
    node = 0
    while node < scores.size and held < ranked.size:
        if _counts(scores, live, node):
            ranked[held] = node
            held += 1
        node += 1
    heap = ranked[:held]
    for hole in range(held // 2 - 1, -1, -1):
        _sink(scores, heap, hole, heap[hole])
    for other in range(node, scores.size):
        if _worse(scores, heap[0], other) and _counts(scores, live, other):
            _sink(scores, heap, 0, other)
    for last in range(held - 1, 0, -1):
        worst = heap[0]
        _sink(scores, heap[:last], 0, heap[last])
        heap[last] = worst
    return held


@kernel
def _overlaps(start: IntArray, end: IntArray, node: int, others: IntArray) -> bool:
    shared = False
    for other in others:
        shared |= start[node] <= end[other] and start[other] <= end[node]
    return shared


def _select_examples() -> Iterator[tuple[Any, ...]]:
    start = frozen(np.array([0, 1, 0, 2, 0], np.int32))
    end = frozen(np.array([0, 1, 1, 2, 2], np.int32))
    scores = frozen(np.array([0.5, 0.25, 0.5, -1.0, 0.125], np.float32))
    for n, live in ((0, 0), (5, 0), (5, 5)):
        mask = frozen(np.arange(1, live + 1, dtype=np.uint8) % 3)
        yield scores[:n], start[:n], end[:n], mask, np.zeros(n, np.int32), np.zeros(2, np.int32)


@kernel(examples=_select_examples)
def select_nodes(
    scores: FloatArray, start: IntArray, end: IntArray, live: MaskArray, ranked: IntArray, chosen: IntArray
) -> int:
    """Choose the best k nodes none of which is above another; returns how many there are.

    scores  float32 (nodes,)
    start   int32 (nodes,): first turn
    end     int32 (nodes,): last turn, included; of two nodes that share a turn, one is above the other
    live    uint8 (nodes,): a node with 0 is passed over; of length 0, every node is live
    ranked  int32 (nodes,), overwritten
    chosen  int32 (k,), written: the nodes, the best first

    The best node is chosen, then the best of those neither above nor below it, and so on. Of equal scores the
    lower node comes first; NaN is never chosen. Meant for a small k: nodes are compared with all chosen ones.
    """
    pool = _POOL * chosen.size
    count = 0
    while count < chosen.size:
        held = _rank(scores, live, ranked[: min(pool, scores.size)])
        count = 0
        for node in ranked[:held]:
            if count < chosen.size and not _overlaps(start, end, node, chosen[:count]):
                chosen[count] = node
                count += 1
        if held < pool:
            break
        pool *= _GROWTH
    return count
