"""Relevance over the segment tree (SegTreeMem, arXiv 2606.04555): scores of all nodes, and their propagation.

With s the scores and W a matrix that moves relevance one hop, propagation is s + Σ_h decay[h] · W^h s. The
paper's decay is α^h up to a horizon, the length of `decay`; a caller may give any other numbers.

- top-down, W[child, parent] = 1: `propagate_along` the parents;
- bottom-up, W[parent, child] = 1 / #children: `propagate_up`;
- lateral: `propagate_along` the turns before, and once more along those after. Two matrices rather than one,
  as relevance that comes back to its turn would only scale it. Ours.

Both kernels walk from each node along its links, so W is never built and no power of it stored. They add to
`total`, which a caller fills with the scores themselves or with anything else that they are to be added to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hmem_kernels._kernel import frozen, kernel

__all__ = ["propagate_along", "propagate_up", "score_nodes"]

FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]

# Five nodes: turns 0 and 1 below node 2, and that and turn 2 (node 3) below node 4, two heights up.
_START, _END, _HEIGHT, _PARENT, _CHILDREN = (
    frozen(np.array(column, np.int32))
    for column in ([0, 1, 0, 2, 0], [0, 1, 1, 2, 2], [0, 0, 1, 0, 3], [2, 2, 4, 4, -1], [0, 0, 2, 0, 2])
)
_DECAY = frozen(np.array([0.5, 0.25, 0.125], np.float32))


def _score_examples() -> Iterator[tuple[Any, ...]]:
    norm = frozen(np.array([1, 1, 0, 1, 1.5], np.float32))
    for queries, turns, n in ((0, 3, 5), (2, 3, 5), (1, 0, 0)):
        scores = frozen(np.arange(queries * turns, dtype=np.float32).reshape(queries, turns))
        tree = (_START[:n], _END[:n], norm[:n])
        yield scores, *tree, np.zeros(turns + 1), np.zeros((queries, n), np.float32)


@kernel(examples=_score_examples)
def score_nodes(
    turns: FloatArray,
    start: IntArray,
    end: IntArray,
    norm: FloatArray,
    prefix: DoubleArray,
    nodes: FloatArray,
) -> None:
    """Write the score of every node from those of the turns.

    turns   float32 (q, turns): dot products of queries and turns; 0 for a forgotten turn
    start   int32 (nodes,): first turn
    end     int32 (nodes,): last turn, included
    norm    float32 (nodes,): length of the sum of the turns' vectors
    prefix  float64 (turns + 1,), overwritten
    nodes   float32 (q, nodes), written

    A leaf scores as its turn. Any other node scores as the mean direction of its turns: the sum of their
    scores over the norm, or 0 if the norm is 0. So nodes need no vectors.
    """
    after = prefix[1:]
    for q in range(turns.shape[0]):
        total = np.float64(0.0)
        prefix[0] = 0.0
        for t in range(turns.shape[1]):
            total += turns[q, t]
            after[t] = total
        for i in range(start.size):
            first, last = np.uint32(start[i]), np.uint32(end[i])
            if first == last:
                nodes[q, i] = turns[q, first]
            elif norm[i] > 0.0:
                nodes[q, i] = (after[last] - prefix[first]) / norm[i]
            else:
                nodes[q, i] = 0.0


def _along_examples() -> Iterator[tuple[Any, ...]]:
    for queries, n in ((0, 5), (2, 5), (1, 0)):
        scores = frozen(np.arange(queries * n, dtype=np.float32).reshape(queries, n))
        for height in (_HEIGHT[:n], _HEIGHT[:0]):
            yield scores, _PARENT[:n], height, _DECAY, np.zeros((queries, n), np.float32)


@kernel(examples=_along_examples)
def propagate_along(
    scores: FloatArray, link: IntArray, height: IntArray, decay: FloatArray, total: FloatArray
) -> None:
    """Add to each node's total what it inherits along its links.

    scores  float32 (q, n)
    link    int32 (n,): where a node inherits from, or -1: its parent, or the turn before or after it
    height  int32 (n,): a link counts as many hops as it climbs, as in the paper's tree, where chains of nodes
            that score nothing of their own make up the difference; of length 0, a link is one hop
    decay   float32 (hops,): the weight of what comes from 1, 2, … hops away; nothing comes from further
    total   float32 (q, n), updated
    """
    climbs = height.size > 0
    for q in range(scores.shape[0]):
        for i in range(link.size):
            inherited = np.float32(0.0)
            hops = 0
            following = link[i]
            while following >= 0:
                j = np.uint32(following)
                hops = height[j] - height[i] if climbs else hops + 1
                if hops > decay.size:
                    break
                inherited += decay[hops - 1] * scores[q, j]
                following = link[j]
            total[q, i] += inherited


def _up_examples() -> Iterator[tuple[Any, ...]]:
    for scores, parent, height, decay, total in _along_examples():
        yield scores, parent, height, _CHILDREN[: len(parent)], decay, np.zeros(len(parent)), total


@kernel(examples=_up_examples)
def propagate_up(
    scores: FloatArray,
    parent: IntArray,
    height: IntArray,
    children: IntArray,
    decay: FloatArray,
    gained: DoubleArray,
    total: FloatArray,
) -> None:
    """Add to each node's total the mean over its children, and theirs over their own, and so on.

    scores    float32 (q, n)
    parent    int32 (n,), -1 for the root
    height    int32 (n,): as for `propagate_along`
    children  int32 (n,): how many
    decay     float32 (hops,): as for `propagate_along`
    gained    float64 (n,), overwritten: a node may have a million children
    total     float32 (q, n), updated
    """
    climbs = height.size > 0
    for q in range(scores.shape[0]):
        gained[:] = 0.0
        for i in range(parent.size):
            share = np.float64(scores[q, i])
            hops = 0
            following = parent[i]
            while following >= 0:
                j = np.uint32(following)
                hops = height[j] - height[i] if climbs else hops + 1
                if hops > decay.size:
                    break
                share /= children[j]
                gained[j] += decay[hops - 1] * share
                following = parent[j]
        for i in range(parent.size):
            total[q, i] += gained[i]
