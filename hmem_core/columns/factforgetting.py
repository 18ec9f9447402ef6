"""What forgetting takes out of the fact graph, in the arrays.

The journal loses the same (`journal.entries.erase`), so that replaying it ends in these arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.factindex import SLOTS
from hmem_core.journal.entries import OPEN_END, SUPERSEDED

if TYPE_CHECKING:
    from hmem_core.columns.facts import FactColumns

__all__ = ["Gone", "blank", "gone", "unread"]

IntArray = npt.NDArray[np.int32]


class Gone(NamedTuple):
    """What forgetting some turns and units takes out of the fact graph."""

    units: frozenset[int]
    tellings: frozenset[int]
    """Those of the units, and those whose turns are all gone."""
    cited: frozenset[int]
    """Tellings that name one of the turns, the former ones included."""
    names: frozenset[int]
    """Codes that no unit uses any longer, and their aliases."""
    seqs: tuple[int, ...]
    """The journal entries that hold something of it, ascending."""


def _citing(facts: FactColumns, turns: Iterable[int]) -> dict[int, set[int]]:
    """The tellings that name one of the turns, and which of them."""
    found: dict[int, set[int]] = {}
    for turn in turns:
        for telling in facts.index.citing[turn].tolist():
            found.setdefault(telling, set()).add(turn)
    return found


def _orphans(
    facts: FactColumns, cited: Mapping[int, Set[int]], readings: Iterable[int]
) -> tuple[set[int], set[int]]:
    """The tellings all of whose sources are among those that are `cited` (or forgotten before), with those
    of some readings, and the units that have no other telling."""
    lost = {
        telling
        for telling, some in cited.items()
        if all(turn < 0 or turn in some for turn in facts.sources[telling].tolist())
    }
    for reading in readings:
        lost.update(
            one for one in facts.readings.tellings[reading].tolist() if facts.tellings["unit"][one] >= 0
        )
    units = set()
    for unit in {int(facts.tellings["unit"][telling]) for telling in lost}:
        if lost.issuperset(facts.index.tellings[unit].tolist()):
            units.add(unit)
    return lost, units


def unread(facts: FactColumns, turns: Iterable[int], units: Iterable[int]) -> frozenset[int]:
    """The readings (`TurnsRead`) that go with the turns and units: those that were shown one of the turns,
    or hold something of a unit that goes, with these readings too."""
    turns, units = list(turns), list(units)
    if not len(facts.readings):
        return frozenset()
    found = set(facts.readings.resting_on(turns))
    while True:
        more = set(facts.readings.holding(gone(facts, turns, units, found).units)) - found
        if not more:
            return frozenset(found)
        found |= more


def gone(
    facts: FactColumns, turns: Iterable[int], units: Iterable[int], readings: Iterable[int] = ()
) -> Gone:
    """What goes with the turns, the units, and what some readings told."""
    turns = list(turns)
    cited = _citing(facts, turns)
    tellings, orphaned = _orphans(facts, cited, readings)
    erased = orphaned | {unit for unit in units if facts.units["subject"][unit] >= 0}
    for unit in erased:
        tellings.update(facts.index.tellings[unit].tolist())
    if not erased and not cited and not tellings:
        return Gone(frozenset(), frozenset(), frozenset(), frozenset(), ())
    rows = np.array(sorted(erased), np.int32)
    changed = np.isin(facts.changes["unit"], rows) | np.isin(facts.changes["by"], rows)
    names = _unused(facts, rows)
    touched = np.array(sorted(tellings | cited.keys()), np.int64)
    named = np.array(sorted(names), np.int64)
    seqs = [
        facts.changes["seq"][changed],
        facts.units["seq"][rows],
        facts.tellings["seq"][touched],
        facts.names.narrow["seq"].view()[named],
    ]
    entries = np.unique(np.concatenate(seqs)).tolist()
    return Gone(frozenset(erased), frozenset(tellings), frozenset(cited), names, tuple(entries))


def _unused(facts: FactColumns, units: IntArray) -> frozenset[int]:
    """Names that only these units use, and their aliases."""
    slots = [facts.units[slot][units] for slot in SLOTS]
    members = [facts.contexts[unit] for unit in units.tolist()]
    codes, counts = np.unique(np.concatenate([*slots, *members]), return_counts=True)
    left = {
        int(code)
        for code, count in zip(codes, counts, strict=True)
        if code >= 0 and facts.names.narrow["uses"][int(code)] == count
    }
    aliases = facts.names.narrow["alias"].view()
    return frozenset(np.flatnonzero(np.isin(aliases, sorted(left))).tolist()) | left


def blank(facts: FactColumns, gone: Gone, turns: Iterable[int]) -> None:
    units = np.array(sorted(gone.units), np.int64)
    tellings = np.array(sorted(gone.tellings), np.int64)
    for telling in gone.cited:
        for turn in turns:
            facts.sources.replace(telling, turn, -1)
    changes = np.flatnonzero(np.isin(facts.changes["unit"], units))
    noted = set(np.unique(facts.changes["seq"][changes]).tolist())
    noted |= set(np.unique(facts.tellings["seq"][tellings]).tolist())
    for slot in SLOTS:
        for code in facts.units[slot][units].tolist():
            facts.use(code, -1)
    for unit in units.tolist():
        for code in facts.contexts[unit].tolist():
            facts.use(code, -1)
        facts.contexts.blank(unit)
    for telling in tellings.tolist():
        facts.sources.blank(telling)
        facts.because.blank(telling)
    facts.units.blank(units, "seq", "recorded", "change")
    facts.tellings.blank(tellings, "seq")
    facts.changes.blank(changes, "unit", "previous", "seq", "recorded")
    _unname(facts, units)
    for seq in sorted(noted & facts.notes.keys()):
        facts.blank_note(seq)
    for code in sorted(gone.names):
        facts.names.erase(code)
    facts.reindex()


def _unname(facts: FactColumns, units: npt.NDArray[np.int64]) -> None:
    """Take forgotten units out of the changes of others, with what they decided of those."""
    rows = np.flatnonzero(np.isin(facts.changes["by"], units))
    ended = rows[facts.changes["status"][rows] == SUPERSEDED]
    facts.changes.columns["by"].view()[rows] = -1
    facts.changes.columns["valid_to"].view()[ended] = OPEN_END
    changed = facts.changes["unit"][rows]
    current = rows[facts.units["change"][changed] == rows]
    for name in ("by", "valid_to"):
        facts.units.columns[name].view()[facts.changes["unit"][current]] = facts.changes[name][current]
