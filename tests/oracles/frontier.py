"""Attaching turns, slow and obvious: the literal tree, compressed at the end."""

import math
from itertools import pairwise

from tests.oracles.segment_tree import SegmentTree, compressed, cosine


def attach(vectors, heights, shape, level, best=False):
    """The heights, where not given as -1, and the compressed tree.

    `level(similarities)` gives the level from the similarities of the successive turns before this one.
    """
    tree = SegmentTree()
    decided = []
    for t, (vector, height) in enumerate(zip(vectors, heights, strict=True)):
        if height < 0:
            now = level([cosine(a, b) for a, b in pairwise(vectors[:t]) if any(a) and any(b)])
            height = tree.decide(vector, lambda s, h, now=now: s - now >= shape[min(h, len(shape)) - 1], best)
        tree.attach(vector, height)
        decided.append(height)
    return decided, compressed(tree)


def level(similarities, spread, low, high, prior):
    """Mean + spread · deviation of what was seen, and of as many imagined ones as the prior says."""
    count, mean, deviation = prior
    weight = count + len(similarities)
    if not weight:
        return min(max(0.0, low), high)
    together = (count * mean + math.fsum(similarities)) / weight
    squares = count * (deviation**2 + (mean - together) ** 2)
    squares += math.fsum((s - together) ** 2 for s in similarities)
    return min(max(together + spread * math.sqrt(squares / weight), low), high)
