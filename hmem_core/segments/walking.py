"""Finding one's way in a segment tree: down to children, up to the root, to the node over some turns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hmem_kernels.frontier import Tree

__all__ = ["Children", "above", "least_over"]

IntArray = npt.NDArray[np.intp]


class Children:
    """The children of every node of a tree, in the order of their turns: sorted once, then looked up."""

    __slots__ = ("_first", "_sorted", "tree")

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._sorted = np.lexsort((tree.start, tree.parent))
        self._first = np.searchsorted(tree.parent, np.arange(tree.parent.size + 1), sorter=self._sorted)

    @property
    def root(self) -> int:
        """The node without a parent, in a tree that has nodes."""
        return int(self._sorted[0])

    def of(self, node: int) -> IntArray:
        """The children of a node; none of a leaf."""
        found: IntArray = self._sorted[self._first[node] : self._first[node + 1]]
        return found


def above(tree: Tree, node: int) -> list[int]:
    """The nodes from `node` up to the root, both included."""
    path = [node]
    while (parent := int(tree.parent[path[-1]])) >= 0:
        path.append(parent)
    return path


def least_over(tree: Tree, first: int, last: int) -> int:
    """The smallest node that covers the turns `first` to `last`."""
    node = int(tree.leaf[first])
    while tree.end[node] < last:
        node = int(tree.parent[node])
    return node
