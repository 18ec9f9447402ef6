"""Collapsed-tree retrieval: turns and the groups above them compete as equals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bench.quality.baselines.base import Asked, Corpus, Find, FloatArray, best

__all__ = ["collapsed", "unit"]

Members = npt.NDArray[np.int64]


def collapsed(corpus: Corpus, groups: Sequence[Members], means: Sequence[FloatArray]) -> Find:
    """Nodes by their cosine with the question; a group gives its turns, the nearest first, until there are
    enough. In place of an LLM's summary a group has the mean of its turns.

    Args:
        groups: positions of the turns below each inner node.
        means: of the vectors of these turns, of any length; shape (dimension,) each.
    """
    turns = len(corpus.texts)
    nodes = np.concatenate([corpus.vectors, unit(np.array(means, np.float32))]) if groups else corpus.vectors

    def find(asked: Asked) -> list[int]:
        cosines = nodes @ asked.vector
        found: dict[int, None] = {}
        for node in best(cosines, cosines.size):
            if node < turns:
                members = [node]
            else:
                below = groups[node - turns]
                members = below[best(cosines[below], below.size)].tolist()
            for turn in members:
                if turn < asked.before:
                    found.setdefault(turn)
                    if len(found) == asked.k:
                        return list(found)
        return list(found)

    return find


def unit(vectors: FloatArray) -> FloatArray:
    """Rows at unit length; rows of zeros stay."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)
