"""What goes into an encoder, and what may come out of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hmem_core.embedding.base import FloatArray
from hmem_core.errors import EncoderError, InvalidInput

__all__ = ["as_texts", "unit_rows"]


def as_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list.

    Raises:
        InvalidInput: a single string was given, or an item is not a string.
    """
    if isinstance(texts, str):
        raise InvalidInput("embed takes a list of texts; for a single one write embed([text])")
    checked = list(texts)
    for position, text in enumerate(checked):
        if not isinstance(text, str):
            raise InvalidInput(f"text {position} is {type(text).__name__}, not str")
    return checked


def unit_rows(rows: npt.NDArray[np.floating[Any]], source: str) -> FloatArray:
    """The rows of a two-dimensional array scaled to length 1, as float32; rows of zeros stay zero.

    Args:
        rows: float array of shape (n, d). Not changed.
        source: what made the rows, for the message.

    Raises:
        EncoderError: a number is NaN or infinite.
    """
    if not np.isfinite(rows).all():
        bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise EncoderError(f"{source} gave NaN or infinite numbers, first in row {bad} of {len(rows)}")
    # Dividing by the largest number first keeps the squares of huge and of tiny rows in range.
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled = (rows / np.where(largest > 0, largest, 1)).astype(np.float32, copy=False)
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    scaled /= np.where(length > 0, length, 1)
    return scaled
