"""A plain function as an encoder."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hmem_core.embedding.base import FloatArray
from hmem_core.embedding.checks import as_texts, unit_rows
from hmem_core.errors import EncoderError, InvalidInput
from hmem_core.records import EncoderIdentity

__all__ = ["FunctionEncoder"]


class FunctionEncoder:
    """Makes an encoder of a function from texts to numbers.

    The function gets a list of texts and returns whatever `numpy.asarray` turns into finite real numbers of
    shape (len(texts), dimension). Its rows are scaled to length 1. It is never given a blank text, which many
    services refuse: such a text has a row of zeros. It is called from whichever thread needs a vector.

    Args:
        fn: the function.
        name: what a memory written with it remembers; the function's qualified name unless given. A new name
            says that old vectors and new ones cannot be compared.
        dimension: numbers a text; found by one call with one short text unless given.

    Raises:
        InvalidInput: `fn` is a coroutine function, or `dimension` is not positive.
    """

    def __init__(
        self, fn: Callable[[list[str]], Any], *, name: str | None = None, dimension: int | None = None
    ) -> None:
        if inspect.iscoroutinefunction(fn):
            raise InvalidInput("the encoder is a coroutine function; give one that returns its vectors")
        if dimension is not None and dimension < 1:
            raise InvalidInput(f"a vector has at least 1 number, not {dimension}")
        self._fn = fn
        self._dimension = dimension
        self._name = name or _qualified_name(fn)

    def __repr__(self) -> str:
        return f"FunctionEncoder({self._name})"

    @cached_property
    def identity(self) -> EncoderIdentity:
        """Name and dimension; there is no file of weights to hash."""
        dimension = self._dimension or self._call(["dimension"], None).shape[1]
        return EncoderIdentity(self._name, dimension, "")

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Unit vectors of texts: float32 of shape (len(texts), dimension).

        Raises:
            InvalidInput: `texts` is not a list of strings.
            EncoderError: the function raised, or returned something else than finite numbers of that shape.
        """
        checked = as_texts(texts)
        width = self.identity.dimension
        vectors = np.zeros((len(checked), width), dtype=np.float32)
        filled = [i for i, text in enumerate(checked) if text.strip()]
        if filled:
            vectors[filled] = unit_rows(self._call([checked[i] for i in filled], width), self._name)
        return vectors

    def _call(self, texts: list[str], width: int | None) -> npt.NDArray[np.floating[Any]]:
        """What the function returns for the texts, checked for type and shape."""
        try:
            rows = np.asarray(self._fn(texts))
        except Exception as error:
            raise EncoderError(f"{self._name} failed on {len(texts)} texts: {error}") from error
        if rows.dtype.kind not in "fiu":
            raise EncoderError(f"{self._name} returned {rows.dtype} for {len(texts)} texts, not real numbers")
        if (
            rows.ndim != 2
            or len(rows) != len(texts)
            or rows.shape[1] < 1
            or width not in (None, rows.shape[1])
        ):
            expected = f"({len(texts)}, {width or 'dimension'})"
            raise EncoderError(
                f"{self._name} returned shape {rows.shape} for {len(texts)} texts, not {expected}"
            )
        return rows.astype(np.float64) if rows.dtype != np.float32 else rows


def _qualified_name(fn: Callable[..., Any]) -> str:
    """Module and name of a function, or of the class of any other callable object."""
    named = fn if hasattr(fn, "__qualname__") else type(fn)
    return f"{named.__module__}.{named.__qualname__}"
