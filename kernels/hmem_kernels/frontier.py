"""The segment tree of SegTreeMem (arXiv 2606.04555), built turn by turn and stored compressed.

In the paper's tree all leaves lie at height 0. The nodes whose interval ends with the last turn, the
frontier, are one for each height up to the root's. A new turn attached at height k becomes a leaf at the end
of a chain of k - 1 nodes below the frontier node of height k; where none is compatible, a new root takes the
old one and such a chain. Most of those nodes have one child, hence its interval, embedding and annotation.
They are never stored. What is stored are the leaves and the nodes with two children or more, at most 2T - 1
nodes of T turns, each with its height. The two trees say the same:

- The last child of a frontier node is the frontier node one height lower. So a frontier node with one child
  equals the next *stored* frontier node below it: between stored ones of heights a > b, the virtual heights
  b + 1 to a - 1 are all equal to the lower one, and a turn is as similar to them as to it.
- Attaching at the height of a stored node gives it a child. Attaching at a virtual height makes that node
  real, with two children: the stored node below, which thereby leaves the frontier, and the new leaf. A new
  root is one more virtual height, that above the root; so one rule, "attach at height k", is the whole of it.
- What the frontier has below height k is closed: no later turn comes under it.

The frontier is a stack, the root first and the last leaf on top, heights strictly falling. Each entry keeps
the sum of the leaves under it and under no entry above it. A turn then changes only the entries that it
closes (each closed once: amortised O(1) a turn) and the one that takes it. Comparing a turn with an entry
costs O(d), and comparing goes on from the top until a height is found: at worst the whole stack, which is
logarithmic on conversations and may be linear on adversarial input.

Zero vectors (forgotten turns) are similar to nothing: similarity 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_kernels._kernel import REORDER, frozen, kernel

__all__ = [
    "COMPARED",
    "DEPTH",
    "NODES",
    "TURNS",
    "Frontier",
    "Rule",
    "Tree",
    "attach",
    "auto_rule",
    "fixed_rule",
    "new_frontier",
    "new_tree",
]

FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
SizeArray = npt.NDArray[np.int64]

TURNS, NODES, DEPTH, COMPARED = range(4)
"""What `Frontier.sizes` counts: turns, nodes, entries of the stack, comparisons of a turn with an entry."""


class Tree(NamedTuple):
    """Nodes by their number, which is the order of their making: a turn's leaf, then the node made for it."""

    start: IntArray
    """First turn."""
    end: IntArray
    """Last turn, included."""
    height: IntArray
    """In the paper's tree; 0 is a leaf."""
    parent: IntArray
    """Nearest stored ancestor; -1 for the root."""
    children: IntArray
    """How many: 0 for a leaf, else two or more."""
    norm: FloatArray
    """Length of the sum of the vectors of its turns."""
    leaf: IntArray
    """For each turn, its node."""


class Frontier(NamedTuple):
    """Where building goes on."""

    node: IntArray
    """The stack: nodes that end with the last turn, the root first, the leaf last."""
    sums: DoubleArray
    """(entries, d): of each, the sum of the vectors under it and under none of the later ones."""
    pairs: DoubleArray
    """Number, mean and sum of squared deviations of the similarities of successive turns."""
    sizes: SizeArray
    """`TURNS`, `NODES`, `DEPTH`, `COMPARED`."""


class Rule(NamedTuple):
    """At which heights a turn is compatible with what is there.

    A turn of similarity s passes height h if s - level >= shape[h - 1]; beyond its end, `shape` goes on with
    its last number. The level follows the conversation: with m and σ the mean and deviation of similarities
    between successive turns so far, it is m + spread · σ, clipped to [low, high]. Ours; thresholds that stay
    are a level clipped to [0, 0].
    """

    shape: DoubleArray
    """Not increasing."""
    spread: float
    low: float
    high: float
    best: bool
    """Take the most similar of the heights that pass, the lowest of equals; else the lowest that passes."""


def new_tree(nodes: int, turns: int) -> Tree:
    """Room for so many nodes and turns."""
    start, end, height, parent, children = (np.zeros(nodes, np.int32) for _ in range(5))
    return Tree(start, end, height, parent, children, np.zeros(nodes, np.float32), np.zeros(turns, np.int32))


def new_frontier(depth: int, dimension: int, pairs: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Frontier:
    """The frontier before the first turn, with room for so many entries.

    `pairs` is what is believed of similarities before any was seen: how many it counts for, mean, deviation.
    """
    count, mean, deviation = pairs
    return Frontier(
        np.zeros(depth, np.int32),
        np.zeros((depth, dimension)),
        np.array([count, mean, count * deviation**2]),
        np.zeros(4, np.int64),
    )


def fixed_rule(thresholds: npt.ArrayLike, best: bool = False) -> Rule:
    """Thresholds for the heights 1, 2, …; not increasing, the last one for all greater heights."""
    return Rule(frozen(np.array(thresholds, np.float64, ndmin=1)), 0.0, 0.0, 0.0, best)


def auto_rule(
    spread: float, fall: float, low: float, high: float, heights: int = 64, best: bool = False
) -> Rule:
    """Thresholds that follow the conversation: level - fall · log2(h), the same from `heights` on. Ours."""
    shape = -fall * np.log2(np.arange(1, heights + 1))
    return Rule(frozen(shape), float(spread), float(low), float(high), best)


@kernel(fastmath=REORDER)
def _dot(a: DoubleArray, b: DoubleArray) -> float:
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@kernel
def _norm(a: DoubleArray) -> float:
    return math.sqrt(_dot(a, a))


@kernel
def _add(a: DoubleArray, b: DoubleArray) -> None:
    for j in range(a.size):
        a[j] += b[j]


@kernel
def _similarity(dot: float, norms: float) -> float:
    return dot / norms if norms > 0.0 else 0.0


@kernel
def _level(pairs: DoubleArray, rule: Rule) -> float:
    count, mean, squares = pairs
    # Rounding may leave a little less than nothing, of which there is no root.
    deviation = math.sqrt(max(squares, 0.0) / count) if count > 0.0 else 0.0
    level: float = min(max(mean + rule.spread * deviation, rule.low), rule.high)
    return level


@kernel
def _observe(similarity: float, pairs: DoubleArray) -> None:
    """Welford's update."""
    pairs[0] += 1.0
    before = similarity - pairs[1]
    pairs[1] += before / pairs[0]
    pairs[2] += before * (similarity - pairs[1])


@kernel
def _lowest_passing(shape: DoubleArray, value: float, low: int, high: int) -> int:
    """The lowest of the heights `low` to `high` that `value` passes, or `high` + 1."""
    stop = min(high, shape.size)
    if value < shape[stop - 1]:
        return high + 1
    while low < stop:
        middle = (low + stop) // 2
        if value >= shape[middle - 1]:
            stop = middle
        else:
            low = middle + 1
    return low


@kernel
def _decide(x: DoubleArray, rule: Rule, tree: Tree, frontier: Frontier, running: DoubleArray) -> int:
    """The height to attach `x` at: one above the root if no height passes."""
    node, sums, pairs, sizes = frontier
    level = _level(pairs, rule)
    norm = _norm(x)
    ceiling = tree.height[node[0]]
    chosen: int = ceiling + 1
    highest = -np.inf
    running[:] = 0.0
    for i in range(sizes[DEPTH] - 1, -1, -1):
        _add(running, sums[i])
        low = max(tree.height[node[i]], 1)  # the leaf itself takes no child, the heights above it do
        high = tree.height[node[i - 1]] - 1 if i > 0 else ceiling
        if low > high:
            continue
        sizes[COMPARED] += 1
        similarity = _similarity(_dot(running, x), norm * _norm(running))
        if similarity > highest:
            height = _lowest_passing(rule.shape, similarity - level, low, high)
            if height <= high:
                chosen, highest = height, similarity
                if not rule.best:
                    break
    return chosen


@kernel
def _attach_one(x: DoubleArray, height: int, tree: Tree, frontier: Frontier, running: DoubleArray) -> None:
    node, sums, _, sizes = frontier
    turn, leaf, depth = sizes[TURNS], sizes[NODES], sizes[DEPTH]
    sizes[TURNS] += 1
    sizes[NODES] += 1

    parent = -1
    below = -1
    running[:] = 0.0
    while depth > 0 and tree.height[node[depth - 1]] < height:
        depth -= 1
        below = node[depth]
        _add(running, sums[depth])
        tree.end[below] = turn - 1
        tree.norm[below] = _norm(running)
    if depth > 0 and tree.height[node[depth - 1]] == height:
        parent = node[depth - 1]
        tree.children[parent] += 1
        _add(sums[depth - 1], running)
    elif below >= 0:
        parent = sizes[NODES]
        sizes[NODES] += 1
        tree.start[parent] = tree.start[below]
        tree.height[parent] = height
        tree.parent[parent] = tree.parent[below]
        tree.children[parent] = 2
        tree.parent[below] = parent
        node[depth] = parent
        sums[depth] = running
        depth += 1

    tree.start[leaf] = turn
    tree.height[leaf] = 0
    tree.parent[leaf] = parent
    tree.children[leaf] = 0
    tree.leaf[turn] = leaf
    node[depth] = leaf
    sums[depth] = x
    sizes[DEPTH] = depth + 1


@kernel
def _settle(tree: Tree, frontier: Frontier, running: DoubleArray) -> None:
    """Bring end and norm of the nodes on the frontier up to the last turn."""
    running[:] = 0.0
    for i in range(frontier.sizes[DEPTH] - 1, -1, -1):
        _add(running, frontier.sums[i])
        tree.end[frontier.node[i]] = frontier.sizes[TURNS] - 1
        tree.norm[frontier.node[i]] = _norm(running)


def _attach_examples() -> Iterator[tuple[Any, ...]]:
    rows = np.array([[2, 0], [1, 1], [-1, 2], [0, 0], [2, -1], [2, 1]], np.float32)
    for n in (0, len(rows)):
        heights = np.full(n, -1, np.int32)
        rule = fixed_rule([0.9, 0.5])
        yield frozen(rows[:n]), heights, rule, new_tree(2 * n, n), new_frontier(4, 2)
    for best in (False, True):
        heights = np.array([0, 1, 2, -1, -1, -1], np.int32)
        rule = auto_rule(0.5, 0.1, 0.0, 0.8, best=best)
        yield frozen(rows), heights, rule, new_tree(11, 6), new_frontier(4, 2, (2.0, 0.3, 0.1))


@kernel(examples=_attach_examples)
def attach(block: FloatArray, heights: IntArray, rule: Rule, tree: Tree, frontier: Frontier) -> int:
    """Attach the rows of a block as the next turns; returns how many there was room for.

    block     float32 (n, d), C-contiguous
    heights   int32 (n,), updated: where to attach each turn, 0 for the first turn of all, else from 1 to one
              above the root; where it is -1 the rule decides, and what it decided is written
    rule      compared with the similarity of a turn and what is there; not asked where heights are given
    tree      updated; two nodes for a turn are room enough
    frontier  updated; one entry more than there are is room enough for a turn

    Comparing floats is for deciding only: from given heights the tree follows exactly. How turns are cut
    into blocks changes no bit, so a tree built at once is the tree built one turn at a time. After the call
    all of the tree is up to date. A call costs O(d) for each entry of the frontier, and each turn O(d) for
    each comparison (`COMPARED`) and each entry closed.
    """
    node, sums, pairs, sizes = frontier
    running = np.zeros(block.shape[1])
    x = np.zeros(block.shape[1])
    done = 0
    for i in range(block.shape[0]):
        first = sizes[DEPTH] == 0
        new_nodes = 1 if first else 2
        if sizes[NODES] + new_nodes > tree.start.size or sizes[TURNS] == tree.leaf.size:
            break
        if sizes[DEPTH] == node.size:
            break
        x[:] = block[i]
        if heights[i] < 0:
            heights[i] = 0 if first else _decide(x, rule, tree, frontier, running)
        if not first:
            last = sums[sizes[DEPTH] - 1]
            norms = _norm(last) * _norm(x)
            if norms > 0.0:
                _observe(_similarity(_dot(last, x), norms), pairs)
        _attach_one(x, heights[i], tree, frontier, running)
        done += 1
    _settle(tree, frontier, running)
    return done
