"""Truth maintenance, the slow and obvious way: labels computed from nothing, round after round."""

from __future__ import annotations

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
