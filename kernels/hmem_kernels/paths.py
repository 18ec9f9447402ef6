"""All simple paths of a few edges in a graph.

A path is simple if no node comes twice in it; one node alone is a path of no edges. Paths are followed depth
first over the rows of a CSR graph, in the order of its targets, with a stack that is allocated once a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hmem_kernels._kernel import frozen, kernel

__all__ = ["simple_paths"]

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
OffsetArray = npt.NDArray[np.int32] | npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.uint8]


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
