"""Selecting, slow and obvious: all nodes sorted; all scores standardised by NumPy in double precision."""

import math

import numpy as np


def add_standardised(scores, live=None):
    """The standardised scores; 0 for a row that is not live."""
    part = scores.astype(float)
    chosen = np.ones(len(part), bool) if live is None else live > 0
    if not chosen.any() or part[chosen].std() == 0:
        return np.zeros(len(part))
    return np.where(chosen, (part - part[chosen].mean()) / part[chosen].std(), 0.0)


def select_nodes(scores, turns, k, live=None):
    """The best k nodes, each with its set of turns, none of which shares a turn with another."""
    shown = [n for n, score in enumerate(scores) if not math.isnan(score) and (live is None or live[n])]
    chosen = []
    for node in sorted(shown, key=lambda node: (-scores[node], node)):
        if len(chosen) < k and all(turns[node].isdisjoint(turns[other]) for other in chosen):
            chosen.append(node)
    return chosen
