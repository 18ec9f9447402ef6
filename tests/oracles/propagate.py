"""Propagation, slow and obvious: the matrix W, and its powers one hop at a time."""

import numpy as np


def score_nodes(turns, start, end, norm):
    """For each query the scores of all nodes; a node's turns summed one by one."""
    return np.array(
        [
            [
                query[first] if first == last else sum(query[first : last + 1]) / n if n else 0.0
                for first, last, n in zip(start, end, norm, strict=True)
            ]
            for query in turns
        ]
    ).reshape(len(turns), len(start))


def propagate_along(scores, link, height, decay):
    return _added(scores, *_with_chains(link, height), decay, lambda w: w)


def propagate_up(scores, parent, height, decay):
    return _added(
        scores, *_with_chains(parent, height), decay, lambda w: (w / np.maximum(w.sum(axis=0), 1)).T
    )


def _with_chains(link, height):
    """Links and how many nodes there were; chain nodes, put after them, make every link one height long."""
    link = list(link)
    n = len(link)
    if height is not None:
        for i in range(n):
            if link[i] >= 0:
                top, node = link[i], i
                for _ in range(height[top] - height[i] - 1):
                    link[node] = len(link)
                    node = len(link)
                    link.append(top)
    return link, n


def _added(scores, link, n, decay, matrix):
    w = np.zeros((len(link), len(link)))
    for i, j in enumerate(link):
        if j >= 0:
            w[i, j] = 1
    w = matrix(w)
    moved = np.zeros((len(link), len(scores)))
    moved[:n] = np.transpose(scores)
    total = np.zeros_like(moved)
    for weight in decay:
        moved = w @ moved
        total += weight * moved
    return total[:n].T
