"""The best paths, the slow and obvious way: all of them, sorted."""

from __future__ import annotations

import numpy as np

from tests.oracles.paths import walks


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


def best_paths(starts, graph, qualities, weights, paths, sizes, parts, limit=None):
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
