"""Wide columns (texts, vectors), kept in blocks of a fixed number of rows.

A block that is full never moves again: a checkpoint writes it once, later checkpoints link to the same
file, and an append touches the last block alone. A block is either *mapped* (read-only memory of a
checkpoint file) or *held* (in the process); changing a row of a mapped block first copies the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["BLOCK_ROWS", "Strings", "Vectors", "block_count", "rows_of"]

BLOCK_ROWS = 16_384
"""Rows of a full block: 25 MB of vectors at 384 dimensions, which is what a checkpoint rewrites at most
when one turn was added."""

FloatArray = npt.NDArray[np.float32]


def block_count(rows: int) -> int:
    """How many blocks hold `rows` rows."""
    return -(-rows // BLOCK_ROWS)


class Strings:
    """A column of str or bytes, each possibly None.

    Args:
        kind: ``pa.large_string()`` or ``pa.large_binary()``.
        blocks: Arrow arrays of an earlier checkpoint; all but the last have `BLOCK_ROWS` rows.
    """

    __slots__ = ("_blocks", "_kind", "_mapped", "_size")

    def __init__(self, kind: pa.DataType, blocks: list[pa.Array] | None = None) -> None:
        self._kind = kind
        self._blocks: list[pa.Array | list[Any]] = list(blocks or ())
        self._mapped = [True] * len(self._blocks)
        self._size = sum(len(block) for block in self._blocks)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, row: int) -> Any:
        if not 0 <= row < self._size:
            raise IndexError(f"row {row} of {self._size}")
        block = self._blocks[row // BLOCK_ROWS]
        value = block[row % BLOCK_ROWS]
        return value.as_py() if isinstance(block, pa.Array) else value

    def append(self, value: str | bytes | None) -> None:
        place = self._size % BLOCK_ROWS
        if place == 0:
            self._blocks.append([])
            self._mapped.append(False)
        self._held(-1).append(value)
        self._size += 1
        if place == BLOCK_ROWS - 1:  # full: an Arrow array takes a third of the memory of Python strings
            self._blocks[-1] = pa.array(self._blocks[-1], type=self._kind)

    def truncate(self, size: int) -> None:
        """Keep the first `size` rows."""
        if size >= self._size:
            return
        count = block_count(size)
        del self._blocks[count:], self._mapped[count:]
        if size % BLOCK_ROWS:
            del self._held(-1)[size % BLOCK_ROWS :]
        self._size = size

    def erase(self, row: int) -> None:
        """Set a row to None; no copy of its block keeps the old value."""
        held = self._held(row // BLOCK_ROWS)
        held[row % BLOCK_ROWS] = None

    def arrow(self, block: int) -> pa.Array:
        """Block number `block` as an Arrow array."""
        rows = self._blocks[block]
        return rows if isinstance(rows, pa.Array) else pa.array(rows, type=self._kind)

    def _held(self, block: int) -> list[Any]:
        rows = self._blocks[block]
        if isinstance(rows, pa.Array):
            rows = rows.to_pylist()
            self._blocks[block] = rows
            self._mapped[block] = False
        return rows

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes of the values: (held, mapped). Of held Python strings only the characters count."""
        held = mapped = 0
        for block, is_mapped in zip(self._blocks, self._mapped, strict=True):
            size = block.nbytes if isinstance(block, pa.Array) else sum(len(value or ()) for value in block)
            held, mapped = (held, mapped + size) if is_mapped else (held + size, mapped)
        return held, mapped


class Vectors:
    """A matrix of float32 rows in blocks.

    Args:
        dimension: length of a row.
        blocks: read-only arrays of an earlier checkpoint, shape (rows, dimension); all but the last have
            `BLOCK_ROWS` rows.
    """

    __slots__ = ("_blocks", "_mapped", "_size", "dimension")

    def __init__(self, dimension: int, blocks: list[FloatArray] | None = None) -> None:
        self.dimension = dimension
        self._blocks: list[FloatArray] = list(blocks or ())
        self._mapped = [True] * len(self._blocks)
        self._size = sum(len(block) for block in self._blocks)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, row: int) -> FloatArray:
        if not 0 <= row < self._size:
            raise IndexError(f"row {row} of {self._size}")
        return cast(FloatArray, self._blocks[row // BLOCK_ROWS][row % BLOCK_ROWS])

    def append(self, vector: FloatArray) -> None:
        place = self._size % BLOCK_ROWS
        if place == 0:
            # Pages of the block that hold no row yet cost address space, not memory.
            self._blocks.append(np.empty((BLOCK_ROWS, self.dimension), dtype=np.float32))
            self._mapped.append(False)
        self._held(len(self._blocks) - 1)[place] = vector
        self._size += 1

    def truncate(self, size: int) -> None:
        """Keep the first `size` rows."""
        if size < self._size:
            count = block_count(size)
            del self._blocks[count:], self._mapped[count:]
            self._size = size

    def erase(self, row: int) -> None:
        """Set a row to zero."""
        self._held(row // BLOCK_ROWS)[row % BLOCK_ROWS] = 0.0

    def view(self) -> list[FloatArray]:
        """The rows so far as one array a block, without copying. Later appends do not show in it."""
        return [block[: self._size - number * BLOCK_ROWS] for number, block in enumerate(self._blocks)]

    def batch(self, block: int) -> pa.RecordBatch:
        """Block number `block` as an Arrow column FixedSizeList<float32>, sharing its memory."""
        flat = pa.array(self.view()[block].reshape(-1), type=pa.float32())
        column = pa.FixedSizeListArray.from_arrays(flat, self.dimension)
        return pa.RecordBatch.from_arrays([column], names=["vector"])

    def _held(self, block: int) -> FloatArray:
        rows = self._blocks[block]
        if self._mapped[block]:
            held = np.empty((BLOCK_ROWS, self.dimension), dtype=np.float32)
            held[: len(rows)] = rows
            self._blocks[block] = rows = held
            self._mapped[block] = False
        return rows

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes of the rows: (held, mapped)."""
        held = mapped = 0
        for block, is_mapped in zip(self.view(), self._mapped, strict=True):
            if is_mapped:
                mapped += block.nbytes
            else:
                held += block.nbytes
        return held, mapped


def rows_of(
    blocks: Sequence[npt.NDArray[np.float32]], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """Those rows of a column of vectors, in any order, as one array of shape (rows, dimension)."""
    found = np.empty((rows.size, blocks[0].shape[1] if len(blocks) else 0), np.float32)
    numbers, places = np.divmod(rows, BLOCK_ROWS)
    for number in np.unique(numbers):
        here = numbers == number
        found[here] = blocks[number][places[here]]
    return found
