"""Search for facts: from ranked units to evidence; and what facts say for and against turns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.facts import FactColumns
from hmem_core.facts import rendering
from hmem_core.journal.entries import ACTIVE, PENDING, SUPERSEDED
from hmem_core.messages import clean
from hmem_core.options import FactOptions, ReadingOptions
from hmem_core.records import Evidence, Unit
from hmem_core.retrieval import filters, selection
from hmem_core.retrieval.facts import Question, Ranked, rank
from hmem_core.retrieval.request import Request
from hmem_core.retrieval.told import Lent
from hmem_core.retrieval.understanding import kind
from hmem_core.retrieval.units import moment
from hmem_core.retrieval.units import unit as record
from hmem_core.state import State, View
from hmem_core.times import datetime_of, interval, micros

__all__ = ["NO_TURN", "FactReader", "facts_for", "lent_to", "search_facts"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
Mask = npt.NDArray[np.uint8]

NO_TURN = (-1, -1)
"""The span of a fact that no turn tells."""

_RIVALS = 4
"""Facts that contradict one and are shown with it."""
_LENDING = 64
"""Facts that speak for or against turns, the best."""
_FITS = 0.5
"""A fact whose slots match less says nothing of its turns."""


class FactReader(NamedTuple):
    """What a search needs of a memory's facts."""

    reading: Callable[[], AbstractContextManager[State]]
    """The state, held still."""
    options: FactOptions
    clock: Callable[[], int]


# -- searching ---------------------------------------------------------------------------------------


def _question(
    request: Request, vector: FloatArray, reader: FactReader, tz: dt.tzinfo, past: bool | None
) -> Question:
    as_of = moment(request.as_of, tz)
    now = reader.clock()
    if request.now is not None:
        now = micros(request.now, tz, "now")
    elif as_of is not None and as_of.column == "recorded":
        now = as_of.limit
    return Question(
        text=clean(request.query),
        vector=vector,
        now=now,
        between=None if request.between is None else interval(request.between, tz),
        as_of=as_of,
        past=past,
    )


def search_facts(
    request: Request, vector: FloatArray, reader: FactReader, tz: dt.tzinfo, options: ReadingOptions
) -> list[Evidence]:
    """The facts most worth reading for a request, best first; ``request.k`` units at most.

    ``between`` is about the time at which a fact is true; ``where`` about the turns that tell it.
    """
    question = _question(request, vector, reader, tz, options.past)
    with reader.reading() as state:
        view = state.view()
        allowed = None if request.where is None else filters.mask(view, tz, where=request.where)
        found = facts_for(state, view, question, request, allowed, reader.options, tz)
    if request.k == "auto":
        return found[: selection.enough([one.score for one in found], options.enough, kind(question.text))]
    return found


def lent_to(
    request: Request, vector: FloatArray, reader: FactReader, tz: dt.tzinfo, options: ReadingOptions
) -> Lent | None:
    """What facts say for turns; None where there are no facts."""
    with reader.reading() as state:
        if not len(state.facts):
            return None
        question = _question(request, vector, reader, tz, options.past)
        return _lent(state, len(state.turns), question._replace(between=None), reader.options)


# -- facts as evidence -------------------------------------------------------------------------------


def facts_for(
    state: State,
    view: View,
    question: Question,
    request: Request,
    allowed: Mask | None,
    options: FactOptions,
    tz: dt.tzinfo,
) -> list[Evidence]:
    """Evidence of ``request.k`` facts at most, the best first.

    Args:
        allowed: turns of which a fact needs one as its source; None for any fact.
    """
    if not len(state.facts):
        return []
    ranked = rank(state.facts, question, state.analyzer, options)
    shown = _Shown(state.facts, view, question, ranked, allowed, options, tz)
    made: list[Evidence] = []
    room = selection.REACH if request.k == "auto" else request.k
    for place, units in shown.groups():
        if len(units) <= room:
            room -= len(units)
            made.append(shown.evidence(place, units, request.explain))
        if not room:
            break
    return made


class _Shown:
    """Ranked units on their way to evidence."""

    def __init__(
        self,
        facts: FactColumns,
        view: View,
        question: Question,
        ranked: Ranked,
        allowed: Mask | None,
        options: FactOptions,
        tz: dt.tzinfo,
    ) -> None:
        self._facts = facts
        self._at = view.narrow["at"]
        self._ranked = ranked
        self._past = ranked.asked.past or question.between is not None
        self._allowed = allowed
        self._depth = options.depth
        self._tz = tz
        self._now = datetime_of(question.now)
        self._change = dict(zip(ranked.units.tolist(), ranked.changes.tolist(), strict=True))
        self._status = dict(zip(self._change, facts.changes["status"][ranked.changes].tolist(), strict=True))
        by = facts.changes["by"][ranked.changes].tolist()
        self._by = dict(zip(self._change, by, strict=True))
        self._against: dict[int, list[int]] = {}
        for unit, status in self._status.items():
            holder = self._holder(unit)
            if status == PENDING and self._status.get(holder) == ACTIVE:
                self._against.setdefault(holder, []).append(unit)

    def _holder(self, unit: int) -> int:
        """The unit that a pending one contradicts, or that has taken the place of that since."""
        seen = {unit}
        unit = self._by[unit]
        while self._status.get(unit) == SUPERSEDED and self._by[unit] not in seen:
            seen.add(unit)
            unit = self._by[unit]
        return unit

    def groups(self) -> Iterator[tuple[int, list[int]]]:
        """Places in the ranking, and the units that are shown together at each."""
        shown: set[int] = set()
        for place, unit in enumerate(self._ranked.units.tolist()):
            units = self._group(unit)
            if units and units[0] not in shown and self._may_show(units):
                shown.update(units)
                yield place, units

    def _group(self, unit: int) -> list[int]:
        status = self._status[unit]
        if status == PENDING and self._status.get(self._holder(unit)) == ACTIVE:
            unit = self._holder(unit)
        elif status not in (ACTIVE, PENDING) and not self._past:
            return []
        if against := self._against.get(unit):
            return [unit, *against[:_RIVALS]]
        return [unit, *self._supports(unit)] if self._ranked.asked.why else [unit]

    def _supports(self, unit: int) -> list[int]:
        """What a unit rests on, and what that rests on, as far as a path is long: of each the first
        justification that holds."""
        path: list[int] = []
        level = [unit]
        for _ in range(self._depth):
            level = [one for lower in level for one in self._rests_on(lower) if one not in (unit, *path)]
            path += dict.fromkeys(level)
        return path

    def _rests_on(self, unit: int) -> list[int]:
        status = self._facts.units["status"]
        justifications = [needed.tolist() for needed in self._facts.justifications(unit)]
        holding = [needed for needed in justifications if all(status[one] == ACTIVE for one in needed)]
        return next(iter(holding or justifications), [])

    def _may_show(self, units: list[int]) -> bool:
        """Whether one of their turns passes the filters."""
        if self._allowed is None:
            return True
        return any(
            0 <= turn < self._allowed.size and self._allowed[turn]
            for unit in units
            for telling in self._facts.index.tellings[unit].tolist()
            for turn in self._facts.sources[telling].tolist()
        )

    # -- records ---------------------------------------------------------------------------------

    def _record(self, unit: int) -> Unit:
        return record(self._facts, unit, self._change.get(unit))

    def evidence(self, place: int, numbers: list[int], explain: bool) -> Evidence:
        units = [self._record(number) for number in numbers]
        first = units[0]
        turns = sorted({turn for one in units for turn in one.sources if turn < self._at.size})
        times = {turn: datetime_of(self._at[turn]) for turn in turns}
        told = min((times[turn] for turn in first.sources if turn in times), default=first.recorded)
        ranked = self._ranked
        return Evidence(
            kind="fact",
            text=self._text(units, times),
            score=float(ranked.scores[place]),
            span=(turns[0], turns[-1]) if turns else NO_TURN,
            turns=tuple(turns),
            facts=tuple(units),
            at=first.valid_from or told,
            role="fact",
            signals={name: float(part[place]) for name, part in ranked.parts.items()} if explain else None,
        )

    def _text(self, units: list[Unit], times: dict[int, dt.datetime]) -> str:
        first, *others = units
        if others and others[0].id in self._against.get(first.id, ()):
            return rendering.conflict(first, others, self._tz, times)
        return rendering.chain(
            [rendering.sentence(one, self._tz, self._now, self._after(one)) for one in units]
        )

    def _after(self, unit: Unit) -> str | None:
        """What took the place of a unit."""
        if unit.by is None:
            return None
        return self._facts.names[int(self._facts.units["object"][unit.by])]


# -- facts for turns ---------------------------------------------------------------------------------


def _lent(state: State, rows: int, question: Question, options: FactOptions) -> Lent:
    """What the facts that match a question say of the turns that tell them.

    A fact that holds speaks for its turns with as much as its slots match beyond `_FITS`, and one that holds
    no longer against them, unless the question asks for what was. A turn that has one of each is spoken for.
    """
    ranked = rank(state.facts, question, state.analyzer, options)
    fits = (ranked.attributes - _FITS) / (1 - _FITS)
    values: dict[int, float] = {}
    status = state.facts.changes["status"][ranked.changes]
    holds = ranked.parts["validity"] > 0
    for place in np.flatnonzero(fits > 0)[:_LENDING].tolist():
        if status[place] == PENDING:
            continue  # nobody knows
        value = float(fits[place]) if holds[place] else -float(fits[place])
        for turn in record(state.facts, int(ranked.units[place]), int(ranked.changes[place])).sources:
            if turn < rows:
                before = values.get(turn, 0.0)
                values[turn] = max(before, value) if max(before, value) > 0 else min(before, value)
    return Lent(np.array(list(values), np.int32), np.array(list(values.values()), np.float32))
