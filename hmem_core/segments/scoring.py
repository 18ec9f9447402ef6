"""Scores of the whole tree from the scores of its leaves, and their propagation (SegTreeMem)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hmem_core.options import ReadingOptions
from hmem_kernels import frozen
from hmem_kernels.frontier import Tree
from hmem_kernels.propagate import propagate_along, propagate_up, score_nodes

__all__ = ["covered", "live_children", "node_scores", "propagated"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

_NO_HEIGHTS = frozen(np.empty(0, np.int32))


def node_scores(tree: Tree, leaves: FloatArray, norm: FloatArray | None = None) -> FloatArray:
    """Scores of all nodes, float32 of shape (nodes,), from those of the turns.

    With the norms of the tree, a node's score is the cosine of the query with its centroid; with other norms,
    the sum of its turns' scores over them (the number of turns gives the mean).
    """
    scores = np.zeros((1, tree.start.size), np.float32)
    score_nodes(
        frozen(leaves[np.newaxis]),
        tree.start,
        tree.end,
        tree.norm if norm is None else frozen(norm),
        np.zeros(leaves.size + 1),
        scores,
    )
    found: FloatArray = scores[0]
    return found


def covered(tree: Tree, counted: npt.NDArray[np.uint8]) -> IntArray:
    """How many turns with a 1 in `counted` each node covers: int32 of shape (nodes,)."""
    before = np.zeros(counted.size + 1, np.int32)
    np.cumsum(counted, out=before[1:])
    counts: IntArray = before[tree.end + 1] - before[tree.start]
    return counts


def live_children(tree: Tree, live: npt.NDArray[np.uint8]) -> IntArray:
    """How many children of each node still cover a turn that is not forgotten, at least 1."""
    counts = np.zeros(tree.start.size, np.int32)
    child = np.flatnonzero((tree.parent >= 0) & (covered(tree, live) > 0))
    np.add.at(counts, tree.parent[child], 1)
    return np.maximum(counts, 1)


def propagated(
    tree: Tree, scores: FloatArray, live: npt.NDArray[np.uint8], options: ReadingOptions
) -> FloatArray:
    """What each node gains from those above it (top-down) or below it (bottom-up) within the horizon.

    Σ over hops h of α^h · W_P^h s, the scores themselves not included; float32 of shape (nodes,).
    """
    gained = np.zeros((1, scores.size), np.float32)
    decay = frozen((options.decay ** np.arange(1, options.horizon + 1)).astype(np.float32))
    heights = tree.height if options.by_height else _NO_HEIGHTS
    given = frozen(scores[np.newaxis])
    if options.policy == "top-down":
        propagate_along(given, tree.parent, heights, decay, gained)
    elif options.policy == "bottom-up":
        children = frozen(live_children(tree, live))
        propagate_up(given, tree.parent, heights, children, decay, np.zeros(scores.size), gained)
    result: FloatArray = gained[0]
    return result
