"""MemTree (Rezazadeh et al., arXiv 2410.14052) without its aggregation by a language model.

Each turn goes down from the root, at every node to the child most similar to it, as long as that is at least
as similar as a threshold that grows with depth: θ(d) = θ₀ · exp(λ d). Where no child is, it becomes a child
itself; a leaf that it reaches becomes the parent of both. Nodes on the way take it in: their vector is the
mean of the turns below. Search is over all nodes at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from bench.quality.baselines.base import Corpus, Find, FloatArray
from bench.quality.baselines.collapsed import Members, collapsed, unit

__all__ = ["Node", "grown", "memtree"]

BASE, RATE = 0.3, 0.5
"""θ₀ and λ: of 0.3, 0.4, … 0.7 and 0.1, 0.25, 0.5 the best by recall at 8 on the dev half of LoCoMo."""


@dataclass
class Node:
    """A turn, or a group of them."""

    sum: FloatArray
    """Of the vectors of the turns below."""
    turns: list[int]
    children: list[Node] = field(default_factory=list)
    """Empty for a turn."""


def memtree(corpus: Corpus, base: float = BASE, rate: float = RATE) -> Find:
    """Turns by the collapsed tree over them."""
    groups: list[Members] = []
    sums = []
    waiting = list(grown(corpus.vectors, base, rate).children)
    while waiting:
        node = waiting.pop()
        if node.children:
            groups.append(np.array(node.turns))
            sums.append(node.sum)
            waiting += node.children
    return collapsed(corpus, groups, sums)


def grown(vectors: FloatArray, base: float = BASE, rate: float = RATE) -> Node:
    """The root of the tree that turns with these unit vectors make in their order."""
    root = Node(np.zeros(vectors.shape[1], np.float32), [])
    for turn, vector in enumerate(vectors):
        node, depth = root, 0
        while True:
            if node is not root and not node.children:
                node.children.append(Node(node.sum.copy(), list(node.turns)))
                onwards = None
            else:
                onwards = _similar(node.children, vector, base * math.exp(rate * depth))
            node.sum += vector
            node.turns.append(turn)
            if onwards is None:
                node.children.append(Node(vector.copy(), [turn]))
                break
            node, depth = onwards, depth + 1
    return root


def _similar(nodes: list[Node], vector: FloatArray, threshold: float) -> Node | None:
    """The most similar node, if it is similar enough."""
    if not nodes:
        return None
    cosines = unit(np.array([node.sum for node in nodes])) @ vector
    nearest = int(np.argmax(cosines))
    return nodes[nearest] if cosines[nearest] >= threshold else None
