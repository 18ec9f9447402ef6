"""The columns of the segment tree, and where it grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hmem_kernels import frozen
from hmem_kernels.frontier import (
    COMPARED,
    DEPTH,
    NODES,
    TURNS,
    Frontier,
    Rule,
    Tree,
    attach,
    fixed_rule,
    new_frontier,
    new_tree,
)

__all__ = ["Decided", "TreeColumns"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

_FIRST_ROOM = 64
_NO_RULE = fixed_rule([0.0])  # heights are given, so it is never asked
_NODE_ARRAYS = ("start", "end", "height", "parent", "children", "norm")
_PRIOR = (8.0, 0.3, 0.15)
"""Of similarities between successive turns before any was seen: how many they stand for, mean, deviation."""


class Decided(NamedTuple):
    """Where to attach turns."""

    heights: IntArray
    """int32 of shape (turns,)."""
    compared: int
    """How many comparisons of a turn with a node that took."""


class TreeColumns:
    """A segment tree over the turns of one memory; turn number = row number.

    Args:
        dimension: numbers of a turn's vector.
    """

    FILES = ("tree-nodes", "tree-leaves", "tree-frontier", "tree-pairs")
    """Names of the files of a checkpoint."""

    __slots__ = ("_frontier", "_tree")

    def __init__(self, dimension: int) -> None:
        self._tree = new_tree(2 * _FIRST_ROOM, _FIRST_ROOM)
        self._frontier = new_frontier(16, dimension, _PRIOR)

    def __len__(self) -> int:
        """Number of nodes."""
        return int(self._frontier.sizes[NODES])

    @property
    def turns(self) -> int:
        return int(self._frontier.sizes[TURNS])

    @property
    def root_height(self) -> int:
        """Height of the root; 0 without turns."""
        return int(self._tree.height[self._frontier.node[0]]) if self.turns else 0

    @property
    def dimension(self) -> int:
        return int(self._frontier.sums.shape[1])

    @property
    def pairs(self) -> tuple[float, float, float]:
        """Of the similarities of successive turns: number, mean, sum of squared deviations."""
        count, mean, squares = self._frontier.pairs.tolist()
        return count, mean, squares

    def view(self) -> Tree:
        """The nodes so far, without copying. Those on the frontier change when further turns are attached."""
        nodes, tree = len(self), self._tree
        return Tree(
            start=tree.start[:nodes],
            end=tree.end[:nodes],
            height=tree.height[:nodes],
            parent=tree.parent[:nodes],
            children=tree.children[:nodes],
            norm=tree.norm[:nodes],
            leaf=tree.leaf[: self.turns],
        )

    def snapshot(self) -> Tree:
        """A copy of the nodes so far, read-only: 28 bytes a node."""
        return Tree._make(frozen(column.copy()) for column in self.view())

    def attach(self, block: FloatArray, heights: IntArray) -> None:
        """Attach the rows of `block` as the next turns, at the heights that were decided for them."""
        done = 0
        while done < len(block):
            self._make_room(len(block) - done)
            done += attach(frozen(block[done:]), heights[done:].copy(), _NO_RULE, self._tree, self._frontier)

    def decide(self, block: FloatArray, rule: Rule, given: Sequence[int] = ()) -> Decided:
        """At which heights `rule` attaches the rows of `block`, one after the other; changes nothing.

        The first rows have the heights that are `given`; the rule decides about the others.

        Works on a copy of the frontier: O(its depth · d) beside the decisions themselves.
        """
        scratch = self._frontier_alone(len(block))
        heights = np.full(len(block), -1, np.int32)
        heights[: len(given)] = given
        done = 0
        while done < len(block):
            scratch._make_room(len(block) - done)
            part = heights[done:]
            done += attach(frozen(block[done:]), part, rule, scratch._tree, scratch._frontier)
        return Decided(heights, int(scratch._frontier.sizes[COMPARED]))

    def _frontier_alone(self, turns: int) -> TreeColumns:
        """A tree that has the nodes of the frontier only, with room for so many turns."""
        old, tree = self._frontier, self._tree
        depth = int(old.sizes[DEPTH])
        scratch = TreeColumns.__new__(TreeColumns)
        scratch._tree = new_tree(depth + 2 * turns, turns)
        on = old.node[:depth]
        for name in _NODE_ARRAYS:
            getattr(scratch._tree, name)[:depth] = getattr(tree, name)[on]
        scratch._frontier = new_frontier(depth + 8, self.dimension)
        scratch._frontier.node[:depth] = np.arange(depth)
        scratch._frontier.sums[:depth] = old.sums[:depth]
        scratch._frontier.pairs[:] = old.pairs
        scratch._frontier.sizes[[NODES, DEPTH]] = depth
        return scratch

    def _make_room(self, turns: int) -> None:
        """Room for `turns` more turns, or at least for one more."""
        sizes = self._frontier.sizes
        nodes, known = int(sizes[NODES]) + 2 * turns, int(sizes[TURNS]) + turns
        if nodes > self._tree.start.size or known > self._tree.leaf.size:
            room = new_tree(max(nodes, 2 * self._tree.start.size), max(known, 2 * self._tree.leaf.size))
            for old, new in zip(self._tree, room, strict=True):
                new[: old.size] = old
            self._tree = room
        if sizes[DEPTH] == self._frontier.node.size:
            old_frontier = self._frontier
            grown = new_frontier(2 * old_frontier.node.size, self.dimension)
            grown.node[: old_frontier.node.size] = old_frontier.node
            grown.sums[: old_frontier.node.size] = old_frontier.sums
            self._frontier = Frontier(grown.node, grown.sums, old_frontier.pairs, sizes)

    # -- checkpoints ---------------------------------------------------------------------------------

    def batches(self) -> dict[str, pa.RecordBatch]:
        """The nodes, the leaves by turn, and the frontier, copied, for a checkpoint."""
        tree, frontier = self.view(), self._frontier
        depth = int(frontier.sizes[DEPTH])
        sums = pa.FixedSizeListArray.from_arrays(
            pa.array(frontier.sums[:depth].reshape(-1)), max(self.dimension, 1)
        )
        contents = (
            {name: pa.array(getattr(tree, name).copy()) for name in _NODE_ARRAYS},
            {"leaf": pa.array(tree.leaf.copy())},
            {"node": pa.array(frontier.node[:depth].copy()), "sums": sums},
            {"pairs": pa.array(frontier.pairs.copy())},
        )
        return {
            name: pa.RecordBatch.from_pydict(columns)
            for name, columns in zip(self.FILES, contents, strict=True)
        }

    @classmethod
    def restore(cls, dimension: int, batches: dict[str, pa.RecordBatch]) -> TreeColumns:
        """The tree that `batches` wrote, copied into the process."""
        nodes, leaves = batches["tree-nodes"], batches["tree-leaves"].column("leaf")
        stack = batches["tree-frontier"]
        columns = cls(dimension)
        columns._tree = new_tree(max(nodes.num_rows, 2 * _FIRST_ROOM), max(len(leaves), _FIRST_ROOM))
        for name in _NODE_ARRAYS:
            getattr(columns._tree, name)[: nodes.num_rows] = nodes.column(name).to_numpy()
        columns._tree.leaf[: len(leaves)] = leaves.to_numpy()
        frontier = new_frontier(max(stack.num_rows + 8, 16), dimension)
        frontier.node[: stack.num_rows] = stack.column("node").to_numpy()
        frontier.sums[: stack.num_rows] = stack.column("sums").flatten().to_numpy().reshape(-1, dimension)
        frontier.pairs[:] = batches["tree-pairs"].column("pairs").to_numpy()
        frontier.sizes[[TURNS, NODES, DEPTH]] = len(leaves), nodes.num_rows, stack.num_rows
        columns._frontier = frontier
        return columns

    def arrays(self) -> dict[str, Any]:
        """Every value, in a form that compares bit for bit."""
        depth = int(self._frontier.sizes[DEPTH])
        return {
            **{f"tree {name}": column for name, column in self.view()._asdict().items()},
            "frontier node": self._frontier.node[:depth],
            "frontier sums": self._frontier.sums[:depth],
            "frontier pairs": self._frontier.pairs,
        }

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in (*self._tree, *self._frontier))
