"""Simple paths, the slow and obvious way: all of them by recursion, the best by sorting all."""

from __future__ import annotations

import numpy as np


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


def weigh(path, kinds, qualities, weights):
    """φ of a path, its parts, and its mean confidence."""
    attributes = [max(float(row[unit]) for unit in path) for row in qualities.match]
    parts = [
        sum(attributes) / len(attributes) if attributes else 0.0,
        sum(kinds) / len(kinds) if kinds else 1.0,
        sum(float(qualities.valid[unit]) for unit in path) / len(path),
        sum(float(qualities.context[unit]) for unit in path) / len(path),
    ]
    score = float(np.float32(sum(weight * part for weight, part in zip(weights, parts, strict=True))))
    confidence = float(np.float32(sum(float(qualities.confidence[unit]) for unit in path) / len(path)))
    return [score, *parts, confidence]


def best_paths(starts, graph, qualities, weights, paths, sizes, parts):
    """All paths, each from its lower end and by its best edges, sorted."""
    found = {}
    for start in starts:
        for path, edges in walks(graph.offsets, graph.targets, start, paths.shape[1] - 1):
            path = path if path[0] <= path[-1] else path[::-1]
            weighed = weigh(path, [int(graph.kinds[place]) for place in edges], qualities, weights)
            found[tuple(path)] = max(found.get(tuple(path), weighed), weighed)

    def rank(path):
        score, *_, confidence = found[path]
        return -score, -confidence, -max(int(qualities.moment[unit]) for unit in path), path

    ranked = sorted(found, key=rank)[: len(sizes)]
    for row, path in enumerate(ranked):
        paths[row] = [*path, *[-1] * (paths.shape[1] - len(path))]
        sizes[row] = len(path)
        parts[row] = found[path]
    return len(ranked), len(found)
