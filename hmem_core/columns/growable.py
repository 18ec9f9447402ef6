"""A NumPy array that grows at its end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Growable"]

_FIRST_CAPACITY = 64


class Growable:
    """One-dimensional column with amortised constant-time append.

    Views handed out earlier stay valid: growing moves to a new buffer and leaves the old one to them.
    """

    __slots__ = ("_data", "_size")

    def __init__(self, dtype: npt.DTypeLike, values: npt.ArrayLike = ()) -> None:
        self._data: npt.NDArray[Any] = np.array(values, dtype=dtype)
        if self._data.ndim != 1:
            raise ValueError(f"a column has one dimension, not {self._data.ndim}")
        self._size = self._data.size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, row: int) -> Any:
        if not 0 <= row < self._size:
            raise IndexError(f"row {row} of {self._size}")
        return self._data[row]

    def __setitem__(self, row: int, value: Any) -> None:
        if not 0 <= row < self._size:
            raise IndexError(f"row {row} of {self._size}")
        self._data[row] = value

    def append(self, value: Any) -> None:
        if self._size == self._data.size:
            grown = np.empty(max(_FIRST_CAPACITY, 2 * self._size), dtype=self._data.dtype)
            grown[: self._size] = self._data[: self._size]
            self._data = grown
        self._data[self._size] = value
        self._size += 1

    def extend(self, values: npt.ArrayLike) -> None:
        """Append several values."""
        rows = np.asarray(values, dtype=self._data.dtype)
        size = self._size + rows.size
        if size > self._data.size:
            grown = np.empty(max(_FIRST_CAPACITY, 2 * self._size, size), dtype=self._data.dtype)
            grown[: self._size] = self._data[: self._size]
            self._data = grown
        self._data[self._size : size] = rows
        self._size = size

    def truncate(self, size: int) -> None:
        """Keep the first `size` rows."""
        self._size = min(size, self._size)

    def view(self) -> npt.NDArray[Any]:
        """The rows so far, without copying. Later appends do not show in it."""
        return self._data[: self._size]

    @property
    def nbytes(self) -> int:
        return self._data.nbytes
