"""How well names match: 1 for the same name, else the cosine of their vectors, and never less than 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.blocks import Vectors
from hmem_core.columns.facts import FactColumns

__all__ = ["Matcher", "Named", "context_matches"]

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]


class Named(NamedTuple):
    """A name that is wanted."""

    code: int
    """That of the name, alias resolved; one that no unit holds if the graph does not know it."""
    vector: FloatArray


class Matcher:
    """A column of names, to be matched with others.

    Args:
        vectors: of all names.
        codes: int32 (n,); -1 for none.
    """

    def __init__(self, vectors: Vectors, codes: IntArray) -> None:
        self._codes, self._place = np.unique(codes, return_inverse=True)
        rows = [vectors[code] for code in self._codes.tolist() if code >= 0]
        self._empty = self._codes.size - len(rows)  # -1 comes first
        self._rows = np.array(rows, np.float32).reshape(len(rows), vectors.dimension)
        norms = np.linalg.norm(self._rows, axis=1)
        self._norms = np.where(norms > 0, norms, np.inf)

    def match(self, name: Named) -> FloatArray:
        """float32 (n,): how well each matches a name; 0 where there is none."""
        found = np.zeros(self._codes.size, np.float32)
        norm = float(np.linalg.norm(name.vector))
        if norm > 0:
            cosines = self._rows @ (name.vector / norm) / self._norms
            found[self._empty :] = np.clip(cosines, 0.0, 1.0)
        found[(self._codes == name.code) & (self._codes >= 0)] = 1.0
        matched: FloatArray = found[self._place]
        return matched


def context_matches(facts: FactColumns, units: IntArray, wanted: Sequence[Sequence[Named]]) -> FloatArray:
    """float32 (n,): how well the contexts of units fit those of the temporary unit that they fit best.

    Of one, it is the mean over its contexts of the best match among the unit's; 1 if either has none.
    """
    if not wanted or not all(wanted):
        return np.ones(units.size, np.float32)
    held = [facts.contexts[unit] for unit in units.tolist()]
    sizes = np.array([codes.size for codes in held], np.int64)
    matcher = Matcher(facts.names.vectors, np.concatenate([np.empty(0, np.int32), *held]))
    filled = sizes > 0
    starts = (np.cumsum(sizes) - sizes)[filled]
    best = np.where(filled, 0.0, 1.0).astype(np.float32)
    for contexts in wanted:
        if starts.size:
            fits = [np.maximum.reduceat(matcher.match(name), starts) for name in contexts]
            best[filled] = np.maximum(best[filled], np.mean(fits, axis=0))
    return best
