"""The scan, slow and obvious: every score in double precision, all rows sorted."""

import math

import numpy as np


def scan_scores(block, query):
    return np.array([sum(float(a) * float(b) for a, b in zip(row, query, strict=True)) for row in block])


def scan_topk(block, query, k, live=None, first=0):
    """The best k as (score, row), best first; of equal scores the lower row; NaN never."""
    scored = [
        (score, first + i)
        for i, score in enumerate(scan_scores(block, query).tolist())
        if not math.isnan(score) and (live is None or live[i])
    ]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:k]
