"""What a model wrote of segments: one row an annotation, in the order they were written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hmem_core.columns.blocks import BLOCK_ROWS, Strings, Vectors, block_count
from hmem_core.columns.growable import Growable

__all__ = ["AnnotationColumns", "AnnotationView"]

FloatArray = npt.NDArray[np.float32]

_NARROW: dict[str, type[np.generic]] = {
    "node": np.int32,  # of the segment tree; -1 once erased, when the other columns are 0
    "first": np.int32,  # the turns that were read for it
    "last": np.int32,
    "seq": np.int64,  # its entry in the journal
}


class AnnotationView(NamedTuple):
    """The annotation that counts of each node that has one, as a reader sees them."""

    nodes: npt.NDArray[np.int32]
    """Ascending."""
    last: npt.NDArray[np.int32]
    """The last turn that was read for it."""
    rows: npt.NDArray[np.int32]
    text: Strings
    vectors: Vectors

    def of(self, node: int) -> str | None:
        """The text of a node's annotation; None if it has none."""
        place = int(np.searchsorted(self.nodes, node))
        if place == self.nodes.size or self.nodes[place] != node:
            return None
        text: str | None = self.text[int(self.rows[place])]
        return text

    def matrix(self) -> FloatArray:
        """Their vectors, float32 of shape (nodes, dimension)."""
        found = np.empty((self.rows.size, self.vectors.dimension), np.float32)
        for place, row in enumerate(self.rows.tolist()):
            found[place] = self.vectors[row]
        return found


class AnnotationColumns:
    """All annotations. A node's latest one counts; earlier ones stay, as the journal holds them too."""

    __slots__ = ("_current", "narrow", "stamps", "text", "vectors")

    def __init__(self, dimension: int) -> None:
        self.narrow = {name: Growable(dtype) for name, dtype in _NARROW.items()}
        self.text = Strings(pa.large_string())
        self.vectors = Vectors(dimension)
        self.stamps: list[int] = []
        self._current: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.text)

    def append(self, seq: int, node: int, first: int, last: int, text: str, vector: FloatArray) -> None:
        row = len(self)
        self._append(seq, (node, first, last, seq), text, vector)
        self._current[node] = row

    def append_erased(self, seq: int) -> None:
        """A row for an annotation that the journal no longer holds."""
        self._append(seq, (-1, 0, 0, 0), None, np.zeros(self.vectors.dimension, np.float32))

    def _append(self, stamp: int, values: Sequence[int], text: str | None, vector: FloatArray) -> None:
        block = len(self) // BLOCK_ROWS
        for column, value in zip(self.narrow.values(), values, strict=True):
            column.append(value)
        self.text.append(text)
        self.vectors.append(vector)
        self.stamps[block:] = [stamp]

    def resting_on(self, turns: Iterable[int]) -> list[int]:
        """Rows of annotations for which one of these turns was read, ascending."""
        node, first, last = (self.narrow[name].view() for name in ("node", "first", "last"))
        found = np.zeros(len(self), np.bool_)
        for turn in turns:
            found |= (first <= turn) & (turn <= last)
        return [int(row) for row in np.flatnonzero(found & (node >= 0))]

    def erase(self, rows: Sequence[int]) -> None:
        """Blank rows. Of a node whose annotation goes, the one before it counts again, if there is one."""
        for row in rows:
            for name, column in self.narrow.items():
                column[row] = -1 if name == "node" else 0
            self.text.erase(row)
            self.vectors.erase(row)
        if rows:
            self._index()

    def stamp_all(self, seq: int) -> None:
        """Say that entry number `seq` changed every block (see `TurnColumns.stamp_all`)."""
        self.stamps = [seq] * len(self.stamps)

    def _index(self) -> None:
        nodes = self.narrow["node"].view()
        self._current = {int(nodes[row]): int(row) for row in np.flatnonzero(nodes >= 0)}

    def view(self) -> AnnotationView:
        """What a reader may use while annotations are added."""
        nodes = np.array(sorted(self._current), np.int32)
        rows = np.array([self._current[node] for node in nodes.tolist()], np.int32)
        return AnnotationView(nodes, self.narrow["last"].view()[rows], rows, self.text, self.vectors)

    def batch(self, block: int) -> pa.RecordBatch:
        """One block of every column, for a checkpoint."""
        rows = slice(block * BLOCK_ROWS, (block + 1) * BLOCK_ROWS)
        columns = {name: pa.array(column.view()[rows].copy()) for name, column in self.narrow.items()}
        vectors = self.vectors.batch(block).column("vector")
        return pa.RecordBatch.from_pydict({**columns, "text": self.text.arrow(block), "vector": vectors})

    @classmethod
    def restore(
        cls, dimension: int, batches: Sequence[pa.RecordBatch], stamps: Sequence[int]
    ) -> AnnotationColumns:
        """The columns that `batch` wrote; texts and vectors stay mapped."""
        columns = cls(dimension)
        for name, dtype in _NARROW.items():
            parts = [batch.column(name).to_numpy() for batch in batches]
            columns.narrow[name] = Growable(dtype, np.concatenate(parts) if parts else ())
        columns.text = Strings(pa.large_string(), [batch.column("text") for batch in batches])
        flat = [batch.column("vector").flatten().to_numpy(zero_copy_only=True) for batch in batches]
        columns.vectors = Vectors(dimension, [block.reshape(-1, dimension) for block in flat])
        columns.stamps = list(stamps)
        if len(stamps) != block_count(len(columns)):
            raise ValueError("the annotations of the checkpoint are not whole")
        columns._index()
        return columns

    def arrays(self) -> dict[str, Any]:
        """Every value, in a form that compares bit for bit."""
        vectors = self.vectors.view()
        texts = [text for block in range(len(self.stamps)) for text in self.text.arrow(block).to_pylist()]
        return {
            **{f"annotation {name}": column.view() for name, column in self.narrow.items()},
            "annotation text": texts,
            "annotation vectors": np.concatenate(vectors) if vectors else np.empty((0, 0), np.float32),
            "annotation current": dict(sorted(self._current.items())),
            "annotation stamps": self.stamps,
        }

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes: (held, mapped)."""
        (texts, mapped_texts), (vectors, mapped_vectors) = self.text.nbytes, self.vectors.nbytes
        narrow = sum(column.nbytes for column in self.narrow.values())
        return narrow + texts + vectors, mapped_texts + mapped_vectors
