"""Contexts, sums of events and affiliation, one number at a time."""

import math


def contexts(vectors, place, weights):
    found, lengths = [], []
    for turns in place:
        row = [0.0] * len(vectors[0]) if len(vectors) else []
        if turns[0] >= 0:
            for weight, turn in zip(weights, turns, strict=True):
                if turn >= 0:
                    row = [a + weight * b for a, b in zip(row, vectors[turn], strict=True)]
        lengths.append(length(row))
        found.append([a / lengths[-1] if lengths[-1] else 0.0 for a in row])
    return found, lengths


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


def score_events(turn, event, length, odds, cosines, allowed, previous, weights, events):
    total, dots, count = [0.0] * events, [0.0] * events, [0] * events
    for t, e, divisor in zip(turn, event, length, strict=True):
        if allowed[t]:
            total[e] += odds[t]
            count[e] += 1
        chain = [t]
        while len(chain) < len(weights) and previous[chain[-1]] >= 0:
            chain.append(previous[chain[-1]])
        if divisor:
            dots[e] += sum(w * cosines[one] for w, one in zip(weights, chain, strict=False)) / divisor
    return total, dots, count


def lend_events(turn, event, scores, lent):
    return [
        max([lent[t], *(scores[e] for one, e in zip(turn, event, strict=True) if one == t)])
        for t in range(len(lent))
    ]


def gather_bits(turn, event, bits, allowed, events):
    sets = [set() for _ in range(events)]
    for t, e in zip(turn, event, strict=True):
        if allowed[t]:
            sets[e] |= {bit for bit in range(64) if int(bits[t]) >> bit & 1}
    return [sum(1 << bit for bit in one) for one in sets]


def length(vector):
    return math.sqrt(sum(a * a for a in vector))
