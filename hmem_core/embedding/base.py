"""The contract that every encoder keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from hmem_core.records import EncoderIdentity

__all__ = ["Encoder", "FloatArray"]

FloatArray = npt.NDArray[np.float32]


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into unit vectors. Safe to call from several threads."""

    @property
    def identity(self) -> EncoderIdentity:
        """Name, dimension and weights hash, known without loading the model where possible."""

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """float32 array of shape (len(texts), dimension); every row has length 1, or is all zero where the
        text has nothing to embed.

        Raises:
            EncoderError: the model failed or gave NaN, infinite or wrongly shaped numbers.
        """
