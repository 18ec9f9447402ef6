"""How the fall or rise of units reaches what rests on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

import numpy as np

from hmem_core.columns.facts import FactColumns
from hmem_core.journal.entries import ACTIVE, OUTDATED
from hmem_kernels import frozen
from hmem_kernels.cascade import fall, rise

__all__ = ["Moved", "spread"]


class Moved(NamedTuple):
    """What became of a unit."""

    before: int
    after: int
    cause: int
    """The unit through which it was reached; -1 for none."""


def spread(
    facts: FactColumns,
    fallen: Sequence[int],
    risen: Sequence[int],
    looked: Sequence[int],
    reach: Set[int] | None,
) -> dict[int, Moved]:
    """The units that become outdated or active; the columns keep the statuses that they had.

    Args:
        fallen: units that were active, and are not any longer.
        risen: units that are active, and were not.
        looked: outdated units that may have support.
        reach: of the dependents, only the direct ones among these units; None for all, however indirect.
    """
    if reach is not None:
        return _nearby(facts, fallen, risen, looked, reach)
    if not looked and not any(facts.index.resting.count(unit) for unit in (*fallen, *risen)):
        return {}
    status = facts.units.columns["status"].view()
    graph = facts.support()
    room = len(facts)
    doubted, doubt = np.empty(room, np.int32), np.empty(room, np.int32)
    count = fall(status, graph, _array(fallen), doubted, doubt)
    doubted = doubted[:count]
    standing, support = np.empty(room, np.int32), np.empty(room, np.int32)
    seeds = np.concatenate([doubted, np.array(looked, np.int32)])
    rose = rise(status, graph, _array(risen), frozen(seeds), standing, support)
    standing = standing[:rose]
    moved = {
        unit: Moved(ACTIVE, OUTDATED, cause)
        for unit, cause in zip(doubted.tolist(), doubt[:count].tolist(), strict=True)
    }
    for unit, cause in zip(standing.tolist(), support[:rose].tolist(), strict=True):
        if moved.pop(unit, None) is None:
            moved[unit] = Moved(OUTDATED, ACTIVE, cause)
    status[standing] = OUTDATED
    status[doubted] = ACTIVE
    return moved


def _array(units: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return frozen(np.array(list(units), np.int32))


def _nearby(
    facts: FactColumns,
    fallen: Sequence[int],
    risen: Sequence[int],
    looked: Sequence[int],
    reach: Set[int],
) -> dict[int, Moved]:
    """As the paper has it: direct dependents alone, each by whether its support still holds."""
    status = facts.units["status"]
    moved = {unit: Moved(OUTDATED, ACTIVE, -1) for unit in looked if facts.supported(unit)}
    for cause in (*fallen, *risen):
        for unit in facts.dependents(cause).tolist():
            before = int(status[unit])
            if unit in reach and before in (ACTIVE, OUTDATED) and unit not in moved:
                after = ACTIVE if facts.supported(unit) else OUTDATED
                if after != before:
                    moved[unit] = Moved(before, after, cause)
    return moved
