"""How the fall or rise of units reaches what rests on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.facts import FactColumns
from hmem_core.journal.entries import ACTIVE, OUTDATED
from hmem_kernels import frozen
from hmem_kernels.cascade import fall, rise

__all__ = ["Moved", "spread"]


IntArray = npt.NDArray[np.int32]


class Moved(NamedTuple):
    """Units whose status changes; all of shape (units,)."""

    units: IntArray
    after: npt.NDArray[np.uint8]
    """OUTDATED for one that was active, and ACTIVE for one that was outdated."""
    cause: IntArray
    """The unit through which each was reached; -1 for none."""


def spread(
    facts: FactColumns,
    fallen: Sequence[int],
    risen: Sequence[int],
    looked: Sequence[int],
    reach: Set[int] | None,
) -> Moved:
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
        return _moved([], [], [])
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
    fell = status[doubted] == OUTDATED
    rose_anew = ~np.isin(standing, doubted)
    status[standing] = OUTDATED
    status[doubted] = ACTIVE
    units = np.concatenate([doubted[fell], standing[rose_anew]])
    after = np.repeat(np.array([OUTDATED, ACTIVE], np.uint8), [fell.sum(), rose_anew.sum()])
    return Moved(units, after, np.concatenate([doubt[:count][fell], support[:rose][rose_anew]]))


def _moved(units: Sequence[int], after: Sequence[int], cause: Sequence[int]) -> Moved:
    return Moved(np.array(units, np.int32), np.array(after, np.uint8), np.array(cause, np.int32))


def _array(units: Iterable[int]) -> IntArray:
    return frozen(np.array(list(units), np.int32))


def _nearby(
    facts: FactColumns,
    fallen: Sequence[int],
    risen: Sequence[int],
    looked: Sequence[int],
    reach: Set[int],
) -> Moved:
    """As the paper has it: direct dependents alone, each by whether its support still holds."""
    status = facts.units["status"]
    moved = {unit: (ACTIVE, -1) for unit in looked if facts.supported(unit)}
    for cause in (*fallen, *risen):
        for unit in facts.dependents(cause).tolist():
            before = int(status[unit])
            if unit in reach and before in (ACTIVE, OUTDATED) and unit not in moved:
                after = ACTIVE if facts.supported(unit) else OUTDATED
                if after != before:
                    moved[unit] = after, cause
    return _moved(list(moved), [after for after, _ in moved.values()], [cause for _, cause in moved.values()])
