"""The contract that every encoder keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from hmem_core.effects import Embedded
from hmem_core.records import EncoderIdentity

__all__ = ["Encoder", "FloatArray", "Reranker", "StateEncoder", "embed_states", "states_of"]

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


@runtime_checkable
class StateEncoder(Encoder, Protocol):
    """An encoder that can also give the states of tokens, for late interaction."""

    def embed_states(self, texts: Sequence[str]) -> Embedded:
        """What `embed` gives, and the states of the texts' tokens from the same run of the model.

        Raises:
            EncoderError: as `embed`.
        """


@runtime_checkable
class Reranker(Protocol):
    """Reads a query and a text together, which finds more than comparing their vectors, and takes longer.
    Safe to call from several threads."""

    def score(self, query: str, texts: Sequence[str]) -> FloatArray:
        """How well each text answers the query: finite float32 of shape (len(texts),), the greater the
        better. Only differences mean something.

        Raises:
            EncoderError: the model failed or gave NaN, infinite or wrongly shaped numbers.
        """


def states_of(encoder: Encoder) -> Callable[[Sequence[str]], Embedded] | None:
    """The method of an encoder that gives states, if it has one."""
    return encoder.embed_states if isinstance(encoder, StateEncoder) else None


def embed_states(encoder: Encoder, texts: Sequence[str]) -> Embedded:
    """Vectors of any encoder, with states where it can give them."""
    method = states_of(encoder)
    return Embedded(encoder.embed(texts), None) if method is None else method(texts)
