"""Events with a language model: what turns speak of, where they belong, what events tell (HiGMem, arXiv
2604.18349).

What is due is found in the state, and what a model said of it is stored at once, question by question. So
work can stop anywhere, and goes on from there: after a failure, a budget's end, a kill.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hmem_core.effects import Embed, Program, gather
from hmem_core.errors import LLMError
from hmem_core.events import due
from hmem_core.events.affiliation import Decisions, affiliate, clear, nearest
from hmem_core.events.analysis import Analysed, analyse
from hmem_core.events.nearness import nearness
from hmem_core.events.stories import offer, story
from hmem_core.events.updating import Described, describe
from hmem_core.journal.entries import Entry, EventDescribed, TimelineItem, TurnAnalysed, TurnsLinked
from hmem_core.llm.prompts import event_affiliation
from hmem_core.llm.prompts.rendering import ShownTurn
from hmem_core.options import EventOptions
from hmem_core.records import event_index_text
from hmem_core.retrieval.showing import shown
from hmem_core.state import State, View, pack_vector
from hmem_core.store import Plan, Store

__all__ = ["catch_up", "settle", "waiting"]

ROUND = 64
"""Turns, and events, that one round takes up."""

T = TypeVar("T")

FloatArray = npt.NDArray[np.float32]

_log = logging.getLogger("hmem.llm")


class _Due(NamedTuple):
    """What waits for the model, ascending."""

    unanalysed: list[int]
    unlinked: list[int]
    stale: list[int]

    @property
    def turns(self) -> list[int]:
        return sorted({*self.unanalysed, *self.unlinked})


def _due(store: Store, options: EventOptions) -> _Due:
    with store.reading() as state:
        view, told = state.view(), due.told(state)
    return _Due(
        due.unanalysed(view).tolist() if options.describe else [],
        due.unlinked(view).tolist() if options.affiliation == "model" else [],
        due.stale(view, told).tolist() if options.describe else [],
    )


def waiting(store: Store, options: EventOptions) -> int:
    """How many turns and events wait for the model."""
    found = _due(store, options)
    return len(found.turns) + len(found.stale)


def catch_up(store: Store, options: EventOptions) -> Program[int]:
    """Do what is due, one round of it, if it fills a question; returns how much was done. A model that fails
    costs nothing but that: what it did not do stays due."""
    least = 1 if options.faithful else options.batch
    if not _enough(store, options, least):
        return 0
    try:
        return (yield from _round(store, options, least))
    except LLMError as error:
        _log.warning("turns stay without events for now: %s", error)
        return 0


def _enough(store: Store, options: EventOptions, least: int) -> bool:
    """Whether there is work worth a question, as far as that can be told without looking at all turns."""
    with store.reading() as state:
        unlinked = len(state.events.links.unlinked) if options.affiliation == "model" else 0
        live = len(state.turns) - state.turns.forgotten
        unanalysed = live - len(state.events.analyses.rows_of) if options.describe else 0
    return max(unlinked, unanalysed) >= least


def settle(store: Store, options: EventOptions) -> Program[int]:
    """Do all that is due; returns how many turns were analysed and linked and how many events described.

    Raises:
        LLMError: the model failed for all of a round; what it did before is kept.
    """
    total = 0
    while any(before := _due(store, options)):
        done = yield from _round(store, options, 1)
        total += done
        if not done and _due(store, options) == before:  # else others did it
            break
    return total


def _round(store: Store, options: EventOptions, least: int) -> Program[int]:
    """Do a bounded part of what is due, of analyses and links only whole questions of `least` turns.

    Raises:
        LLMError: nothing could be done.
    """
    found = _due(store, options)
    jobs: list[Program[int]]
    if options.faithful:
        jobs = [_in_turn(store, options, found)]
    else:
        turns = found.unanalysed[:ROUND]
        batches = [turns[start : start + options.batch] for start in range(0, len(turns), options.batch)]
        jobs = [_analyse(store, options, batch) for batch in batches if len(batch) >= least]
        if len(found.unlinked) >= least:
            jobs.append(_link(store, options, least))
    done, error = _sum((yield from gather(jobs, return_exceptions=True)))
    if error is None and options.describe:
        events = _due(store, options).stale[:ROUND]
        done, error = _sum([done, *(yield from _describe(store, options, events))])
    if error is not None:
        if not done:
            raise error
        _log.warning("a part of the turns stays without events for now: %s", error)
    return done


def _sum(outcomes: Sequence[int | Exception]) -> tuple[int, LLMError | None]:
    """How much was done, and the first failure of the model. Raises any other."""
    error = None
    for outcome in outcomes:
        if isinstance(outcome, LLMError):
            error = error or outcome
        elif isinstance(outcome, Exception):
            raise outcome
    return sum(outcome for outcome in outcomes if isinstance(outcome, int)), error


def _in_turn(store: Store, options: EventOptions, found: _Due) -> Program[int]:
    """The paper's order: each turn is analysed and linked, and its events are described, before the next."""
    done = 0
    unanalysed, unlinked = set(found.unanalysed), set(found.unlinked)
    for turn in found.turns[:ROUND]:
        if turn in unanalysed:
            done += yield from _analyse(store, options, [turn])
        if turn in unlinked:
            done += yield from _link(store, options, 1)
            if options.describe:
                events = np.unique(store.view().events.links.events_of(turn)).tolist()
                part, error = _sum((yield from _describe(store, options, events)))
                done += part
                if error is not None:
                    _log.warning("an event stays without a description for now: %s", error)
    return done


# -- analysis ----------------------------------------------------------------------------------------


def _analyse(store: Store, options: EventOptions, rows: Sequence[int]) -> Program[int]:
    """Let the model say what these turns speak of, and store it."""
    view = store.view()
    turns, before = _in_sight(view, rows, options.window)
    found = yield from analyse(turns, before, options.window)

    def entry(state: State, one: Analysed) -> Entry | None:
        if one.turn in state.events.analyses.rows_of or not _living(state, (one.turn, *one.read)):
            return None
        return TurnAnalysed(
            recorded=store.clock(),
            turn=one.turn,
            keywords=one.keywords,
            context=one.context,
            tags=one.tags,
            entities=one.entities,
            read=one.read,
        )

    return _keep(store, found, entry)


def _in_sight(view: View, rows: Sequence[int], window: int) -> tuple[list[ShownTurn], list[ShownTurn]]:
    """Turns as prompts show them, those of one session together, and the turns before the first of them."""
    session = view.narrow["session"]
    places = {code: place for place, code in enumerate(dict.fromkeys(int(session[row]) for row in rows))}
    ordered = sorted(rows, key=lambda row: (places[int(session[row])], row))
    before: list[int] = []
    row = int(view.narrow["previous"][ordered[0]]) if ordered else -1
    while row >= 0 and len(before) < window:
        before.append(row)
        row = int(view.narrow["previous"][row])
    show = partial(shown, view)
    return (
        [turn for row in ordered if (turn := show(row)) is not None],
        [turn for row in before[::-1] if (turn := show(row)) is not None],
    )


# -- affiliation -------------------------------------------------------------------------------------


def _link(store: Store, options: EventOptions, least: int) -> Program[int]:
    """Link turns that belong to no event, the earliest first, question after question: where a turn belongs
    may depend on where those before it went. One turn in all in the faithful mode, else up to `ROUND`."""
    done = 0
    batch = 1 if options.faithful else options.batch
    while True:
        with store.reading() as state:
            view = state.view()
            rows = due.unlinked(view)[:batch].astype(np.int32)
            if rows.size < least or not rows.size:
                return done
            near, updated = nearness(state, view, rows), _updated(state)
        given = None
        if not options.faithful:
            given = clear(near.scores, near.likeness, options.sure, options.margin, options.far)
        decided: Decisions
        if given is not None:
            decided = {turn: (event,) for turn, event in zip(rows.tolist(), given, strict=True)}
        else:
            try:
                decided = yield from _judged(view, options, rows.tolist(), near.scores, updated)
            except LLMError as error:
                if not done:
                    raise
                _log.warning("turns stay without events for now: %s", error)
                return done
        done += _store_links(store, decided)
        if options.faithful or done >= ROUND or len(decided) < rows.size:
            return done


def _judged(
    view: View, options: EventOptions, rows: list[int], scores: FloatArray, updated: int | None
) -> Program[Decisions]:
    """The events of these turns, as the model says it."""
    chosen = nearest(scores, options.candidates, event_affiliation.EVENTS, updated)
    turns, before = _in_sight(view, rows, options.window)
    if len(turns) == 1 and not chosen:  # there is nothing to choose
        return {turns[0].id: ("new1",)}
    show = partial(shown, view)
    events = [offer(view, event, show) for event in chosen]
    return (yield from affiliate(turns, events, updated, before, options.window))


def _updated(state: State) -> int | None:
    """The event that got a turn last, of those that have turns left."""
    links = state.events.links
    return next((event for event in links.recent(ROUND) if links.norms()[event] > 0), None)


def _store_links(store: Store, decided: Decisions) -> int:
    """Store the events of turns; new ones get the next numbers, in the order of their first turns."""
    made = 0

    def plan(state: State) -> Plan:
        nonlocal made
        columns = state.events.links
        numbers: dict[str, int] = {}
        links = []
        for turn in sorted(decided):
            if turn not in columns.unlinked:  # forgotten, or linked by another process
                continue
            events = []
            for name in decided[turn]:
                if isinstance(name, str):
                    events.append(numbers.setdefault(name, columns.count + len(numbers)))
                else:
                    events.append(name)
            links.append((turn, tuple(events)))
        made = len(links)
        return Plan([TurnsLinked(recorded=store.clock(), links=tuple(links))] if links else [])

    store.commit(plan)
    return made


# -- descriptions ------------------------------------------------------------------------------------


def _describe(store: Store, options: EventOptions, events: Sequence[int]) -> Program[list[int | Exception]]:
    """Let the model tell what is new in these events, side by side, and store it."""
    view = store.view()
    show = partial(shown, view)
    stories = [story(view, event, options.refresh_below, show) for event in events]
    stories = [one for one in stories if one.unread]
    replies = yield from gather(
        [describe(one, show, options.refresh_below) for one in stories], return_exceptions=True
    )
    good = [reply for reply in replies if isinstance(reply, Described)]
    texts = {one.event: event_index_text(one.keywords, one.tags, one.summary) for one in good if one.summary}
    vectors = (yield Embed(tuple(texts.values()))) if texts else ()
    packed = {event: pack_vector(vector) for event, vector in zip(texts, vectors, strict=True)}
    earlier = {one.event: len(view.events.descriptions_of(one.event)) for one in good}

    def entry(state: State, one: Described) -> Entry | None:
        if len(state.events.descriptions.rows_of.get(one.event, ())) != earlier[one.event]:
            return None  # another process was first
        if not _living(state, (*one.read, *(line.turn for line in one.timeline))):
            return None
        return EventDescribed(
            recorded=store.clock(),
            event=one.event,
            summary=one.summary,
            keywords=one.keywords if one.summary else (),
            tags=one.tags if one.summary else (),
            entities=one.entities if one.summary else (),
            timeline=tuple(TimelineItem(line.turn, line.time, line.fact) for line in one.timeline),
            read=one.read,
            vector=packed.get(one.event),
        )

    done = _keep(store, good, entry)
    return [done, *(reply for reply in replies if isinstance(reply, Exception))]


# -- storing -----------------------------------------------------------------------------------------


def _keep(store: Store, found: Sequence[T], entry: Callable[[State, T], Entry | None]) -> int:
    """Store what was found, but for what no longer fits the state; returns how much that was."""
    kept = 0

    def plan(state: State) -> Plan:
        nonlocal kept
        entries = [made for one in found if (made := entry(state, one)) is not None]
        kept = len(entries)
        return Plan(entries)

    if found:
        store.commit(plan)
    return kept


def _living(state: State, turns: Sequence[int]) -> bool:
    """Whether none of these turns was forgotten: what a model said of one that was must not be stored."""
    live = state.turns.narrow["live"]
    return all(live[turn] for turn in turns)
