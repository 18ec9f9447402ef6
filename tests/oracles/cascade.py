"""Truth maintenance, the slow and obvious way: labels computed from nothing, round after round."""

from __future__ import annotations

import numpy as np

ACTIVE, OUTDATED = 1, 4


def justifications(graph, units):
    """For each unit, what its tellings that count rest on."""
    found = [[] for _ in range(units)]
    for telling, unit in enumerate(graph.unit):
        start = graph.ends[telling - 1] if telling else 0
        if unit >= 0 and graph.live[telling]:
            found[unit].append({int(one) for one in graph.because[start : graph.ends[telling]]})
    return found


def labels(blocked, justifications):
    """Which units are in: the least set that holds every unit, not blocked, one of whose justifications
    lies in it."""
    inside = set()
    while True:
        more = {
            unit
            for unit, some in enumerate(justifications)
            if unit not in inside and not blocked[unit] and any(one <= inside for one in some)
        }
        if not more:
            return inside
        inside |= more


def fall(status, graph, fallen, reached, cause):
    """Round after round: every active unit that no telling asserts, and that rests on a doubted unit."""
    known = justifications(graph, len(status))
    count = 0
    doubted = set(map(int, fallen))
    while True:
        more = [
            unit
            for unit in range(len(status))
            if status[unit] == ACTIVE
            and set() not in known[unit]
            and any(one & doubted for one in known[unit])
        ]
        if not more:
            return count
        for unit in more:
            status[unit] = OUTDATED
            reached[count] = unit
            cause[count] = min(set().union(*known[unit]) & doubted)
            count += 1
        doubted |= set(more)


def rise(status, graph, risen, doubted, reached, cause):
    """Round after round: every outdated unit one of whose tellings rests on active units alone, if it is
    doubted or rests on one that became active."""
    known = justifications(graph, len(status))
    looked = set(map(int, doubted))
    news = set(map(int, risen))
    count = 0
    while True:
        more = [
            unit
            for unit in range(len(status))
            if status[unit] == OUTDATED
            and any(
                (unit in looked or one & news) and all(status[other] == ACTIVE for other in one)
                for one in known[unit]
            )
        ]
        if not more:
            return count
        for unit in more:
            status[unit] = ACTIVE
            reached[count] = unit
            cause[count] = -1
            count += 1
        news |= set(more)


def related(units, status, graph, limit, rows, found):
    """Of each unit, the tellings from the last to the first: those that rest on it, then its own."""
    because = [[int(one) for one in some] for some in np.split(graph.because, graph.ends)[: graph.unit.size]]
    count = 0
    for place, row in enumerate(units.tolist()):
        last = range(graph.unit.size - 1, -1, -1)
        resting = [telling for telling in last if row in because[telling]][:limit]
        near = [int(graph.unit[telling]) for telling in resting if graph.live[telling]]
        looked = []
        for telling in last:
            if graph.unit[telling] == row:
                looked += because[telling] if graph.live[telling] and because[telling] else [-1]
        for unit in near + looked[:limit]:
            if unit >= 0 and status[unit] == ACTIVE:
                rows[count], found[count] = place, unit
                count += 1
    return count
