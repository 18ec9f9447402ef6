"""What a model wrote of turns or of events: one row a note, in the order they were written.

A note rests on turns and goes when one of them is forgotten; its row stays, blank, so that the others keep
their numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hmem_core.columns.blocks import BLOCK_ROWS, Strings, Vectors, block_count
from hmem_core.columns.growable import Growable

__all__ = ["NoteColumns", "NoteView"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

_NARROW: dict[str, type[np.generic]] = {
    "subject": np.int32,  # the turn or event it is of; -1 once erased, when the columns below are 0
    "seq": np.int64,  # its entry in the journal
    "vector": np.int32,  # its row among the vectors; -1 for none; kept when it is erased
    "resting": np.int32,  # how many turns it rests on
}


class NoteView(NamedTuple):
    """Notes as one reader sees them: the rows up to some entry. What is erased meanwhile reads as None."""

    size: int
    rows_of: dict[int, list[int]]
    body: Strings
    vectors: list[FloatArray]
    subjects: IntArray
    """Those whose latest vector counts, ascending; int32 of shape (described,)."""
    vector_rows: IntArray
    """The rows of these vectors."""

    def of(self, subject: int) -> list[bytes]:
        """The bodies of all notes of a turn or event, in the order they were written."""
        rows = [row for row in self.rows_of.get(subject, ()) if row < self.size]
        return [body for row in rows if (body := self.body[row]) is not None]


class NoteColumns:
    """All notes of one kind.

    Args:
        dimension: numbers of a note's vector.
    """

    __slots__ = ("_current", "_latest", "body", "narrow", "read", "rows_of", "stamps", "vectors")

    def __init__(self, dimension: int) -> None:
        self.narrow = {name: Growable(dtype) for name, dtype in _NARROW.items()}
        self.body = Strings(pa.large_binary())
        self.read = Growable(np.int32)
        """The turns that the notes rest on, note after note."""
        self.vectors = Vectors(dimension)
        self.stamps: list[int] = []
        self.rows_of: dict[int, list[int]] = {}
        self._latest: dict[int, int] = {}  # of each subject, the row of the vector that counts
        self._current: tuple[IntArray, IntArray] | None = None

    def __len__(self) -> int:
        return len(self.body)

    def append(
        self, seq: int, subject: int, body: bytes, resting_on: Iterable[int], vector: FloatArray | None
    ) -> None:
        """A note of a turn or event."""
        row, turns = len(self), sorted(set(resting_on))
        place = -1 if vector is None else len(self.vectors)
        self._append(seq, (subject, seq, place, len(turns)), body, vector)
        for turn in turns:
            self.read.append(turn)
        self.rows_of.setdefault(subject, []).append(row)
        if place >= 0:
            self._latest[subject] = place
            self._current = None

    def append_erased(self, seq: int, vector: bool) -> None:
        """A row for a note that the journal no longer holds."""
        nothing = np.zeros(self.vectors.dimension, np.float32) if vector else None
        self._append(seq, (-1, 0, len(self.vectors) if vector else -1, 0), None, nothing)

    def _append(
        self, stamp: int, values: Sequence[int], body: bytes | None, vector: FloatArray | None
    ) -> None:
        block = len(self) // BLOCK_ROWS
        for column, value in zip(self.narrow.values(), values, strict=True):
            column.append(value)
        self.body.append(body)
        if vector is not None:
            self.vectors.append(vector)
        self.stamps[block:] = [stamp]

    def resting_on(self, turns: Iterable[int]) -> list[int]:
        """Rows of notes that rest on one of these turns, ascending."""
        hit = np.flatnonzero(np.isin(self.read.view(), np.fromiter(turns, np.int32)))
        ends = np.cumsum(self.narrow["resting"].view(), dtype=np.int64)
        return [int(row) for row in np.unique(np.searchsorted(ends, hit, side="right"))]

    def erase(self, rows: Sequence[int]) -> None:
        """Blank rows. Earlier notes of the same turn or event count again."""
        if not rows:
            return
        counts = self.narrow["resting"].view()
        keep = np.ones(len(self), np.bool_)
        keep[list(rows)] = False
        left = self.read.view()[np.repeat(keep, counts)]
        self.read = Growable(np.int32, left)
        for row in rows:
            if (place := int(self.narrow["vector"][row])) >= 0:
                self.vectors.erase(place)
            self.narrow["subject"][row] = -1
            self.narrow["seq"][row] = self.narrow["resting"][row] = 0
            self.body.erase(row)
        self._index()

    def stamp_all(self, seq: int) -> None:
        """Say that entry number `seq` changed every block (see `TurnColumns.stamp_all`)."""
        self.stamps = [seq] * len(self.stamps)

    def _index(self) -> None:
        subjects, places = self.narrow["subject"].view(), self.narrow["vector"].view()
        self.rows_of, self._latest, self._current = {}, {}, None
        for row in np.flatnonzero(subjects >= 0).tolist():
            self.rows_of.setdefault(int(subjects[row]), []).append(row)
            if places[row] >= 0:
                self._latest[int(subjects[row])] = int(places[row])

    def view(self) -> NoteView:
        """What a reader may use while notes are added."""
        if self._current is None:
            subjects = np.array(sorted(self._latest), np.int32)
            self._current = subjects, np.array([self._latest[one] for one in subjects.tolist()], np.int32)
        return NoteView(len(self), self.rows_of, self.body, self.vectors.view(), *self._current)

    # -- checkpoints ---------------------------------------------------------------------------------

    def batch(self, block: int) -> pa.RecordBatch:
        """One block of every column, for a checkpoint."""
        first, last = block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, len(self))
        columns = {name: pa.array(column.view()[first:last].copy()) for name, column in self.narrow.items()}
        counts = self.narrow["resting"].view()
        ends = np.zeros(last - first + 1, np.int32)
        np.cumsum(counts[first:last], out=ends[1:])
        before = int(counts[:first].sum(dtype=np.int64))
        read = pa.array(self.read.view()[before : before + int(ends[-1])].copy())
        columns["read"] = pa.ListArray.from_arrays(pa.array(ends), read)
        rows = [place for place in self.narrow["vector"].view()[first:last].tolist() if place >= 0]
        vectors = [self.vectors[place].tobytes() for place in rows]
        having = self.narrow["vector"].view()[first:last] >= 0
        packed: list[bytes | None] = [None] * (last - first)
        for row, vector in zip(np.flatnonzero(having).tolist(), vectors, strict=True):
            packed[row] = vector
        columns["values"] = pa.array(packed, pa.large_binary())
        return pa.RecordBatch.from_pydict({**columns, "body": self.body.arrow(block)})

    @classmethod
    def restore(cls, dimension: int, batches: Sequence[pa.RecordBatch], stamps: Sequence[int]) -> NoteColumns:
        """The columns that `batch` wrote; the bodies stay mapped."""
        columns = cls(dimension)
        for name, dtype in _NARROW.items():
            parts = [batch.column(name).to_numpy() for batch in batches]
            columns.narrow[name] = Growable(dtype, np.concatenate(parts) if parts else ())
        parts = [batch.column("read").flatten().to_numpy() for batch in batches]
        columns.read = Growable(np.int32, np.concatenate(parts) if parts else ())
        columns.body = Strings(pa.large_binary(), [batch.column("body") for batch in batches])
        for batch in batches:
            for packed in batch.column("values").drop_null():
                columns.vectors.append(np.frombuffer(packed.as_py(), np.float32))
        columns.stamps = list(stamps)
        resting = int(columns.narrow["resting"].view().sum(dtype=np.int64))
        having = int(np.count_nonzero(columns.narrow["vector"].view() >= 0))
        if (len(stamps), len(columns.read), len(columns.vectors)) != (
            block_count(len(columns)),
            resting,
            having,
        ):
            raise ValueError("the notes of the checkpoint are not whole")
        columns._index()
        return columns

    def arrays(self, kind: str) -> dict[str, Any]:
        """Every value, in a form that compares bit for bit."""
        vectors = self.vectors.view()
        bodies = [body for block in range(len(self.stamps)) for body in self.body.arrow(block).to_pylist()]
        return {
            **{f"{kind} {name}": column.view() for name, column in self.narrow.items()},
            f"{kind} read": self.read.view(),
            f"{kind} body": bodies,
            f"{kind} vectors": np.concatenate(vectors) if vectors else np.empty((0, 0), np.float32),
            f"{kind} rows": dict(sorted(self.rows_of.items())),
            f"{kind} latest": dict(sorted(self._latest.items())),
            f"{kind} stamps": self.stamps,
        }

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes: (held, mapped)."""
        held, mapped = self.body.nbytes
        narrow = sum(column.nbytes for column in self.narrow.values()) + self.read.nbytes
        return held + narrow + sum(self.vectors.nbytes), mapped
