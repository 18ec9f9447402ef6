"""Planning a rewrite of the fact graph: from a new assertion to a journal entry that holds every decision.

Intra-unit: the assertion is matched with the units of its subject, relation and contexts; what is the same is
told again, the others are put in the order of time (`timeline`). Inter-unit: what rests on a unit that fell
falls, unless something else supports it, and what rests on one that rose rises (§4.4 of HiGram, arXiv
2608.05095, made a fixed point over all dependents).

A plan is made on the columns themselves, which its caller puts back (`FactColumns.begin`): so that each fact
of a batch is planned on what those before it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from hmem_core.columns.facts import FactColumns
from hmem_core.facts.cascading import spread
from hmem_core.facts.localisation import Region, Temporary, localise
from hmem_core.facts.matching import Named
from hmem_core.facts.timeline import Placed, Rival, place
from hmem_core.journal.entries import (
    ACTIVE,
    FORGOTTEN,
    OPEN_END,
    OPEN_START,
    OUTDATED,
    PENDING,
    RETRACTED,
    SUPERSEDED,
    FactName,
    FactsRewritten,
    Telling,
    UnitAdded,
    UnitChange,
)
from hmem_core.options import FactOptions
from hmem_core.records import POLICIES, REASONS

__all__ = ["MANY_FOUND", "Draft", "Planner", "Unpack", "noisy_or"]

Unpack: TypeAlias = Callable[[bytes], npt.NDArray[np.float32]]

_MANY = [place for place, policy in enumerate(POLICIES) if policy == "many"]
MANY_FOUND = len(POLICIES) - 1
"""The policy of a relation of which several values were told as true at once."""

_REASON = {reason: place for place, reason in enumerate(REASONS)}
_STANDING = (ACTIVE, SUPERSEDED, PENDING, OUTDATED)
_RANK = {ACTIVE: 0, OUTDATED: 1, PENDING: 2, SUPERSEDED: 3, RETRACTED: 4}


class Draft(NamedTuple):
    """An assertion, checked, its names by their codes and its times in microseconds."""

    subject: int
    relation: int
    object: int
    category: int
    contexts: tuple[int, ...]
    valid_from: int
    valid_to: int
    confidence: float
    because: tuple[int, ...]
    sources: tuple[int, ...]


class _Now(NamedTuple):
    """A unit as the plan has it."""

    status: int
    valid_from: int
    valid_to: int
    confidence: float
    by: int


def noisy_or(confidences: Sequence[float], cap: float) -> float:
    """The confidence of a unit that several tellings stand for: that not all of them are wrong, if each is
    right with its own probability and independently of the others; not above `cap`, unless one is."""
    wrong = 1.0
    for confidence in confidences:
        wrong *= 1.0 - confidence
    return max(*confidences, min(cap, 1.0 - wrong)) if len(confidences) > 1 else confidences[0]


class Planner:
    """One rewrite that is being planned.

    Args:
        facts: changed while planning; the caller has called `begin`, and takes everything back.
        seq, recorded: of the entry.
        unpack: makes a vector of the bytes in an entry.
    """

    def __init__(
        self, facts: FactColumns, seq: int, recorded: int, options: FactOptions, unpack: Unpack
    ) -> None:
        self.facts = facts
        self.options = options
        self.region: Region | None = None
        """What the rewrite is bound to; None for no bounds."""
        self.located: Region | None = None
        self.told = -1
        """The unit that was told."""
        self._seq = seq
        self._unpack = unpack
        self._entry = FactsRewritten(recorded=recorded)
        self._weakened: set[int] = set()  # units some telling of which counts no longer
        self._retold: set[int] = (
            set()
        )  # units whose tellings have changed: each gets a change, if only to date it
        self._before: dict[int, _Now] = {}
        self._why: dict[int, str] = {}

    # -- telling -------------------------------------------------------------------------------------

    def tell(
        self,
        draft: Draft,
        names: Sequence[FactName] = (),
        *,
        many: bool = False,
        key: str | None = None,
        part: int = 0,
        explain: bool = False,
    ) -> FactsRewritten | None:
        """The rewrite that an assertion makes; None if the same turns told the same already.

        Args:
            names: those of the draft's codes that are new.
            many: the relation has several values at a time, as the draft's fellows show.
            explain: fill `located`, even where the rewrite is not bound to it.
        """
        self._locate(draft, names, explain)
        group = self._rivals(draft.subject, draft.relation, draft.contexts, [*_STANDING, RETRACTED])
        match = self._match(draft, group)
        unit = self.told = len(self.facts) if match is None else match
        if match is not None and self._repeats(match, draft):
            return None
        added = UnitAdded(unit, draft.subject, draft.relation, draft.object, draft.category, draft.contexts)
        telling = Telling(
            len(self.facts.tellings),
            unit,
            draft.confidence,
            draft.valid_from,
            draft.valid_to,
            draft.sources,
            draft.because,
        )
        self._begin(
            names=tuple(names),
            policies=((draft.relation, MANY_FOUND),) if many else (),
            units=(added,) if match is None else (),
            tellings=(telling,),
            key=key,
            part=part,
        )
        self._refresh(unit, "told" if match is None else "told again")
        if self.options.strategy == "append-only":
            self._change(unit, "told", status=ACTIVE)
        elif self.options.strategy == "relation-level":
            self._replace(unit, draft)
        else:
            self._arrange(unit)
        return self._finish()

    def _locate(self, draft: Draft, names: Sequence[FactName], explain: bool) -> None:
        bounded = self.options.cascade == "path" and self.options.strategy == "coordinated"
        if not bounded and not explain:
            return
        new = {name.code: self._unpack(name.vector) for name in names}
        vectors = self.facts.names.vectors

        def named(code: int) -> Named | None:
            return None if code < 0 else Named(code, new[code] if code in new else vectors[code])

        contexts = tuple(name for code in draft.contexts if (name := named(code)) is not None)
        subject, relation, object, category = map(named, draft[:4])
        wanted = Temporary(subject, relation, object, category, contexts)
        now = self._entry.recorded if draft.valid_from == OPEN_START else draft.valid_from
        self.located = localise(self.facts, [wanted], now, self.options)
        self.region = self.located if bounded else None

    def _rivals(
        self, subject: int, relation: int, contexts: Iterable[int], statuses: Sequence[int] = _STANDING
    ) -> list[int]:
        """The units of a subject, a relation and just these contexts that some telling stands for."""
        facts = self.facts
        units = facts.rival_units(subject, relation)
        units = units[np.isin(facts.units["status"][units], statuses)]
        wanted = set(contexts)
        return [unit for unit in units.tolist() if set(facts.contexts[unit].tolist()) == wanted]

    def _match(self, draft: Draft, group: Sequence[int]) -> int | None:
        """The unit that says the same, of which the draft is one more telling."""
        if self.options.strategy == "append-only":
            return None
        held, status = self.facts.units["object"], self.facts.units["status"]
        others = [unit for unit in group if held[unit] != draft.object and status[unit] != RETRACTED]
        fits = [unit for unit in group if held[unit] == draft.object and self._same_time(unit, draft, others)]
        return min(
            fits, key=lambda unit: (*self._apart(unit, draft), _RANK[int(status[unit])], -unit), default=None
        )

    def _apart(self, unit: int, draft: Draft) -> tuple[int, int]:
        """How far a draft is from a unit that says the same: told of the same start, within its time, or
        before it. An earlier unit must not be passed over, or both would come to begin at once."""
        start = int(self.facts.units["valid_from"][unit])
        if draft.valid_from == OPEN_START or start == draft.valid_from:
            return 0, 0
        return (2, start) if start > draft.valid_from else (1, 0)

    def _same_time(self, unit: int, draft: Draft, others: Sequence[int]) -> bool:
        """Whether the draft, of the same value, can speak of the same stretch of time as a unit."""
        columns = self.facts.units
        start, end = int(columns["valid_from"][unit]), int(columns["valid_to"][unit])
        status = int(columns["status"][unit])
        if draft.valid_from == OPEN_START or status == RETRACTED:
            return True
        if status == PENDING and start != OPEN_START:
            return draft.valid_from == start  # a later start would make it newer than what it contradicts
        if start == OPEN_START:
            return status != SUPERSEDED or draft.valid_from < end
        if draft.valid_from >= start:
            return draft.valid_from == start or draft.valid_from < end
        begun = columns["valid_from"][np.array(others, np.int64)]
        apart = bool(np.any((begun > draft.valid_from) & (begun < start)))
        return not apart and draft.valid_to >= start

    def _repeats(self, unit: int, draft: Draft) -> bool:
        """Whether the same turns told the same of a unit, with the same certainty and reasons."""
        facts = self.facts
        said = (draft.confidence, draft.valid_from, draft.valid_to)
        columns = [facts.tellings[name] for name in ("confidence", "valid_from", "valid_to")]
        return bool(draft.sources) and any(
            set(facts.sources[telling].tolist()) == set(draft.sources)
            and set(facts.because[telling].tolist()) == set(draft.because)
            and tuple(column[telling] for column in columns) == said
            for telling in self._tellings(unit)
        )

    def _replace(self, unit: int, draft: Draft) -> None:
        """The baseline: supersede whatever else has the subject and the relation."""
        units = self.facts.units
        self._change(unit, "told", status=ACTIVE, by=-1)
        start = OPEN_END if draft.valid_from == OPEN_START else draft.valid_from
        for other in self.facts.rival_units(draft.subject, draft.relation).tolist():
            if other != unit and units["status"][other] in (ACTIVE, PENDING, OUTDATED):
                end = min(int(units["valid_to"][other]), start)
                self._change(other, "superseded", status=SUPERSEDED, valid_to=end, by=unit)

    # -- taking back ---------------------------------------------------------------------------------

    def turn(
        self,
        withdrawn: Iterable[int],
        revived: Iterable[int],
        why: str,
        *,
        undoes: int = 0,
        reason: str | None = None,
    ) -> FactsRewritten:
        """The rewrite after which some tellings count no longer, and others again."""
        self._begin(withdrawn=tuple(withdrawn), revived=tuple(revived), undoes=undoes, reason=reason)
        of = self.facts.tellings["unit"]
        self._weakened = {int(of[telling]) for telling in self._entry.withdrawn}
        touched = self._weakened | {int(of[telling]) for telling in self._entry.revived}
        self.settle(sorted(touched - {-1}), why)
        return self._finish()

    def decide(self, names: Sequence[FactName], relation: int, policy: int) -> FactsRewritten:
        """The rewrite after which a relation has one value at a time, or several."""
        self._begin(names=tuple(names), policies=((relation, policy),))
        self._arrange_all(self.facts.units_of("relation", relation).tolist())
        return self._finish()

    def alias(self, names: Sequence[FactName], code: int, other: int) -> FactsRewritten:
        """The rewrite after which one name stands for another."""
        self._begin(names=tuple(names), aliases=((code, other),))
        slots = ("subject", "relation", "object", "context")
        self._arrange_all(np.concatenate([self.facts.units_of(slot, other) for slot in slots]).tolist())
        return self._finish()

    def settle(self, units: Iterable[int], why: str) -> None:
        """Bring units up to date with the tellings that count, and put them among their rivals."""
        touched = list(units)
        for unit in touched:
            self._refresh(unit, why)
        self._arrange_all(touched)

    def _arrange_all(self, units: Iterable[int]) -> None:
        seen: set[tuple[int, int, frozenset[int]]] = set()
        for unit in units:
            slots = self.facts.units["subject"][unit], self.facts.units["relation"][unit]
            group = (int(slots[0]), int(slots[1]), frozenset(self.facts.contexts[unit].tolist()))
            if group not in seen:
                seen.add(group)
                self._arrange(unit)

    def lose(self, units: Iterable[int], tellings: Iterable[int]) -> tuple[UnitChange, ...]:
        """What becomes of the other units once these, and these tellings of others, are forgotten."""
        of, lost = self.facts.tellings["unit"], set(units)
        touched = set()
        for telling in tellings:
            self.facts.tellings.set(telling, live=0)
            touched.add(int(of[telling]))
        rivals: list[int] = []
        for unit in sorted(lost):
            slots = self.facts.units["subject"][unit], self.facts.units["relation"][unit]
            rivals += self.facts.rival_units(*map(int, slots)).tolist()
            self._change(unit, "a source was forgotten", status=FORGOTTEN)
        self._weakened = touched - lost
        self.settle(sorted(self._weakened), "a source was forgotten")
        self._arrange_all(sorted(set(rivals) - lost))
        return tuple(
            msgspec.structs.replace(change, by=-1) if change.by in lost else change
            for change in self.changes()
            if change.unit not in lost
        )

    # -- units and their rivals ----------------------------------------------------------------------

    def _change(self, unit: int, why: str, **values: int | float) -> None:
        self._before.setdefault(unit, self._now(unit))
        self._why.setdefault(unit, why)
        self.facts.units.set(unit, **values)

    def _now(self, unit: int) -> _Now:
        return self._all_now([unit])[0]

    def _all_now(self, units: Sequence[int]) -> list[_Now]:
        rows = np.array(units, np.int64)
        columns = [self.facts.units[name][rows].tolist() for name in _Now._fields]
        return [_Now._make(values) for values in zip(*columns, strict=True)]

    def _tellings(self, unit: int) -> list[int]:
        """Those that count."""
        live = self.facts.tellings["live"]
        return [telling for telling in self.facts.index.tellings[unit].tolist() if live[telling]]

    def _refresh(self, unit: int, why: str) -> None:
        """Interval, confidence and standing of a unit as its tellings have them."""
        self._retold.add(unit)
        told = self._tellings(unit)
        if not told:
            self._change(unit, why, status=RETRACTED, by=-1)
            return
        start, end = self._said(told)
        weights = self.facts.tellings["confidence"][told].tolist()
        status = int(self.facts.units["status"][unit])
        self._change(
            unit,
            why,
            status=OUTDATED if status in (FORGOTTEN, RETRACTED) else status,
            valid_from=start,
            valid_to=end,
            confidence=noisy_or(weights, self.options.cap),
        )

    def _said(self, tellings: Sequence[int]) -> tuple[int, int]:
        """The interval that tellings of one unit give it: the earliest start, and the end that was told last
        by one that does not speak of a later part only."""
        start, end = OPEN_START, OPEN_END
        columns = self.facts.tellings["valid_from"], self.facts.tellings["valid_to"]
        for telling in tellings:
            begun, until = int(columns[0][telling]), int(columns[1][telling])
            if begun == OPEN_START or start == OPEN_START or begun <= start:
                start = start if begun == OPEN_START else begun
                end = end if until == OPEN_END else until
        return start, end

    def _arrange(self, unit: int) -> None:
        """Put a unit and its rivals in the order of time."""
        facts = self.facts
        if self.options.strategy != "coordinated":
            return
        relation = int(facts.units["relation"][unit])
        group = self._rivals(int(facts.units["subject"][unit]), relation, facts.contexts[unit].tolist())
        if facts.names.narrow["policy"][relation] in _MANY:
            placed = {one: Placed(ACTIVE, self._said(self._tellings(one))[1], -1) for one in group}
        else:
            placed = place(self._rival(one) for one in group)
        for one, what in placed.items():
            now = self._now(one)
            status, by = what.status, what.by
            if status == ACTIVE:  # whether it has support is found out in the end
                status = now.status if now.status in (ACTIVE, OUTDATED) else OUTDATED
                by = now.by if now.status == OUTDATED else -1
            if (status, what.end, by) != (now.status, now.valid_to, now.by):
                freed = now.status in (PENDING, SUPERSEDED) and what.status == ACTIVE
                why = {PENDING: "contradicts, and is not newer", SUPERSEDED: "superseded"}.get(
                    status, "no longer contradicted" if freed else "valid time was corrected"
                )
                self._change(one, why, status=status, valid_to=what.end, by=by)

    def _rival(self, unit: int) -> Rival:
        columns = self.facts.units
        status = int(columns["status"][unit])
        if status in (ACTIVE, OUTDATED):
            status = ACTIVE if self.facts.supported(unit) else OUTDATED
        end = self._said(self._tellings(unit))[1]
        value, start = int(columns["object"][unit]), int(columns["valid_from"][unit])
        return Rival(unit, value, start, end, status, int(columns["by"][unit]))

    # -- the entry -----------------------------------------------------------------------------------

    def _begin(self, **parts: Any) -> None:
        """Put the first half of the entry into the columns."""
        self._entry = msgspec.structs.replace(self._entry, **parts)
        self.facts.begin_rewrite(self._seq, self._entry, self._unpack)

    def _finish(self) -> FactsRewritten:
        """Let fall and rise what must, and put the second half into the columns."""
        self._entry = msgspec.structs.replace(self._entry, changes=self.changes())
        self.facts.end_rewrite(self._seq, self._entry)
        return self._entry

    def changes(self) -> tuple[UnitChange, ...]:
        """What becomes of the units that were touched, and of what rests on them."""
        if self.options.strategy == "coordinated":
            self._cascade()
        made = []
        nows = self._all_now(list(self._before))
        for (unit, before), now in zip(self._before.items(), nows, strict=True):
            if now != before or unit in self._retold:
                why = _REASON[self._reason(unit, now, before)]
                made.append(UnitChange(unit, *now[:4], why, now.by))
        return tuple(made)

    def _reason(self, unit: int, now: _Now, before: _Now) -> str:
        why = self._why[unit]
        if unit != self.told:
            return why
        timeless = self.facts.tellings["valid_from"][self._tellings(unit)[-1]] == OPEN_START
        if now.status == PENDING or (now.status == SUPERSEDED and timeless):
            return "contradicts, and is not newer"
        if now.status == SUPERSEDED and before.status == FORGOTTEN:
            return "valid before another"
        return why

    def _cascade(self) -> None:
        """Find out which of the units that nothing blocks have support."""
        units, status = self.facts.units, self.facts.units["status"]
        was = {unit: before.status == ACTIVE for unit, before in self._before.items()}
        for unit, active in was.items():
            if status[unit] in (ACTIVE, OUTDATED):
                keeps = active and unit not in self._weakened
                stands = keeps or any(not needed.size for needed in self.facts.justifications(unit))
                units.set(unit, status=ACTIVE if stands else OUTDATED)
        fallen = [unit for unit, active in was.items() if active and status[unit] != ACTIVE]
        risen = [unit for unit, active in was.items() if not active and status[unit] == ACTIVE]
        looked = [unit for unit in was if status[unit] == OUTDATED]
        reach = None if self.region is None else self.region.units
        moved = spread(self.facts, fallen, risen, looked, reach)
        others = [unit for unit in moved.units.tolist() if unit not in was]
        self._before.update(zip(others, self._all_now(others), strict=True))
        units.set(moved.units, status=moved.after, by=np.where(moved.after == OUTDATED, moved.cause, -1))
        for unit in others:
            self._why[unit] = "its support fell" if status[unit] == OUTDATED else "its support was restored"
        for unit in was:
            if status[unit] == ACTIVE:
                units.set(unit, by=-1)
            elif status[unit] == OUTDATED and units["by"][unit] < 0:
                units.set(unit, by=self._lacking(unit))

    def _lacking(self, unit: int) -> int:
        """A unit that is missing for the support of another."""
        status = self.facts.units["status"]
        for needed in self.facts.justifications(unit):
            for one in needed[status[needed] != ACTIVE].tolist():
                return int(one)
        return -1
