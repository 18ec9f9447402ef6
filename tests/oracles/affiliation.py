"""Contexts, sums of events and affiliation, one number at a time."""

import math


def contexts(vectors, place, weights):
    found = []
    for turns in place:
        row = [0.0] * len(vectors[0]) if len(vectors) else []
        if turns[0] >= 0:
            for weight, turn in zip(weights, turns, strict=True):
                if turn >= 0:
                    row = [a + weight * b for a, b in zip(row, vectors[turn], strict=True)]
        length = math.sqrt(sum(a * a for a in row))
        found.append([a / length if length else 0.0 for a in row])
    return found


def add_contexts(rows, which, event, sums):
    sums = [list(total) for total in sums]
    for turn, number in zip(which, event, strict=True):
        sums[number] = [a + b for a, b in zip(sums[number], rows[turn], strict=True)]
    return sums, [length(total) for total in sums]


def affiliate(rows, level, before, known, recalled, continuity, sums, order, recent):
    """Events by number, and the events that got turns last; `sums` are those of the events there are."""
    sums, order, chosen, compared = [list(total) for total in sums], list(order), [], 0
    for i, row in enumerate(rows):
        values = {}
        for event in [*order[:recent], *(one for one in recalled[i] if one >= 0)]:
            compared += 1
            norm = length(sums[event])
            value = sum(a * b for a, b in zip(row, sums[event], strict=True)) / norm if norm else 0.0
            close = [chosen[before[i]]] if before[i] >= 0 else known[i]
            values.setdefault(event, value + (continuity if event in close else 0.0))
        best = max(values, key=values.get, default=None)
        if best is None or values[best] < level[i]:
            best = len(sums)
            sums.append([0.0] * len(row))
        chosen.append(best)
        sums[best] = [a + b for a, b in zip(sums[best], row, strict=True)]
        order = [best, *(event for event in order if event != best)]
    return chosen, order[:recent], len(sums), compared


def length(vector):
    return math.sqrt(sum(a * a for a in vector))
