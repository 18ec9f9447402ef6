"""Simple paths of a few edges in a graph: all of them, or the best by how they answer what is wanted.

A path is simple if no node comes twice in it; one node alone is a path of no edges. Paths are followed depth
first over the rows of a CSR graph, in the order of its targets, with a stack that is allocated once a call.
"""

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
    "simple_paths",
]

FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
OffsetArray = npt.NDArray[np.int32] | npt.NDArray[np.int64]
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


# -- all paths -----------------------------------------------------------------------------------------


def _simple_examples() -> Iterator[tuple[Any, ...]]:
    for width in (np.int32, np.int64):
        offsets = frozen(np.array([0, 3, 5, 6, 6], width))
        targets = frozen(np.array([1, 2, 0, 2, 0, 1], np.int32))
        for starts, wanted, room in (([], [], 0), ([0, 3], [], 40), ([2, 0], [0, 1, 0, 1], 4)):
            yield (
                frozen(np.array(starts, np.int32)),
                offsets,
                targets,
                frozen(np.array(wanted, np.uint8)),
                0,
                3,
                np.zeros(room, np.int32),
                np.zeros(room, np.int64),
            )


@kernel(examples=_simple_examples)
def simple_paths(
    starts: IntArray,
    offsets: OffsetArray,
    targets: IntArray,
    wanted: ByteArray,
    fewest: int,
    most: int,
    nodes: IntArray,
    ends: LongArray,
) -> tuple[int, int]:
    """All simple paths of `fewest` to `most` edges; returns how many there are, and how many were written.

    starts   int32: where paths begin, one start after the other
    offsets  int32 or int64 (nodes + 1,): where the edges of each node begin in the targets
    targets  int32: where they lead; a path comes once for each of parallel edges, and follows no self loop
    wanted   uint8 (nodes,): only paths that end at a node with 1 count; of length 0, all do
    fewest   at least 0
    most     at least 0
    nodes    int32, written: the nodes of the paths, one path after the other
    ends     int64, written: of each path, where its nodes end

    Paths come in depth-first order. From the first one on for which `nodes` or `ends` has no room left they
    are only counted: that there were more than were written is how the caller learns of it. Costs O(edges
    tried), and O(`most`) for each that is written.
    """
    path = np.empty(most + 1, np.int32)
    place = np.empty(most + 1, np.uint64)
    stop = np.empty(most + 1, np.uint64)
    anywhere = wanted.size == 0
    one = np.uint64(1)
    found = 0
    written = 0
    filled = 0
    room = ends.size
    for s in range(starts.size):
        first = np.uint32(starts[s])
        path[0] = first
        if fewest == 0 and (anywhere or wanted[first] != 0):
            found += 1
            if written < room and filled < nodes.size:
                nodes[filled] = first
                filled += 1
                ends[written] = filled
                written += 1
            else:
                room = 0
        if most == 0:
            continue
        depth = 0
        place[0] = offsets[first]
        stop[0] = offsets[first + np.uint32(1)]
        while depth >= 0:
            at = place[depth]
            if at == stop[depth]:
                depth -= 1
                continue
            place[depth] = at + one
            node = np.uint32(targets[at])
            again = False
            for i in range(depth + 1):
                again |= np.uint32(path[i]) == node
            if again:
                continue
            edges = depth + 1
            if edges >= fewest and (anywhere or wanted[node] != 0):
                found += 1
                if written < room and filled + edges < nodes.size:
                    for i in range(edges):
                        nodes[filled + i] = path[i]
                    filled += edges
                    nodes[filled] = node
                    filled += 1
                    ends[written] = filled
                    written += 1
                else:
                    room = 0
            if edges < most:
                depth = edges
                path[depth] = node
                place[depth] = offsets[node]
                stop[depth] = offsets[node + np.uint32(1)]
    return found, written


# -- the best paths ------------------------------------------------------------------------------------


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
        )


@kernel
def _reach(graph: Graph, match: FloatArray, steps: int) -> FloatArray:
    """(steps + 1, wanted, nodes): the best match on any walk of at most so many steps from each node."""
    wanted, nodes = match.shape
    reach = np.empty((steps + 1, wanted, nodes), np.float32)
    reach[0] = match
    for step in range(1, steps + 1):
        for t in range(wanted):
            before, after = reach[step - 1, t], reach[step, t]
            for node in range(nodes):
                best = before[node]
                for place in range(graph.offsets[node], graph.offsets[node + 1]):
                    best = max(best, before[np.uint32(graph.targets[place])])
                after[node] = best
    return reach


@kernel
def _bound(
    weights: DoubleArray,
    best: FloatArray,
    reach: FloatArray,
    left: int,
    node: np.uint32,
    size: int,
    sums: DoubleArray,
) -> float:
    """What φ can be at most, of a path and of whatever begins with it.

    best   float32 (wanted,): the best matches on the path
    reach  see `_reach`
    left   steps that may follow
    node   the last one
    size   nodes of the path
    sums   float64 (3,): its dependencies, valid units, and context matches
    """
    wanted = best.size
    highest = -np.inf
    for more in range(left + 1):
        attributes = 0.0
        for t in range(wanted):
            attributes += max(best[t], reach[more, t, node])
        if wanted:
            attributes /= wanted
        steps, units = size - 1 + more, size + more
        dependency = (sums[0] + more) / steps if steps else 1.0
        others = weights[2] * (sums[1] + more) + weights[3] * (sums[2] + more)
        highest = max(highest, weights[0] * attributes + weights[1] * dependency + others / units)
    return highest


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
) -> tuple[int, int]:
    """The simple paths with the greatest φ, the best first; returns how many, and how many were looked at.

    starts     int32: where paths begin, each once
    graph      edges in CSR form
    qualities  what is known of the units
    weights    float64 (4,), not negative: of attributes, dependency, validity and context
    paths      int32 (k, edges of a path at most + 1), written: the nodes of each path, then -1
    sizes      int32 (k,), written: nodes of each path
    parts      float64 (k, `PARTS`), written: φ and its parts

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

    Branch and bound: what is on a path, what walks of the steps that are left can match, and steps and units
    that are as good as can be, give a bound for all that begins with it; nothing below the worst of k that
    are kept is followed. Paths of one unit are weighed first, since they are few and raise that bar.
    """
    match = qualities.match
    wanted = match.shape[0]
    most = paths.shape[1] - 1
    reach = _reach(graph, match, most)
    best = np.zeros((most + 1, wanted), np.float32)
    sums = np.zeros((most + 1, 3))
    path = np.zeros(most + 1, np.int32)
    kinds = np.zeros(most + 1, np.uint8)
    place = np.zeros(most + 1, np.int64)
    moments = np.zeros(sizes.size, np.int64)
    weighed = np.zeros(PARTS)
    slack = 1e-6 * (weights[0] + weights[1] + weights[2] + weights[3])
    kept = 0
    looked = 0
    for s in range(starts.size):
        path[0] = starts[s]
        newest = _weigh(path, kinds, 1, qualities, weights, weighed)
        kept = _keep(path, 1, weighed, newest, kept, paths, sizes, parts, moments)
        looked += 1
    if most == 0 or sizes.size == 0:
        return kept, looked
    for s in range(starts.size):
        node = np.uint32(starts[s])
        path[0] = node
        for t in range(wanted):
            best[0, t] = match[t, node]
        sums[0, 0] = 0.0
        sums[0, 1] = qualities.valid[node]
        sums[0, 2] = qualities.context[node]
        if kept == sizes.size:
            bar = parts[kept - 1, SCORE] - slack
            if _bound(weights, best[0], reach, most, node, 1, sums[0]) < bar:
                continue
        place[0] = graph.offsets[node]
        depth = 0
        while depth >= 0:
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
            if kept == sizes.size:
                bar = parts[kept - 1, SCORE] - slack
                left = most - deeper
                if _bound(weights, best[deeper], reach, left, node, deeper + 1, sums[deeper]) < bar:
                    continue
            newest = _weigh(path, kinds, deeper + 1, qualities, weights, weighed)
            kept = _keep(path, deeper + 1, weighed, newest, kept, paths, sizes, parts, moments)
            if deeper < most:
                depth = deeper
                place[depth] = graph.offsets[node]
    return kept, looked
