"""Finding turns by the key they were added under."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import xxhash

from hmem_core.columns.growable import Growable

__all__ = ["KeyIndex", "Keys", "key_hash"]


def key_hash(key: str | None) -> int:
    """64-bit hash of a key; 0 stands for no key."""
    return 0 if key is None else max(1, xxhash.xxh3_64_intdigest(key.encode()))


class Keys(Protocol):
    """A column of keys."""

    def __getitem__(self, row: int, /) -> str | None: ...


class KeyIndex:
    """Rows by key, over a column of keys and the column of their hashes.

    Rows that were there at construction are found by binary search in their sorted hashes, which are
    sorted when first asked; later rows are found in a dict. Hashes only propose: the key itself decides.
    """

    __slots__ = ("_base", "_hashes", "_keys", "_later", "_order", "_sorted")

    def __init__(self, keys: Keys, hashes: Growable) -> None:
        self._keys = keys
        self._hashes = hashes
        self._base = len(hashes)
        self._order: npt.NDArray[np.intp] | None = None
        self._sorted: npt.NDArray[np.uint64] | None = None
        self._later: dict[int, list[int]] = {}

    def added(self, row: int) -> None:
        """Enter a row that was just appended."""
        if value := int(self._hashes[row]):
            self._later.setdefault(value, []).append(row)

    def erased(self, row: int, value: int) -> None:
        """Drop a row whose hash was `value`; rows of the sorted part drop out because their key is gone."""
        if row >= self._base and value:
            self._later[value].remove(row)

    def rows(self, key: str) -> list[int]:
        """All rows with this key, ascending."""
        value = key_hash(key)
        order, ordered = self._ordered()
        left, right = np.searchsorted(ordered, np.array([value, value + 1], dtype=np.uint64))
        found = [int(row) for row in order[left:right]] + self._later.get(value, [])
        return [row for row in found if self._keys[row] == key]

    def likely(self, keys: Sequence[str]) -> list[str]:
        """Those of the `keys` whose hash some row has, looked up all at once."""
        hashes = np.array([key_hash(key) for key in keys], np.uint64)
        _, ordered = self._ordered()
        places = np.searchsorted(ordered, hashes)
        there = np.zeros(hashes.size, np.bool_)
        inside = places < ordered.size
        there[inside] = ordered[places[inside]] == hashes[inside]
        later = self._later
        return [
            key
            for key, value, known in zip(keys, hashes.tolist(), there.tolist(), strict=True)
            if known or value in later
        ]

    def _ordered(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.uint64]]:
        if self._order is None or self._sorted is None:
            base = self._hashes.view()[: self._base]
            self._order = np.argsort(base, kind="stable")
            self._sorted = base[self._order]
        return self._order, self._sorted
