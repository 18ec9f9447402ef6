"""Lists of integers by row: a compressed base, and a tail of what was appended since.

The base is in CSR form (offsets and targets). An appended target goes to a chain that starts at its row, so
that appending moves nothing. A tail that has grown large is merged into the base, which costs O(1) an append
when spread over them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.growable import Growable

__all__ = ["Adjacency", "Links"]

IntArray = npt.NDArray[np.int32]

_LEAST_TAIL = 4096
_TAIL_SHARE = 4
"""The tail is merged when it is longer than both `_LEAST_TAIL` and this part of the base."""


class Links(NamedTuple):
    """An adjacency as a kernel reads it: first the base slice of a row, then its chain, newest first."""

    offsets: npt.NDArray[np.int64]
    """int64 (base rows + 1,)"""
    targets: IntArray
    """int32 (base entries,)"""
    head: IntArray
    """int32 (rows,): the newest entry of the row's chain; -1 for none"""
    previous: IntArray
    """int32 (tail entries,): the entry before it in its chain; -1 for none"""
    tail: IntArray
    """int32 (tail entries,): the targets of the chains"""


class Adjacency:
    """For each row a list of int32 targets, in the order in which they were appended.

    Args:
        rows: the row of each entry, in any order.
        targets: its target; entries of one row keep their order.
    """

    __slots__ = ("_changed", "_head", "_offsets", "_previous", "_tail", "_targets")

    def __init__(self, rows: npt.ArrayLike = (), targets: npt.ArrayLike = ()) -> None:
        self._build(np.asarray(rows, np.int64), np.asarray(targets, np.int32))
        self._changed: list[tuple[int, int]] | None = None

    def _build(self, rows: npt.NDArray[np.int64], targets: IntArray) -> None:
        order = np.argsort(rows, kind="stable")
        count = int(rows.max()) + 1 if rows.size else 0
        self._offsets = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=count), out=self._offsets[1:])
        self._targets: IntArray = targets[order]
        self._head = Growable(np.int32, np.full(count, -1, np.int32))
        self._previous = Growable(np.int32)
        self._tail = Growable(np.int32)

    def __len__(self) -> int:
        """Number of entries."""
        return self._targets.size + len(self._tail)

    @property
    def rows(self) -> int:
        """One more than the greatest row that ever had an entry."""
        return len(self._head)

    def append(self, row: int, target: int) -> None:
        """Add a target at the end of a row's list."""
        if row >= len(self._head):
            self._head.extend(np.full(row + 1 - len(self._head), -1, np.int32))
        if self._changed is not None:
            self._changed.append((row, int(self._head[row])))
        self._previous.append(self._head[row])
        self._head[row] = len(self._tail)
        self._tail.append(target)
        if self._changed is None and len(self._tail) > max(_LEAST_TAIL, self._targets.size // _TAIL_SHARE):
            self._merge()

    def _merge(self) -> None:
        self._build(*self.entries())

    def __getitem__(self, row: int) -> IntArray:
        """The targets of a row, int32, in the order in which they were appended; none for an unknown row."""
        if not 0 <= row < len(self._head):
            return np.empty(0, np.int32)
        chain = self._chain(row)
        base = self._base(row)
        if not chain:
            return base
        return np.concatenate([base, np.array(chain[::-1], np.int32)])

    def latest(self, row: int, limit: int) -> IntArray:
        """The last `limit` targets of a row, the newest first. Costs no more than that."""
        if not 0 <= row < len(self._head):
            return np.empty(0, np.int32)
        chain = self._chain(row, limit)
        base = self._base(row)
        rest = base[max(base.size - (limit - len(chain)), 0) :][::-1]
        return np.concatenate([np.array(chain, np.int32), rest])

    def count(self, row: int) -> int:
        """How many targets a row has."""
        return int(self._base(row).size) + len(self._chain(row)) if 0 <= row < len(self._head) else 0

    def _base(self, row: int) -> IntArray:
        if row + 1 >= self._offsets.size:
            return self._targets[:0]
        return self._targets[self._offsets[row] : self._offsets[row + 1]]

    def _chain(self, row: int, limit: int = -1) -> list[int]:
        found: list[int] = []
        entry = int(self._head[row])
        while entry >= 0 and len(found) != limit:
            found.append(int(self._tail[entry]))
            entry = int(self._previous[entry])
        return found

    def links(self) -> Links:
        """The lists for a kernel, without copying. Later appends do not show in it."""
        return Links(
            self._offsets, self._targets, self._head.view(), self._previous.view(), self._tail.view()
        )

    def entries(self) -> tuple[npt.NDArray[np.int64], IntArray]:
        """All rows and targets, by row."""
        base = np.repeat(np.arange(self._offsets.size - 1), np.diff(self._offsets))
        rows = np.empty(len(self._tail), np.int64)
        for row in np.flatnonzero(self._head.view() >= 0).tolist():
            entry = int(self._head[row])
            while entry >= 0:
                rows[entry] = row
                entry = int(self._previous[entry])
        rows = np.concatenate([base, rows])
        targets = np.concatenate([self._targets, self._tail.view()])
        order = np.argsort(rows, kind="stable")
        return rows[order], targets[order]

    # -- trying out ----------------------------------------------------------------------------------

    def begin(self) -> tuple[int, int]:
        """Remember this moment for `rollback`; until then nothing is merged."""
        self._changed = []
        return len(self._tail), len(self._head)

    def rollback(self, mark: tuple[int, int]) -> None:
        """Take back what was appended since `begin`."""
        tail, rows = mark
        for row, head in reversed(self._changed or []):
            self._head[row] = head
        self._changed = None
        self._tail.truncate(tail)
        self._previous.truncate(tail)
        self._head.truncate(rows)

    @property
    def nbytes(self) -> int:
        grown = self._head.nbytes + self._previous.nbytes + self._tail.nbytes
        return self._offsets.nbytes + self._targets.nbytes + grown
