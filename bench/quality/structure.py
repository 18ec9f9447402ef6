"""What the segment tree of a conversation looks like, and what it costs to find a turn's place in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hmem_core.columns.tree import TreeColumns
from hmem_core.options import SegmentOptions
from hmem_core.segments.construction import rule

__all__ = ["Structure", "structure"]

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Structure:
    """The size of one tree."""

    turns: int
    nodes: int
    height: int
    """Of the root, in the paper's uncompressed tree."""
    children: float
    """Of an inner node, in the mean."""
    depth: float
    """Stored links from a turn to the root, in the mean."""
    compared: float
    """Frontier nodes that a turn was compared with before it had its place, in the mean."""

    @property
    def logarithm(self) -> float:
        """What `compared` is to be measured against: log2 of the turns."""
        return math.log2(max(self.turns, 1))


def structure(vectors: FloatArray, options: SegmentOptions) -> Structure:
    """The tree that a memory builds of these turns, added in this order."""
    columns = TreeColumns(vectors.shape[1])
    decided = columns.decide(vectors, rule(options))
    columns.attach(vectors, decided.heights)
    tree, turns = columns.view(), len(vectors)
    inner = len(columns) - turns
    return Structure(
        turns=turns,
        nodes=len(columns),
        height=columns.root_height,
        children=(len(columns) - 1) / inner if inner else 0.0,
        depth=float(_depths(tree.parent)[tree.leaf].mean()) if turns else 0.0,
        compared=decided.compared / max(turns, 1),
    )


def _depths(parent: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Links from each node to the root."""
    depths = np.zeros(parent.size, np.int64)
    above: Sequence[int] | npt.NDArray[np.int32] = parent
    while (climbing := np.asarray(above) >= 0).any():
        depths += climbing
        above = np.where(climbing, parent[np.maximum(above, 0)], -1)
    return depths
