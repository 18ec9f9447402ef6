"""Simple paths, the slow and obvious way: by recursion."""

from __future__ import annotations


def walks(offsets, targets, start, most):
    """Of every simple path from `start`, its nodes and the places of its edges."""

    def follow(path, edges):
        yield path, edges
        if len(edges) < most:
            for place in range(offsets[path[-1]], offsets[path[-1] + 1]):
                if targets[place] not in path:
                    yield from follow([*path, int(targets[place])], [*edges, place])

    yield from follow([int(start)], [])


def simple_paths(starts, offsets, targets, wanted, fewest, most, nodes, ends):
    """Every path, written as long as there is room."""
    found, written, filled, full = 0, 0, 0, False
    for start in starts:
        for path, edges in walks(offsets, targets, start, most):
            if len(edges) < fewest or (len(wanted) and not wanted[path[-1]]):
                continue
            found += 1
            full = full or written == len(ends) or filled + len(path) > len(nodes)
            if not full:
                nodes[filled : filled + len(path)] = path
                filled += len(path)
                ends[written] = filled
                written += 1
    return found, written
