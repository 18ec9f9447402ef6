"""Which of the values of one slot holds when: the statuses and intervals of units that rival one another.

Rivals have the same subject, relation and contexts, and only one of them can be true at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hmem_core.journal.entries import ACTIVE, OPEN_END, OPEN_START, OUTDATED, PENDING, SUPERSEDED

__all__ = ["Placed", "Rival", "place"]


class Rival(NamedTuple):
    """A unit that some telling stands for."""

    unit: int
    value: int
    """What it says; rivals of one value do not contradict one another, but may hold at different times."""
    start: int
    """When it began, as it was told; OPEN_START where nobody said."""
    end: int
    """When it ended, as it was told; OPEN_END where nobody said."""
    status: int
    by: int
    """By which unit it is superseded, or which it contradicts."""


class Placed(NamedTuple):
    """What a rival is among the others."""

    status: int
    """ACTIVE (if it has support), SUPERSEDED or PENDING."""
    end: int
    """Where its valid time ends."""
    by: int


def place(rivals: Iterable[Rival]) -> dict[int, Placed]:
    """Put rivals in the order of time (ours).

    Those with a known start follow one another: each ends where the next one starts, and the last one holds.
    Of two that start at the same time the one that was told first holds, and the other is pending. A unit
    whose start is not known

    - stays where it is, if it was superseded before;
    - comes before one that was told later and with a start: to have a start is to be newer;
    - holds, if all others have an end that was told, or have lost their support;
    - is pending otherwise: nothing says which is newer.

    A unit that has lost its support gives way to one that has not.
    """
    known, unknown = _split(rivals)
    placed: dict[int, Placed] = {}
    chain: list[Rival] = []
    twins: list[tuple[int, int]] = []
    for rival in known:
        if not chain or chain[-1].start != rival.start:
            chain.append(rival)
        elif chain[-1].value == rival.value:
            twins.append((rival.unit, chain[-1].unit))
        else:
            placed[rival.unit] = _beside(rival, chain[-1])
    for rival, after in itertools.pairwise(chain):
        placed[rival.unit] = Placed(SUPERSEDED, min(rival.end, after.start), after.unit)
    for rival in chain[-1:]:
        placed[rival.unit] = Placed(ACTIVE, rival.end, -1)
    _place_unknown(unknown, chain, placed)
    for unit, other in twins:
        placed[unit] = placed[other]
    return placed


def _split(rivals: Iterable[Rival]) -> tuple[list[Rival], list[Rival]]:
    """Those with a known start, in the order of time, and the others; of equals, the first told before."""
    ranked = sorted(rivals, key=lambda one: (one.start, one.status == OUTDATED, one.unit))
    unknown = [one for one in ranked if one.start == OPEN_START]
    return ranked[len(unknown) :], unknown


def _beside(rival: Rival, winner: Rival) -> Placed:
    """Of two that start together, what becomes of the one that does not hold."""
    lost = rival.status == OUTDATED != winner.status
    return Placed(SUPERSEDED if lost else PENDING, rival.end, winner.unit)


def _place_unknown(unknown: Sequence[Rival], chain: Sequence[Rival], placed: dict[int, Placed]) -> None:
    starts = {one.unit: one.start for one in chain}
    last = chain[-1] if chain else None
    open_now = any(one.end == OPEN_END and one.status != OUTDATED for one in chain)
    holder = last
    for rival in unknown:
        if holder is not None and holder.value == rival.value and rival.status != SUPERSEDED:
            placed[rival.unit] = placed[holder.unit]
        elif rival.status == SUPERSEDED and rival.by in starts:
            placed[rival.unit] = Placed(SUPERSEDED, min(rival.end, starts[rival.by]), rival.by)
        elif holder is last and not open_now:
            holder = rival
            placed[rival.unit] = Placed(ACTIVE, rival.end, -1)
            if last is not None:
                placed[last.unit] = Placed(SUPERSEDED, last.end, rival.unit)
        elif holder is last and last is not None and rival.unit < last.unit and rival.status != PENDING:
            placed[rival.unit] = Placed(SUPERSEDED, min(rival.end, last.start), last.unit)
        elif holder is not None:
            placed[rival.unit] = _beside(rival, holder)
