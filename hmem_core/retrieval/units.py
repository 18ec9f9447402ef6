"""From the columns of the fact graph to the records a user sees."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.facts import FactColumns
from hmem_core.errors import InvalidInput, RewriteNotFound, UnitForgotten, UnitNotFound
from hmem_core.journal.entries import (
    ACTIVE,
    FORGOTTEN,
    OPEN_END,
    OPEN_START,
    OUTDATED,
    PENDING,
    RETRACTED,
    SUPERSEDED,
)
from hmem_core.localised import Localisation
from hmem_core.records import (
    REASONS,
    STATUSES,
    Change,
    Contradiction,
    Rewrite,
    Turn,
    Unit,
    Version,
    Why,
)
from hmem_core.retrieval import reading
from hmem_core.state import State, View
from hmem_core.times import TimeLike, datetime_of, micros

__all__ = ["Moment", "Slots", "earlier", "find", "history", "moment", "number", "rewrite", "unit", "why"]

_SLOTS = ("subject", "relation", "object", "category", "context")
_INCLUDED = {
    "active": (ACTIVE,),
    "history": (ACTIVE, SUPERSEDED),
    "all": (ACTIVE, SUPERSEDED, PENDING, OUTDATED, RETRACTED),
}


class Moment(NamedTuple):
    """Up to where the past is known: a journal entry, or a time of writing."""

    limit: int
    column: str
    """``seq`` or ``recorded``."""


class Slots(NamedTuple):
    """What is asked for; None for anything."""

    subject: str | None = None
    relation: str | None = None
    object: str | None = None
    category: str | None = None
    context: str | None = None


def moment(as_of: int | TimeLike | None, tz: dt.tzinfo) -> Moment | None:
    """What ``as_of=`` means.

    Raises:
        InvalidInput: it means nothing.
    """
    if as_of is None:
        return None
    if isinstance(as_of, bool) or (isinstance(as_of, int) and as_of < 0):
        raise InvalidInput(f"as_of={as_of!r}: give a sequence number from 0 (see Rewrite.seq) or a time")
    if isinstance(as_of, int):
        return Moment(as_of, "seq")
    return Moment(micros(as_of, tz, "as_of"), "recorded")


def number(facts: FactColumns, unit: Any) -> int:
    """The number of a unit, given as such or as a record.

    Raises:
        UnitNotFound: there never was one.
        UnitForgotten: it is forgotten.
        InvalidInput: `unit` is neither.
    """
    if isinstance(unit, Unit):
        unit = unit.id
    if isinstance(unit, bool) or not isinstance(unit, (int, np.integer)):
        raise InvalidInput(f"{unit!r} is not a unit; give its id, a whole number, or the Unit itself")
    if not 0 <= unit < len(facts):
        given = f"ids go from 0 to {len(facts) - 1}" if len(facts) else "no fact was told yet"
        raise UnitNotFound(f"there is no unit {unit}; {given}")
    if facts.units["status"][unit] == FORGOTTEN:
        raise UnitForgotten(f"unit {unit} is forgotten")
    return int(unit)


def _time(stored: int) -> dt.datetime | None:
    return None if stored in (OPEN_START, OPEN_END) else datetime_of(stored)


def unit(facts: FactColumns, row: int, change: int | None = None) -> Unit:
    """The unit in `row`, as a change left it; None for the latest one."""
    columns, changes = facts.units, facts.changes
    change = int(columns["change"][row]) if change is None else change
    seq = int(changes["seq"][change])
    told = [one for one in facts.index.tellings[row].tolist() if _counts(facts, one, seq)]
    sources = {turn: None for one in told for turn in facts.sources[one].tolist() if turn >= 0}
    because = {tuple(facts.because[one].tolist()): None for one in told}
    by = int(changes["by"][change])
    names = [facts.names[int(columns[slot][row])] for slot in _SLOTS[:4]]
    contexts = dict.fromkeys(facts.names[code] for code in facts.contexts[row].tolist())
    return Unit(
        id=row,
        subject=names[0] or "",
        relation=names[1] or "",
        object=names[2] or "",
        category=names[3],
        contexts=tuple(name for name in contexts if name is not None),
        valid_from=_time(int(changes["valid_from"][change])),
        valid_to=_time(int(changes["valid_to"][change])),
        recorded=datetime_of(columns["recorded"][row]),
        confidence=float(changes["confidence"][change]),
        status=STATUSES[changes["status"][change]],
        by=by if by >= 0 else None,
        sources=tuple(sources),
        supports=tuple(needed for needed in because if needed),
        asserted=() in because,
    )


def _counts(facts: FactColumns, telling: int, seq: int) -> bool:
    """Whether a telling counted after entry `seq`. Of one that was withdrawn, and counts again, only the
    present is known."""
    withdrawn = int(facts.tellings["withdrawn"][telling])
    return bool(facts.tellings["seq"][telling] <= seq and (withdrawn == 0 or withdrawn > seq))


def _version(facts: FactColumns, change: int) -> Version:
    columns = facts.changes
    by = int(columns["by"][change])
    return Version(
        seq=int(columns["seq"][change]),
        recorded=datetime_of(columns["recorded"][change]),
        status=STATUSES[columns["status"][change]],
        valid_from=_time(int(columns["valid_from"][change])),
        valid_to=_time(int(columns["valid_to"][change])),
        confidence=float(columns["confidence"][change]),
        why=REASONS[columns["why"][change]],
        by=by if by >= 0 else None,
    )


def history(facts: FactColumns, row: int) -> list[Version]:
    """What a unit was, the first version first."""
    return [_version(facts, change) for change in facts.history(row)]


def rewrite(
    facts: FactColumns, seq: int, explain: Localisation | None = None, *, new: bool = True
) -> Rewrite:
    """What the rewrite with that number did."""
    columns = facts.changes
    changes, conflicts = [], []
    sorted_by: dict[str, list[int]] = {name: [] for name in ("added", "restored", *STATUSES)}
    for change in facts.changes_of(seq):
        row, previous = int(columns["unit"][change]), int(columns["previous"][change])
        before = None if previous < 0 else _version(facts, previous)
        after = _version(facts, change)
        changes.append(Change(row, before, after))
        if before is None:
            sorted_by["added"].append(row)
        if before is None or before.status != after.status:
            sorted_by[after.status].append(row)
        if before is not None and before.status != "active" == after.status:
            sorted_by["restored"].append(row)
        if after.why == "contradicts, and is not newer" and after.by is not None:
            conflicts.append(Contradiction(row, _holder(facts, after.by, seq)))
    told = {int(facts.tellings["unit"][telling]) for telling in facts.tellings_of(seq)}
    return Rewrite(
        seq=seq,
        added=tuple(sorted_by["added"]),
        superseded=tuple(sorted_by["superseded"]),
        pending=tuple(sorted_by["pending"]),
        outdated=tuple(sorted_by["outdated"]),
        restored=tuple(sorted_by["restored"]),
        retracted=tuple(sorted_by["retracted"]),
        confirmed=tuple(sorted(told - {-1} - set(sorted_by["added"]))),
        conflicts=tuple(conflicts),
        changes=tuple(changes),
        undoes=facts.undoes(seq),
        new=new,
        explain=explain,
    )


def earlier(facts: FactColumns, seq: Any) -> Rewrite:
    """What an earlier rewrite did.

    Raises:
        RewriteNotFound: there is none of that number.
    """
    whole = isinstance(seq, (int, np.integer)) and not isinstance(seq, bool)
    if not whole or not (facts.changes_of(seq) or facts.tellings_of(seq)):
        raise RewriteNotFound(f"{seq!r} is not the number of a rewrite that changed a fact; see Rewrite.seq")
    return rewrite(facts, int(seq), new=False)


def _holder(facts: FactColumns, row: int, seq: int) -> int:
    """The unit that had, by an entry, taken the place of the one in `row`, of that one, and so on."""
    seen = {row}
    while (change := facts.change_at(row, seq)) >= 0 and facts.changes["status"][change] == SUPERSEDED:
        by = int(facts.changes["by"][change])
        if by < 0 or by in seen:
            break
        seen.add(by)
        row = by
    return row


def find(
    facts: FactColumns,
    slots: Slots,
    as_of: Moment | None,
    valid_at: int | None,
    include: str,
    limit: int | None,
) -> list[Unit]:
    """The units with these slots, in the order of their valid times.

    Raises:
        InvalidInput: an argument has no meaning.
    """
    if include not in _INCLUDED:
        raise InvalidInput(f"include={include!r}: choose one of {', '.join(_INCLUDED)}")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise InvalidInput(f"limit={limit!r}: give a whole number from 0, or None")
    statuses = _INCLUDED["history" if include == "active" and valid_at is not None else include]
    found = []
    for row in _candidates(facts, slots):
        change = int(facts.units["change"][row])
        if as_of is not None:
            change = facts.change_at(row, as_of.limit, as_of.column)
        if change < 0 or facts.changes["status"][change] not in statuses:
            continue
        start, end = int(facts.changes["valid_from"][change]), int(facts.changes["valid_to"][change])
        if valid_at is None or start <= valid_at < end:
            found.append((start, row, change))
    found.sort()
    kept = found if limit is None else found[max(len(found) - limit, 0) :]
    return [unit(facts, row, change) for _, row, change in kept]


def _candidates(facts: FactColumns, slots: Slots) -> Iterator[int]:
    """Units that hold the names in their slots; looked for in the shortest of the lists."""
    codes: dict[str, int] = {}
    for slot, name in zip(_SLOTS, slots, strict=True):
        if name is not None:
            if not isinstance(name, str):
                raise InvalidInput(f"{slot}={name!r} is a {type(name).__name__}; give a name")
            code = facts.names.find(name)
            if code is None:
                return
            codes[slot] = code
    if not codes:
        yield from np.flatnonzero(facts.units["status"] != FORGOTTEN).tolist()
        return
    lists: list[npt.NDArray[np.int32]] = []
    if "subject" in codes and "relation" in codes:
        lists.append(facts.rival_units(codes["subject"], codes["relation"]))
    else:
        shortest = min(codes, key=lambda slot: facts.index.slots[slot].count(codes[slot]))
        lists.append(np.unique(facts.units_of(shortest, codes[shortest])))
    for row in lists[0].tolist():
        fits = all(
            code in facts.contexts[row] if slot == "context" else facts.units[slot][row] == code
            for slot, code in codes.items()
        )
        if fits:
            yield row


def why(state: State, view: View, row: int, depth: int) -> Why:
    """Why the unit in `row` is what it is, down to the turns. Nothing is shown twice."""
    facts = state.facts
    seen: set[int] = set()

    def shown(row: int, depth: int) -> Why:
        new = row not in seen and depth > 0
        seen.add(row)
        found = unit(facts, row)
        turns: list[Turn] = []
        for source in found.sources:
            turn = reading.turn(view, source)
            if turn is not None:
                turns.append(turn)
        because = [
            tuple(shown(one, depth - 1) for one in needed if facts.units["status"][one] != FORGOTTEN)
            for needed in (found.supports if new else ())
        ]
        return Why(unit=found, turns=tuple(turns), because=tuple(because))

    return shown(row, depth)
