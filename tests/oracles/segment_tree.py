"""The segment tree of SegTreeMem (arXiv 2606.04555) to the letter: every chain node exists."""

import math
from dataclasses import dataclass, field


@dataclass(eq=False)
class Node:
    height: int
    start: int
    end: int
    total: list
    children: list = field(default_factory=list)


class SegmentTree:
    """`frontier` holds the one node of each height that ends with the last turn."""

    def __init__(self):
        self.turns = 0
        self.frontier = []

    def attach(self, vector, height):
        """Hang the next turn, at the end of a chain, under the frontier node of `height`."""
        if height == len(self.frontier) > 0:
            root = self.frontier[-1]
            self.frontier.append(Node(height, root.start, root.end, list(root.total), [root]))
        for node in self.frontier[height:]:
            node.end = self.turns
            node.total = [a + b for a, b in zip(node.total, vector, strict=True)]
        chain = [Node(h, self.turns, self.turns, list(vector)) for h in range(max(height, 1))]
        for lower, upper in zip(chain, [*chain[1:], *self.frontier[height:]], strict=False):
            upper.children.append(lower)
        self.frontier[: len(chain)] = chain
        self.turns += 1

    def decide(self, vector, passes, best):
        """The height of the first compatible node from below, or of the best; else one above the root.

        `passes(similarity, height)` says what is compatible.
        """
        compatible = []
        for node in self.frontier[1:]:
            similarity = cosine(vector, node.total)
            if passes(similarity, node.height):
                compatible.append((similarity if best else 0, -node.height))
        return -max(compatible)[1] if compatible else len(self.frontier)


def cosine(a, b):
    norms = math.sqrt(dot(a, a)) * math.sqrt(dot(b, b))
    return dot(a, b) / norms if norms else 0.0


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def compressed(tree):
    """Leaves and nodes with two children or more, by the turn that made them so; of one turn, the leaf first.

    Each as (start, end, height, number of the parent or -1, how many children, length of the sum).
    """
    stored = []

    def walk(node, above):
        if len(node.children) != 1:
            stored.append((node, above))
            above = node
        for child in node.children:
            walk(child, above)

    if tree.frontier:
        walk(tree.frontier[-1], None)
    stored.sort(key=lambda pair: (pair[0].children[1].start, 1) if pair[0].children else (pair[0].start, 0))
    number = {node: i for i, (node, _) in enumerate(stored)} | {None: -1}
    return [
        (
            node.start,
            node.end,
            node.height,
            number[above],
            len(node.children),
            math.sqrt(dot(node.total, node.total)),
        )
        for node, above in stored
    ]
