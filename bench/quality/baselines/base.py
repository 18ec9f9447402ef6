"""What a baseline is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Asked", "Build", "Corpus", "Find", "best"]

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Corpus:
    """Turns in the order in which they were said."""

    texts: Sequence[str]
    """Speaker and content of each."""
    vectors: FloatArray
    """Their embeddings, of unit length; shape (turns, dimension)."""


@dataclass(frozen=True)
class Asked:
    """A question."""

    text: str
    vector: FloatArray
    k: int
    """Turns wanted."""
    before: int
    """Only turns before that position may be found. Indexes are over all of them nevertheless, as a memory's
    are that is asked `as_of` an earlier time."""


Find = Callable[[Asked], list[int]]
"""From a question to the positions of turns, best first."""
Build = Callable[[Corpus], Find]


def best(scores: npt.NDArray[np.floating], k: int) -> list[int]:
    """Positions of the k greatest, greatest first; ties: the earlier first."""
    found: list[int] = np.argsort(-scores, kind="stable")[:k].tolist()
    return found
