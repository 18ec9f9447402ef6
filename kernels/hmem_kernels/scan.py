"""Exact scan: dot products of a block of rows with a query, and the best k of them.

A score depends on its row and the query alone, not on the block that holds the row nor on the row's place
in it: the same instructions run over every row. So cutting rows into other blocks changes no bit of a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hmem_kernels._kernel import REORDER, frozen, kernel

__all__ = ["scan_scores", "scan_topk"]

FloatArray = npt.NDArray[np.float32]
MaskArray = npt.NDArray[np.uint8]
RowArray = npt.NDArray[np.int64]


@kernel(fastmath=REORDER)
def _dot(a: FloatArray, b: FloatArray) -> np.float32:
    total = np.float32(0.0)
    for j in range(a.size):
        total += a[j] * b[j]
    return total


def _blocks() -> Iterator[tuple[FloatArray, FloatArray]]:
    for n in (7, 0):
        block = np.linspace(-1.0, 2.0, n * 5, dtype=np.float32).reshape(n, 5)
        yield frozen(block), frozen(np.linspace(1.0, -0.5, 5, dtype=np.float32))


def _scores_examples() -> Iterator[tuple[Any, ...]]:
    for block, query in _blocks():
        yield block, query, np.zeros(len(block), np.float32)


@kernel(examples=_scores_examples)
def scan_scores(block: FloatArray, query: FloatArray, scores: FloatArray) -> None:
    """Write the dot product of every row with the query.

    block   float32 (n, d), C-contiguous
    query   float32 (d,)
    scores  float32 (n,), written
    """
    for i in range(block.shape[0]):
        scores[i] = _dot(block[i], query)


@kernel
def _worse(score: np.float32, row: int, other_score: np.float32, other_row: int) -> bool:
    return bool(score < other_score or (score == other_score and row > other_row))


@kernel
def _push(score: np.float32, row: int, count: int, scores: FloatArray, rows: RowArray) -> None:
    """Add to a heap that holds `count` rows."""
    hole = count
    while hole > 0:
        parent = (hole - 1) // 2
        if not _worse(score, row, scores[parent], rows[parent]):
            break
        scores[hole], rows[hole] = scores[parent], rows[parent]
        hole = parent
    scores[hole], rows[hole] = score, row


@kernel
def _replace_worst(score: np.float32, row: int, scores: FloatArray, rows: RowArray) -> None:
    """Put a row in the place of the worst one of a full heap."""
    k = scores.size
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= k:
            break
        if child + 1 < k and _worse(scores[child + 1], rows[child + 1], scores[child], rows[child]):
            child += 1
        if not _worse(scores[child], rows[child], score, row):
            break
        scores[hole], rows[hole] = scores[child], rows[child]
        hole = child
    scores[hole], rows[hole] = score, row


def _topk_examples() -> Iterator[tuple[Any, ...]]:
    for block, query in _blocks():
        for live in (np.ones(0, np.uint8), np.arange(len(block), dtype=np.uint8) % 3):
            yield block, query, frozen(live), 100, 0, np.zeros(3, np.float32), np.zeros(3, np.int64)


@kernel(examples=_topk_examples)
def scan_topk(
    block: FloatArray,
    query: FloatArray,
    live: MaskArray,
    first: int,
    count: int,
    scores: FloatArray,
    rows: RowArray,
) -> int:
    """Offer the rows of a block to a heap of the best k; returns how many rows the heap then holds.

    block   float32 (n, d), C-contiguous; its rows are numbered from `first`
    query   float32 (d,)
    live    uint8 (n,): a row with 0 is passed over; of length 0, every row is live
    count   how many rows the heap holds already, all of them numbered below `first`
    scores  float32 (k,), updated: the scores in the heap
    rows    int64 (k,), updated: the numbers of their rows

    A row is better than another if its score is higher or, of equal scores, its number lower. NaN is never
    kept. The worst row lies first, and each entry i is no better than entries 2i + 1 and 2i + 2: a heap, so
    that a k as large as n costs n log n, and so that the next block can go on where this one stopped.
    """
    k = scores.size
    if k == 0:
        return count
    masked = live.size > 0
    for i in range(block.shape[0]):
        if masked and live[i] == 0:
            continue
        score = _dot(block[i], query)
        if count == k:
            # An equal score loses: its row has a higher number than all that are held.
            if score > scores[0]:
                _replace_worst(score, first + i, scores, rows)
        elif not np.isnan(score):
            _push(score, first + i, count, scores, rows)
            count += 1
    return count
