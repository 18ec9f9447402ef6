"""The best rows of a vector column: exact, over blocks, on all threads of the pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import index
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.pool import parallel_map, threads
from hmem_core.errors import InvalidInput
from hmem_kernels import frozen
from hmem_kernels.scan import scan_scores, scan_topk

__all__ = ["Best", "all_scores", "best_rows", "top_k"]

FloatArray = npt.NDArray[np.float32]
MaskArray = npt.NDArray[np.uint8] | npt.NDArray[np.bool_]
RowArray = npt.NDArray[np.int64]

_TASK_NUMBERS = 1 << 21
"""A task reads at least this many float32 (8 MB, some 0.2 ms), so that handing it over is worth while."""

_TASKS_PER_THREAD = 4
"""A thread whose core is taken away delays the whole by one small task, not by its full share."""


class Best(NamedTuple):
    """Rows and their scores, best first."""

    scores: FloatArray
    rows: RowArray


class _Span(NamedTuple):
    """Rows of one block that one task scans."""

    block: FloatArray
    live: npt.NDArray[np.uint8]
    first: int


def top_k(blocks: Sequence[FloatArray], query: FloatArray, k: int, live: MaskArray | None = None) -> Best:
    """The `k` rows with the highest dot product with `query`, best first; of equal scores the lower row.

    `blocks` are float32 arrays of shape (rows, d), numbered through in order; read-only memory maps will
    do. `live` has one number for each row over all blocks: where it is 0 the row does not take part, as if
    it were not there. Fewer than `k` rows come back if there are not more; a NaN score never does. How the
    rows are cut into blocks, and how many threads there are, changes no bit of the result.

    Nothing is copied. Beyond the result, a task of the scan holds its own `k` best rows, so that memory is
    bounded by a few times `k` for each thread, and by 12 bytes a row where `k` is huge.

    Raises:
        InvalidInput: a dtype, shape or layout is wrong, `k` is negative, or `query` is not finite.
    """
    k = _checked_count(k)
    query = _checked_query(query)
    blocks = tuple(blocks)
    rows = sum(_checked_rows(block, number, query.size) for number, block in enumerate(blocks))
    mask = _checked_mask(live, rows)

    rows_each = max(_TASK_NUMBERS // max(query.size, 1), -(-rows // (threads() * _TASKS_PER_THREAD)), 1)
    tasks = list(_tasks(blocks, mask, rows_each))

    def scan(spans: list[_Span]) -> Best:
        size = min(k, sum(len(span.block) for span in spans))
        best = Best(np.empty(size, np.float32), np.empty(size, np.int64))
        held = 0
        for span in spans:
            held = scan_topk(span.block, query, span.live, span.first, held, best.scores, best.rows)
        return Best(best.scores[:held], best.rows[:held])

    return _merge(parallel_map(scan, tasks), k)


def all_scores(blocks: Sequence[FloatArray], query: FloatArray) -> FloatArray:
    """The dot product of every row with `query`: float32 of shape (rows,), the bits that `top_k` compares.

    Raises:
        InvalidInput: as `top_k`.
    """
    query = _checked_query(query)
    blocks = tuple(blocks)
    scores = np.empty(sum(_checked_rows(block, n, query.size) for n, block in enumerate(blocks)), np.float32)

    def scan(spans: list[_Span]) -> None:
        for span in spans:
            scan_scores(span.block, query, scores[span.first : span.first + len(span.block)])

    parallel_map(scan, list(_tasks(blocks, None, max(_TASK_NUMBERS // max(query.size, 1), 1))))
    return scores


def best_rows(scores: FloatArray, k: int, live: MaskArray) -> RowArray:
    """The `k` rows with the highest scores among those where `live` is not 0, best first; of equal scores the
    lower row."""
    rows = np.flatnonzero(live)
    if len(rows) > k:
        found = scores[rows]
        least = np.partition(found, len(found) - k)[len(found) - k]
        rows = rows[found >= least]
    return rows[np.lexsort((rows, -scores[rows]))][:k]


def _tasks(
    blocks: Sequence[FloatArray], mask: npt.NDArray[np.uint8] | None, rows_each: int
) -> Iterator[list[_Span]]:
    """Cut all rows, in order, into lists of spans with `rows_each` rows together."""
    no_mask = frozen(np.empty(0, np.uint8))
    spans: list[_Span] = []
    room = rows_each
    first = 0
    for block in blocks:
        start = 0
        while start < len(block):
            stop = min(start + room, len(block))
            live = no_mask if mask is None else mask[first : first + stop - start]
            spans.append(_Span(frozen(block[start:stop]), live, first))
            first += stop - start
            room -= stop - start
            start = stop
            if room == 0:
                yield spans
                spans, room = [], rows_each
    if spans:
        yield spans


def _merge(parts: Sequence[Best], k: int) -> Best:
    scores = np.concatenate([np.empty(0, np.float32), *(part.scores for part in parts)])
    rows = np.concatenate([np.empty(0, np.int64), *(part.rows for part in parts)])
    order = np.lexsort((rows, -scores))[:k]
    return Best(scores[order], rows[order])


def _checked_count(k: int) -> int:
    try:
        count = index(k)
    except TypeError:
        raise InvalidInput(f"k is {k!r}; give a whole number, how many rows are wanted") from None
    if count < 0:
        raise InvalidInput(f"k is {count}; give 0 or more")
    return count


def _checked_query(query: FloatArray) -> FloatArray:
    _check_float32(query, "query")
    if query.ndim != 1:
        raise InvalidInput(f"query has shape {query.shape}; give one vector of shape (d,)")
    if not np.isfinite(query).all():
        raise InvalidInput("query has a NaN or infinite number in it; give finite numbers")
    return frozen(query.copy())  # contiguous and aligned, whatever it was


def _checked_rows(block: FloatArray, number: int, dimension: int) -> int:
    """How many rows `block` has."""
    name = f"block {number}"
    _check_float32(block, name)
    if block.ndim != 2 or block.shape[1] != dimension:
        raise InvalidInput(
            f"{name} has shape {block.shape}; give (rows, {dimension}), as the query has {dimension} numbers"
        )
    if not (block.flags.c_contiguous and block.flags.aligned):
        raise InvalidInput(
            f"{name} does not lie in memory row after row; copy it once with numpy.ascontiguousarray"
        )
    return len(block)


def _check_float32(array: Any, name: str) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != np.float32:
        found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise InvalidInput(f"{name} is {found}; convert it with numpy.asarray({name}, numpy.float32)")


def _checked_mask(live: Any, rows: int) -> npt.NDArray[np.uint8] | None:
    if live is None:
        return None
    if not isinstance(live, np.ndarray) or live.dtype not in (np.uint8, np.bool_):
        found = live.dtype if isinstance(live, np.ndarray) else type(live).__name__
        raise InvalidInput(f"live is {found}; give a numpy array of uint8 or bool")
    if live.shape != (rows,):
        raise InvalidInput(f"live has shape {live.shape}; give one number a row, shape ({rows},)")
    if not live.flags.c_contiguous:
        raise InvalidInput("live is strided; copy it once with numpy.ascontiguousarray")
    return frozen(live.view(np.uint8))
