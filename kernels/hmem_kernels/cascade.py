"""Truth maintenance: what falls with a unit that falls, and what rises with one that rises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_kernels._kernel import frozen, kernel

__all__ = ["ACTIVE", "OUTDATED", "Support", "fall", "related", "rise"]

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.uint8]

ACTIVE, OUTDATED = 1, 4
"""Statuses that matter here; units of any other stay as they are."""


class Support(NamedTuple):
    """What told each unit, and what that rests on.

    The tellings of a unit, and those that rest on a unit, are lists in two parts: a slice of `targets`, and
    a chain of tail entries. Rows that came last may have no slice, or no chain either.
    """

    unit: IntArray
    """int32 (tellings,): the unit that each tells"""
    live: ByteArray
    """uint8 (tellings,): 0 if it does not count"""
    ends: LongArray
    """int64 (tellings,): where its units end in `because`"""
    because: IntArray
    """int32: the units on all of which a telling rests; one that rests on none stands by itself"""
    told_offsets: LongArray
    """int64 (rows + 1,): where the tellings of each unit begin in the targets"""
    told_targets: IntArray
    told_head: IntArray
    """int32 (rows,): of each unit, the newest entry of its chain, -1 for none"""
    told_previous: IntArray
    """int32 (entries,): the entry before each in its chain, -1 for none"""
    told_tail: IntArray
    """int32 (entries,): its telling"""
    resting_offsets: LongArray
    """The same of the tellings that rest on each unit."""
    resting_targets: IntArray
    resting_head: IntArray
    resting_previous: IntArray
    resting_tail: IntArray


def _example() -> Support:
    """Unit 0 stands by itself, 1 rests on 0, and 2 on 0 and 1; the last telling lies in the tail."""
    columns = Support(
        unit=np.array([0, 1, 2], np.int32),
        live=np.ones(3, np.uint8),
        ends=np.array([0, 1, 3], np.int64),
        because=np.array([0, 0, 1], np.int32),
        told_offsets=np.array([0, 1, 2], np.int64),
        told_targets=np.array([0, 1], np.int32),
        told_head=np.array([-1, -1, 0], np.int32),
        told_previous=np.array([-1], np.int32),
        told_tail=np.array([2], np.int32),
        resting_offsets=np.array([0, 1], np.int64),
        resting_targets=np.array([1], np.int32),
        resting_head=np.array([0, 1], np.int32),
        resting_previous=np.array([-1, -1], np.int32),
        resting_tail=np.array([2, 2], np.int32),
    )
    return Support._make(map(frozen, columns))


def _empty() -> Support:
    example = _example()
    nothing = {name: column[:0] for name, column in example._asdict().items()}
    return Support(
        **{**nothing, "told_offsets": example.told_offsets[:1], "resting_offsets": example.told_offsets[:1]}
    )


def _examples(doubted: bool) -> Iterator[tuple[Any, ...]]:
    for status, graph in (
        ([], _empty()),
        ([2, ACTIVE, ACTIVE], _example()),
        ([1, OUTDATED, OUTDATED], _example()),
    ):
        units = np.array(status, np.uint8)
        seeds = [frozen(np.arange(min(1, units.size), dtype=np.int32))]
        if doubted:
            seeds.append(frozen(np.arange(units.size, dtype=np.int32)))
        yield units, graph, *seeds, np.zeros(units.size, np.int32), np.zeros(units.size, np.int32)


@kernel
def _begin(offsets: LongArray, head: IntArray, row: int) -> tuple[int, int, int]:
    """Where the slice of a row begins and ends, and the newest entry of its chain."""
    if row >= head.size:
        return 0, 0, -1
    if row + 1 >= offsets.size:
        return 0, 0, head[row]
    return offsets[row], offsets[row + 1], head[row]


@kernel
def _holds(status: ByteArray, graph: Support, telling: int) -> bool:
    """Whether a telling counts and rests on active units alone."""
    if graph.live[telling] == 0:
        return False
    start = graph.ends[telling - 1] if telling > 0 else 0
    holds = True
    for place in range(start, graph.ends[telling]):
        holds &= status[graph.because[place]] == ACTIVE
    return holds


@kernel
def _stands(graph: Support, telling: int) -> bool:
    """Whether a telling counts and rests on nothing."""
    start = graph.ends[telling - 1] if telling > 0 else 0
    return bool(graph.live[telling] != 0 and graph.ends[telling] == start)


@kernel
def _supported(status: ByteArray, graph: Support, unit: int) -> bool:
    """Whether one of the tellings of a unit holds."""
    start, end, entry = _begin(graph.told_offsets, graph.told_head, unit)
    for place in range(start, end):
        if _holds(status, graph, graph.told_targets[place]):
            return True
    while entry >= 0:
        if _holds(status, graph, graph.told_tail[entry]):
            return True
        entry = graph.told_previous[entry]
    return False


@kernel
def _asserted(graph: Support, unit: int) -> bool:
    """Whether one of the tellings of a unit stands by itself."""
    start, end, entry = _begin(graph.told_offsets, graph.told_head, unit)
    for place in range(start, end):
        if _stands(graph, graph.told_targets[place]):
            return True
    while entry >= 0:
        if _stands(graph, graph.told_tail[entry]):
            return True
        entry = graph.told_previous[entry]
    return False


@kernel(examples=lambda: _examples(doubted=False))
def fall(status: ByteArray, graph: Support, fallen: IntArray, reached: IntArray, cause: IntArray) -> int:
    """Doubt whatever rests, however indirectly, on units that fell; returns how many units that are.

    status   uint8 (units,), updated: an active unit that is doubted becomes outdated
    graph    see `Support`
    fallen   int32: units that are active no longer
    reached  int32 (units,), written: the doubted units, in the order in which they were reached
    cause    int32 (units,), written: the unit through which each was reached

    A unit of which a telling stands by itself is never doubted. Of the others `rise` finds those that stand
    after all: to doubt first is what keeps units that support only one another from holding each other up.
    """
    count = 0
    turn = 0
    while turn < fallen.size + count:
        row = fallen[turn] if turn < fallen.size else reached[turn - fallen.size]
        turn += 1
        place, end, entry = _begin(graph.resting_offsets, graph.resting_head, row)
        while place < end or entry >= 0:
            if place < end:
                telling = graph.resting_targets[place]
                place += 1
            else:
                telling = graph.resting_tail[entry]
                entry = graph.resting_previous[entry]
            unit = graph.unit[telling]
            counts = unit >= 0 and graph.live[telling] != 0 and status[unit] == ACTIVE
            if counts and not _asserted(graph, unit):
                status[unit] = OUTDATED
                reached[count] = unit
                cause[count] = row
                count += 1
    return count


@kernel(examples=lambda: _examples(doubted=True))
def rise(
    status: ByteArray,
    graph: Support,
    risen: IntArray,
    doubted: IntArray,
    reached: IntArray,
    cause: IntArray,
) -> int:
    """Make active what has support, and then what that supports, to a fixed point; returns how many units.

    status   uint8 (units,), updated: an outdated unit that has support becomes active
    graph    see `Support`
    risen    int32: units that are active and were not
    doubted  int32: units to look at, of which those that are outdated may rise
    reached  int32 (units,), written: the units that became active, in order
    cause    int32 (units,), written: of each, the unit that was the last part of its support; -1 for one of
             `doubted` that had it from the start
    """
    count = 0
    for place in range(doubted.size):
        row = doubted[place]
        if status[row] == OUTDATED and _supported(status, graph, row):
            status[row] = ACTIVE
            reached[count] = row
            cause[count] = -1
            count += 1
    turn = 0
    while turn < risen.size + count:
        row = risen[turn] if turn < risen.size else reached[turn - risen.size]
        turn += 1
        place, end, entry = _begin(graph.resting_offsets, graph.resting_head, row)
        while place < end or entry >= 0:
            if place < end:
                telling = graph.resting_targets[place]
                place += 1
            else:
                telling = graph.resting_tail[entry]
                entry = graph.resting_previous[entry]
            unit = graph.unit[telling]
            if unit >= 0 and status[unit] == OUTDATED and _holds(status, graph, telling):
                status[unit] = ACTIVE
                reached[count] = unit
                cause[count] = row
                count += 1
    return count


def _related_examples() -> Iterator[tuple[Any, ...]]:
    for status, graph in (([], _empty()), ([1, ACTIVE, ACTIVE], _example()), ([2, 1, 1], _example())):
        units = frozen(np.arange(len(status), dtype=np.int32))
        room = 4 * len(status)
        written = np.zeros(room, np.int32), np.zeros(room, np.int32)
        yield units, frozen(np.array(status, np.uint8)), graph, 2, *written


@kernel(examples=_related_examples)
def related(
    units: IntArray, status: ByteArray, graph: Support, limit: int, rows: IntArray, found: IntArray
) -> int:
    """The active units that directly rest on given units, or on which these rest; returns how many pairs.

    units   int32: the units, by number
    status  uint8: of all units
    graph   see `Support`
    limit   so many tellings that rest on a unit, and so many supports of it, are looked at, the latest first
    rows    int32 (2 · `limit` · given units,), written: of each pair, the place of the given unit in `units`
    found   int32, of the same size, written: and the other unit
    """
    count = 0
    for i in range(units.size):
        row = units[i]
        place, end, entry = _begin(graph.resting_offsets, graph.resting_head, row)
        looked = 0
        while looked < limit and (place < end or entry >= 0):
            if entry >= 0:
                telling = graph.resting_tail[entry]
                entry = graph.resting_previous[entry]
            else:
                end -= 1
                telling = graph.resting_targets[end]
            looked += 1
            unit = graph.unit[telling]
            if unit >= 0 and graph.live[telling] != 0 and status[unit] == ACTIVE:
                rows[count] = i
                found[count] = unit
                count += 1
        place, end, entry = _begin(graph.told_offsets, graph.told_head, row)
        looked = 0
        while looked < limit and (place < end or entry >= 0):
            if entry >= 0:
                telling = graph.told_tail[entry]
                entry = graph.told_previous[entry]
            else:
                end -= 1
                telling = graph.told_targets[end]
            if graph.live[telling] == 0 or _stands(graph, telling):
                looked += 1
                continue
            start = graph.ends[telling - 1] if telling > 0 else 0
            for needed in range(start, min(graph.ends[telling], start + limit - looked)):
                looked += 1
                unit = graph.because[needed]
                if unit >= 0 and status[unit] == ACTIVE:
                    rows[count] = i
                    found[count] = unit
                    count += 1
    return count
