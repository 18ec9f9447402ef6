"""The plain columns of the fact graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hmem_core.columns.growable import Growable
from hmem_core.journal.entries import OPEN_END, OPEN_START

__all__ = ["CHANGES", "TELLINGS", "UNITS", "Members", "Table"]

IntArray = npt.NDArray[np.int32]

UNITS: dict[str, type[np.generic]] = {
    "subject": np.int32,  # codes of names; -1 for none, and once forgotten
    "relation": np.int32,
    "object": np.int32,
    "category": np.int32,
    "seq": np.int64,  # the entry that added it
    "recorded": np.int64,  # when that was written, UTC microseconds
    "status": np.uint8,  # what the latest of its changes says, as the next four
    "valid_from": np.int64,  # UTC microseconds; OPEN_START, OPEN_END where not known
    "valid_to": np.int64,
    "confidence": np.float64,
    "by": np.int32,  # the unit that is the cause of the status; -1 for none
    "change": np.int32,  # the latest of its changes
}
TELLINGS: dict[str, type[np.generic]] = {
    "unit": np.int32,  # -1 once forgotten
    "live": np.uint8,  # 0 while withdrawn, and once forgotten
    "seq": np.int64,
    "withdrawn": np.int64,  # the entry that withdrew it; 0 for none
    "confidence": np.float64,
    "valid_from": np.int64,
    "valid_to": np.int64,
}
CHANGES: dict[str, type[np.generic]] = {
    "unit": np.int32,
    "previous": np.int32,  # the change of the same unit before it; -1 for none
    "seq": np.int64,
    "recorded": np.int64,
    "status": np.uint8,
    "valid_from": np.int64,
    "valid_to": np.int64,
    "confidence": np.float64,
    "why": np.uint8,  # place in records.REASONS
    "by": np.int32,
}

BLANK: Mapping[str, int] = {
    "subject": -1,
    "relation": -1,
    "object": -1,
    "category": -1,
    "valid_from": OPEN_START,
    "valid_to": OPEN_END,
    "unit": -1,
    "by": -1,
}
"""What a column holds for something forgotten; 0 where nothing stands here."""


class Table:
    """Columns of fixed width that grow together.

    Args:
        types: the columns.
        batch: what `batch` wrote earlier.
    """

    __slots__ = ("_changed", "columns")

    def __init__(self, types: Mapping[str, type[np.generic]], batch: pa.RecordBatch | None = None) -> None:
        self.columns = {
            name: Growable(dtype, () if batch is None else batch.column(name).to_numpy())
            for name, dtype in types.items()
        }
        self._changed: list[tuple[str, Any, Any]] | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """A column so far, without copying; do not write to it."""
        return self.columns[name].view()

    def append(self, values: Mapping[str, Any]) -> None:
        """Append a row."""
        for name, column in self.columns.items():
            column.append(values[name])

    def extend(self, values: Mapping[str, npt.ArrayLike]) -> None:
        """Append rows, given by column."""
        for name, column in self.columns.items():
            column.extend(values[name])

    def set(self, rows: int | npt.NDArray[np.integer[Any]], **values: Any) -> None:
        """Change a row; or several, no row twice, each to a value of its own."""
        for name, value in values.items():
            data = self.columns[name].view()
            if self._changed is not None:
                self._changed.append((name, rows, data[rows]))
            data[rows] = value

    def blank(self, rows: npt.NDArray[np.intp], *kept: str) -> None:
        """Forget what rows say, but for the columns that are `kept`."""
        for name, column in self.columns.items():
            if name not in kept:
                column.view()[rows] = BLANK.get(name, 0)

    def begin(self) -> int:
        """Remember this moment for `rollback`."""
        self._changed = []
        return len(self)

    def rollback(self, size: int) -> None:
        """Take back what was done since `begin`."""
        for name, rows, value in reversed(self._changed or []):
            self.columns[name].view()[rows] = value
        self._changed = None
        for column in self.columns.values():
            column.truncate(size)

    def batch(self) -> pa.RecordBatch:
        """All rows, copied, for a checkpoint."""
        return pa.RecordBatch.from_pydict(
            {name: pa.array(column.view().copy()) for name, column in self.columns.items()}
        )

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns.values())


class Members:
    """For each row a tuple of integers that is written once: offsets and members.

    Args:
        ends: of each row, where its members end.
        members: those of all rows, one after the other.
    """

    __slots__ = ("_ends", "_members")

    def __init__(self, ends: npt.ArrayLike = (), members: npt.ArrayLike = ()) -> None:
        self._ends = Growable(np.int64, ends)
        self._members = Growable(np.int32, members)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, row: int) -> IntArray:
        """The members of a row, int32, without copying."""
        start = int(self._ends[row - 1]) if row else 0
        return self._members.view()[start : int(self._ends[row])]

    def append(self, members: Iterable[int]) -> None:
        """The members of the next row."""
        self._members.extend(list(members))
        self._ends.append(len(self._members))

    def blank(self, row: int) -> None:
        """Forget the members of a row; how many they were stays."""
        self[row][:] = -1

    def replace(self, row: int, old: int, new: int) -> None:
        """Put `new` where `old` stands in a row."""
        members = self[row]
        members[members == old] = new

    def rows(self) -> npt.NDArray[np.int64]:
        """For each member, its row."""
        return np.repeat(np.arange(len(self)), np.diff(self._ends.view(), prepend=0))

    @property
    def ends(self) -> npt.NDArray[np.int64]:
        """Where the members of each row end, int64, without copying."""
        return self._ends.view()

    @property
    def members(self) -> IntArray:
        """All members, int32, without copying."""
        return self._members.view()

    def batch(self) -> pa.RecordBatch:
        """As one column of lists, copied, for a checkpoint."""
        offsets = np.concatenate([np.zeros(1, np.int64), self.ends])
        lists = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(self.members.copy()))
        return pa.RecordBatch.from_pydict({"members": lists})

    @classmethod
    def restore(cls, batch: pa.RecordBatch) -> Members:
        """What `batch` wrote."""
        lists = batch.column("members")
        return cls(lists.offsets.to_numpy()[1:], lists.flatten().to_numpy())

    def truncate(self, rows: int) -> None:
        """Keep the first rows."""
        self._ends.truncate(rows)
        self._members.truncate(int(self._ends[rows - 1]) if rows else 0)

    @property
    def nbytes(self) -> int:
        return self._ends.nbytes + self._members.nbytes
