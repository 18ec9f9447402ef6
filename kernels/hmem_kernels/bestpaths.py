"""The simple paths of a few edges in a graph that answer best what is wanted, by branch and bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_kernels._kernel import frozen, kernel

__all__ = [
    "ATTRIBUTES",
    "CONFIDENCE",
    "CONTEXT",
    "DEPENDENCY",
    "PARTS",
    "SCORE",
    "VALIDITY",
    "Graph",
    "Qualities",
    "best_paths",
]

FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.uint8]

SCORE, ATTRIBUTES, DEPENDENCY, VALIDITY, CONTEXT, CONFIDENCE = range(6)
"""Columns of what `best_paths` says of a path: φ, its four parts, and the mean confidence of its units."""
PARTS = 6


class Graph(NamedTuple):
    """Edges in CSR form, each of a kind. Self loops do no harm. Of parallel edges one will do."""

    offsets: LongArray
    """int64 (nodes + 1,): where the edges of each node begin"""
    targets: IntArray
    """int32 (edges,): where they lead"""
    kinds: ByteArray
    """uint8 (edges,): 1 for a dependency, 0 for any other relation"""


class Qualities(NamedTuple):
    """What is known of the units that are the nodes."""

    match: FloatArray
    """float32 (wanted, nodes), C-contiguous: how well each matches each unit that is wanted, from 0 to 1"""
    valid: FloatArray
    """float32 (nodes,): 1 if it is active and valid at the time in question, else 0"""
    context: FloatArray
    """float32 (nodes,): how well its contexts fit, from 0 to 1"""
    confidence: FloatArray
    """float32 (nodes,)"""
    moment: LongArray
    """int64 (nodes,): the greater, the newer"""


def _best_examples() -> Iterator[tuple[Any, ...]]:
    offsets, targets, kinds = [0, 2, 4, 5, 5], [1, 2, 0, 2, 0], [1, 0, 1, 1, 0]
    graph = Graph(
        frozen(np.array(offsets, np.int64)),
        frozen(np.array(targets, np.int32)),
        frozen(np.array(kinds, np.uint8)),
    )
    match = np.array([[1, 0.5, 0.25, 0.5], [0, 0.5, 1, 0.5]], np.float32)
    for starts, wanted, keep in (([], 2, 3), ([0, 1, 2, 3], 2, 3), ([3, 0], 0, 9)):
        qualities = Qualities(
            frozen(match[:wanted]),
            frozen(np.array([1, 1, 0, 1], np.float32)),
            frozen(np.array([1, 0.5, 1, 0], np.float32)),
            frozen(np.array([1, 0.5, 0.5, 0.75], np.float32)),
            frozen(np.arange(4)),
        )
        weights = frozen(np.full(4, 0.25))
        paths, sizes = np.zeros((keep, 4), np.int32), np.zeros(keep, np.int32)
        yield (
            frozen(np.array(starts, np.int32)),
            graph,
            qualities,
            weights,
            paths,
            sizes,
            np.zeros((keep, PARTS)),
            100,
        )


@kernel
def _reach(graph: Graph, qualities: Qualities, steps: int) -> tuple[FloatArray, LongArray]:
    """The best match (steps + 1, wanted, nodes) and the newest moment (steps + 1, nodes) on any walk of at
    most so many steps from each node."""
    wanted, nodes = qualities.match.shape
    matches = np.empty((steps + 1, wanted, nodes), np.float32)
    moments = np.empty((steps + 1, nodes), np.int64)
    matches[0] = qualities.match
    moments[0] = qualities.moment
    for step in range(1, steps + 1):
        matches[step] = matches[step - 1]
        moments[step] = moments[step - 1]
        for node in range(nodes):
            for place in range(graph.offsets[node], graph.offsets[node + 1]):
                target = np.uint32(graph.targets[place])
                for t in range(wanted):
                    matches[step, t, node] = max(matches[step, t, node], matches[step - 1, t, target])
                moments[step, node] = max(moments[step, node], moments[step - 1, target])
    return matches, moments


@kernel
def _bounds(
    weights: DoubleArray,
    best: FloatArray,
    matches: FloatArray,
    surest: float,
    left: int,
    node: np.uint32,
    size: int,
    sums: DoubleArray,
) -> tuple[float, float]:
    """What φ and the mean confidence can be at most, of a path and of whatever begins with it.

    best     float32 (wanted,): the best matches on the path
    matches  see `_reach`
    surest   the greatest confidence of all units
    left     steps that may follow
    node     the last one
    size     nodes of the path
    sums     float64 (4,): of its dependencies, valid units, context matches and confidences
    """
    wanted = best.size
    highest = -np.inf
    confidence = 0.0
    for more in range(left + 1):
        attributes = 0.0
        for t in range(wanted):
            attributes += float(max(best[t], matches[more, t, node]))
        if wanted:
            attributes /= wanted
        steps, units = size - 1 + more, size + more
        dependency = (sums[0] + more) / steps if steps else 1.0
        others = weights[2] * (sums[1] + more) + weights[3] * (sums[2] + more)
        highest = max(highest, weights[0] * attributes + weights[1] * dependency + others / units)
        confidence = max(confidence, (sums[3] + more * surest) / units)
    return highest, confidence


@kernel
def _hopeless(
    highest: float, confidence: float, newest: int, slack: float, worst: DoubleArray, worst_newest: int
) -> bool:
    """Whether a path within these bounds comes after the worst one that is kept.

    The bounds are rounded as scores are, after adding more than the error of any sum.
    """
    score = float(np.float32(highest + slack))
    if score != worst[SCORE]:
        return bool(score < worst[SCORE])
    sureness = float(np.float32(confidence + 1e-12))
    if sureness != worst[CONFIDENCE]:
        return bool(sureness < worst[CONFIDENCE])
    return newest < worst_newest


@kernel
def _weigh(
    path: IntArray,
    kinds: ByteArray,
    size: int,
    qualities: Qualities,
    weights: DoubleArray,
    parts: DoubleArray,
) -> int:
    """Write φ of a path and its parts, summed from its lower end; returns the moment of its newest unit."""
    match = qualities.match
    wanted = match.shape[0]
    forward = path[0] <= path[size - 1]
    attributes = 0.0
    for t in range(wanted):
        best = 0.0
        for i in range(size):
            best = max(best, float(match[t, np.uint32(path[i])]))
        attributes += best
    dependency, valid, context, confidence = 0, 0.0, 0.0, 0.0
    newest: int = qualities.moment[np.uint32(path[0])]
    for i in range(size):
        unit = np.uint32(path[i] if forward else path[size - 1 - i])
        valid += float(qualities.valid[unit])
        context += float(qualities.context[unit])
        confidence += float(qualities.confidence[unit])
        newest = max(newest, qualities.moment[unit])
        dependency += kinds[i] if i > 0 else 0
    parts[ATTRIBUTES] = attributes / wanted if wanted else 0.0
    parts[DEPENDENCY] = dependency / (size - 1) if size > 1 else 1.0
    parts[VALIDITY] = valid / size
    parts[CONTEXT] = context / size
    parts[CONFIDENCE] = np.float32(confidence / size)
    score = 0.0
    for i in range(4):
        score += weights[i] * parts[ATTRIBUTES + i]
    parts[SCORE] = np.float32(score)
    return newest


@kernel
def _order(
    parts: DoubleArray,
    newest: int,
    path: IntArray,
    size: int,
    others: DoubleArray,
    other_newest: int,
    other: IntArray,
    other_size: int,
) -> int:
    """Negative if the first path comes before the other, 0 if they are the same, else positive."""
    if parts[SCORE] != others[SCORE]:
        return -1 if parts[SCORE] > others[SCORE] else 1
    if parts[CONFIDENCE] != others[CONFIDENCE]:
        return -1 if parts[CONFIDENCE] > others[CONFIDENCE] else 1
    if newest != other_newest:
        return -1 if newest > other_newest else 1
    forward, onward = path[0] <= path[size - 1], other[0] <= other[other_size - 1]
    for i in range(min(size, other_size)):
        a = path[i] if forward else path[size - 1 - i]
        b = other[i] if onward else other[other_size - 1 - i]
        if a != b:
            return -1 if a < b else 1
    return size - other_size


@kernel
def _same(path: IntArray, size: int, other: IntArray, other_size: int) -> bool:
    """Whether a path is another one or that one's reverse; the other lies from its lower end."""
    if size != other_size:
        return False
    forward = path[0] <= path[size - 1]
    same = True
    for i in range(size):
        same &= (path[i] if forward else path[size - 1 - i]) == other[i]
    return same


@kernel
def _keep(
    path: IntArray,
    size: int,
    weighed: DoubleArray,
    newest: int,
    kept: int,
    paths: IntArray,
    sizes: IntArray,
    parts: DoubleArray,
    moments: LongArray,
) -> int:
    """Enter a path into those that are kept, the best first; returns how many there are."""
    if kept == sizes.size and (
        kept == 0
        or _order(
            weighed, newest, path, size, parts[kept - 1], moments[kept - 1], paths[kept - 1], sizes[kept - 1]
        )
        > 0
    ):
        return kept
    last = kept
    for row in range(kept):
        if _same(path, size, paths[row], sizes[row]):
            if weighed[DEPENDENCY] <= parts[row, DEPENDENCY]:
                return kept
            last = row  # the same nodes, by a better edge
            break
    if last == kept:
        if kept == sizes.size:
            last -= 1
        else:
            kept += 1
    while last > 0 and (
        _order(
            weighed, newest, path, size, parts[last - 1], moments[last - 1], paths[last - 1], sizes[last - 1]
        )
        < 0
    ):
        paths[last] = paths[last - 1]
        sizes[last] = sizes[last - 1]
        parts[last] = parts[last - 1]
        moments[last] = moments[last - 1]
        last -= 1
    forward = path[0] <= path[size - 1]
    for i in range(paths.shape[1]):
        if i < size:
            paths[last, i] = path[i] if forward else path[size - 1 - i]
        else:
            paths[last, i] = -1
    sizes[last] = size
    parts[last] = weighed
    moments[last] = newest
    return kept


@kernel(examples=_best_examples)
def best_paths(
    starts: IntArray,
    graph: Graph,
    qualities: Qualities,
    weights: DoubleArray,
    paths: IntArray,
    sizes: IntArray,
    parts: DoubleArray,
    limit: int,
) -> tuple[int, int]:
    """The simple paths with the greatest φ, the best first; returns how many, and how many were looked at.

    starts     int32: where paths begin, each once
    graph      edges in CSR form
    qualities  what is known of the units
    weights    float64 (4,), not negative: of attributes, dependency, validity and context
    paths      int32 (k, edges of a path at most + 1), written: the nodes of each path, then -1
    sizes      int32 (k,), written: nodes of each path
    parts      float64 (k, `PARTS`), written: φ and its parts
    limit      paths that are looked at, at most, but for those of one unit; beyond, the best so far are it

    φ is the weighted sum (HiGram, arXiv 2608.05095; the parts are ours) of

    - attributes: for each wanted unit the best match on the path, and the mean of these, 0 if none is wanted;
    - dependency: the share of steps that are dependencies. A path of one unit has 1: it takes no step that
      is not one. So a unit that answers alone is not beaten by adding to it what is merely near, and
      ties with a chain that rests on it;
    - validity and context: the means over its units.

    Ties go to the path with the higher mean confidence, then to that with the newest unit, then to the lower
    nodes. φ and that mean are compared as float32, so that the order of a sum decides nothing. A path and
    its reverse are one: it lies from its lower end, and with the better kind where the graph has both
    directions or parallel edges.

    Branch and bound: what is on a path, what walks of the steps that are left can find, and steps and units
    that are as good as can be, give bounds for all that begins with it; what cannot come before the worst of
    the k that are kept is not followed. Paths of one unit are weighed first, since they are few and raise
    that bar; `starts` that promise most should come first for the same reason.
    """
    match = qualities.match
    wanted = match.shape[0]
    most = paths.shape[1] - 1
    matches, moments_near = _reach(graph, qualities, most)
    best = np.zeros((most + 1, wanted), np.float32)
    sums = np.zeros((most + 1, 4))
    path = np.zeros(most + 1, np.int32)
    kinds = np.zeros(most + 1, np.uint8)
    newest = np.zeros(most + 1, np.int64)
    place = np.zeros(most + 1, np.int64)
    moments = np.zeros(sizes.size, np.int64)
    weighed = np.zeros(PARTS)
    slack = 1e-12 * (weights[0] + weights[1] + weights[2] + weights[3])
    surest = 0.0
    for i in range(qualities.confidence.size):
        surest = max(surest, float(qualities.confidence[i]))
    kept = 0
    looked = 0
    for s in range(starts.size):
        path[0] = starts[s]
        moment = _weigh(path, kinds, 1, qualities, weights, weighed)
        kept = _keep(path, 1, weighed, moment, kept, paths, sizes, parts, moments)
        looked += 1
    if most == 0 or sizes.size == 0:
        return kept, looked
    limit += looked
    for s in range(starts.size):
        node = np.uint32(starts[s])
        path[0] = node
        for t in range(wanted):
            best[0, t] = match[t, node]
        sums[0, 0] = 0.0
        sums[0, 1] = qualities.valid[node]
        sums[0, 2] = qualities.context[node]
        sums[0, 3] = qualities.confidence[node]
        newest[0] = qualities.moment[node]
        if kept == sizes.size:
            highest, sure = _bounds(weights, best[0], matches, surest, most, node, 1, sums[0])
            recent = moments_near[most, node]
            if _hopeless(highest, sure, recent, slack, parts[kept - 1], moments[kept - 1]):
                continue
        place[0] = graph.offsets[node]
        depth = 0
        while depth >= 0 and looked < limit:
            at = place[depth]
            if at == graph.offsets[np.uint32(path[depth]) + np.uint32(1)]:
                depth -= 1
                continue
            place[depth] = at + 1
            node = np.uint32(graph.targets[at])
            again = False
            for i in range(depth + 1):
                again |= np.uint32(path[i]) == node
            if again:
                continue
            looked += 1
            deeper = depth + 1
            path[deeper] = node
            kinds[deeper] = graph.kinds[at]
            for t in range(wanted):
                best[deeper, t] = max(best[depth, t], match[t, node])
            sums[deeper, 0] = sums[depth, 0] + graph.kinds[at]
            sums[deeper, 1] = sums[depth, 1] + qualities.valid[node]
            sums[deeper, 2] = sums[depth, 2] + qualities.context[node]
            sums[deeper, 3] = sums[depth, 3] + qualities.confidence[node]
            newest[deeper] = max(newest[depth], qualities.moment[node])
            left = most - deeper
            if kept == sizes.size:
                highest, sure = _bounds(
                    weights, best[deeper], matches, surest, left, node, deeper + 1, sums[deeper]
                )
                recent = max(newest[deeper], moments_near[left, node])
                if _hopeless(highest, sure, recent, slack, parts[kept - 1], moments[kept - 1]):
                    continue
            moment = _weigh(path, kinds, deeper + 1, qualities, weights, weighed)
            kept = _keep(path, deeper + 1, weighed, moment, kept, paths, sizes, parts, moments)
            if left > 0:
                depth = deeper
                place[depth] = graph.offsets[node]
    return kept, looked
