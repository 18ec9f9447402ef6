"""What facts say for and against the turns that tell them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Lent"]

FloatArray = npt.NDArray[np.float32]


class Lent(NamedTuple):
    """The turns of facts that match a question."""

    rows: npt.NDArray[np.int32]
    values: FloatArray
    """From 0 to 1 for turns whose facts hold, below 0 for turns whose facts hold no longer."""

    def column(self, rows: int, weight: float) -> FloatArray:
        """A signal over the first `rows` turns of a memory, float32."""
        found = np.zeros(rows, np.float32)
        inside = self.rows < rows
        found[self.rows[inside]] = np.float32(weight) * self.values[inside]
        return found
