"""Facts with a language model: which ones turns tell, and what is meant where two contradict one another
(HiGram, arXiv 2608.05095).

What is due is found in the state: turns that no `TurnsRead` names, and pending units that none compared. What
a model said is told by the rules of every rewrite, and stored at once with the mark that it was read.
"""

from __future__ import annotations

import datetime as dt
import logging
import re
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from hmem_core import factchanges, times
from hmem_core.columns.factnames import fold
from hmem_core.columns.facts import FactColumns
from hmem_core.effects import Program
from hmem_core.errors import LLMError
from hmem_core.factdrafts import Assertion, name, read_facts
from hmem_core.facts.consistency import judge
from hmem_core.facts.extraction import Offer, Reading, extract
from hmem_core.facts.rewrite import MANY_FOUND
from hmem_core.journal.entries import (
    ACTIVE,
    FORGOTTEN,
    OPEN_END,
    OPEN_START,
    PENDING,
    Entry,
    FactsRewritten,
    TurnsRead,
)
from hmem_core.llm.prompts import fact_consistency
from hmem_core.llm.prompts.fact_consistency import Choice, Pair, Side
from hmem_core.llm.prompts.fact_extraction import KnownFact
from hmem_core.llm.prompts.rendering import ShownTurn
from hmem_core.options import FactOptions
from hmem_core.records import FactDraft
from hmem_core.retrieval import units
from hmem_core.retrieval.showing import shown
from hmem_core.settling.dating import interval
from hmem_core.state import State, View
from hmem_core.store import Store

__all__ = ["catch_up", "settle", "waiting"]

ROUND = 4
"""Questions about turns that one `add` waits for, at most: each is offered what those before it found."""
LATEST = 1024
"""So many of the latest turns are looked at after an `add`; what waits before them is for `settle`."""
NGRAM = 4
"""Words of a name that is looked for in a turn, at most."""
WORDS = 2000
"""Words of the turns that are looked up for it, at most."""
HELD = 64
"""Of the units of one name, so many of the latest are considered for being shown."""
REREADS = 3
"""Attempts at turns of which some are forgotten while the model reads."""

_WORDS = re.compile(r"\w+(?:['’.-]\w+)*")
_log = logging.getLogger("hmem.llm")


# -- what is due -------------------------------------------------------------------------------------


def waiting(store: Store, options: FactOptions) -> int:
    """How many turns have not been read, and how many contradictions wait for the model."""
    if not options.extract:
        return 0
    with store.reading() as state:
        return len(_unread(state, options, 0)) + len(_contradictions(state, options))


def _unread(state: State, options: FactOptions, first: int) -> list[int]:
    """Turns from `first` on of which no model has said what facts they tell, ascending."""
    narrow = state.turns.narrow
    codes = [code for role in options.roles if (code := state.roles.find(role)) is not None]
    rows = len(state.turns)
    first = min(first, rows)
    due = (narrow["live"].view()[first:] == 1) & np.isin(narrow["role"].view()[first:], codes)
    due &= ~state.facts.readings.done(first, rows)
    found: list[int] = (first + np.flatnonzero(due)).tolist()
    return found


def _contradictions(state: State, options: FactOptions) -> list[tuple[int, int]]:
    """Pending units that a model told, with those that they contradict, of which it was not asked yet."""
    facts = state.facts
    if not options.consult:
        return []
    pending = np.flatnonzero(facts.units["status"] == PENDING)
    pairs = zip(pending.tolist(), facts.units["by"][pending].tolist(), strict=True)
    due = [pair for pair in pairs if pair[1] >= 0 and not facts.readings.was_compared(*pair)]
    told = set(facts.tellings["unit"][facts.readings.told()].tolist()) if due else set()
    return [pair for pair in due if pair[0] in told]


def _tellings(facts: FactColumns, unit: int) -> list[int]:
    """Those that count."""
    live = facts.tellings["live"]
    return [one for one in facts.index.tellings[unit].tolist() if live[one]]


# -- doing it ----------------------------------------------------------------------------------------


def catch_up(store: Store, options: FactOptions, tz: dt.tzinfo) -> Program[int]:
    """Read the latest turns, a few questions of them, if they fill one, and ask about what contradicts;
    returns how much was done. A model that fails costs nothing but that: what it did not do stays due."""
    if not options.extract:
        return 0
    done = 0
    try:
        for _ in range(ROUND):
            with store.reading() as state:
                turns = _unread(state, options, max(len(state.turns) - LATEST, 0))
            if len(turns) < options.batch:
                break
            done += yield from _read(store, options, tz, turns[: options.batch])
        if done:
            done += yield from _compare(store, options)
    except LLMError as error:
        _log.warning("turns stay unread for facts for now: %s", error)
    return done


def settle(store: Store, options: FactOptions, tz: dt.tzinfo) -> Program[int]:
    """Do all that is due; returns how many turns were read and contradictions compared.

    Raises:
        LLMError: the model failed; what it did before is kept.
    """
    total = stuck = 0
    while options.extract and stuck < REREADS:
        with store.reading() as state:
            turns = _unread(state, options, 0)[: options.batch]
            compare = not turns and bool(_contradictions(state, options))
        if not turns and not compare:
            break
        if turns:
            done = yield from _read(store, options, tz, turns)
        else:
            done = yield from _compare(store, options)
        total += done
        stuck = 0 if done else stuck + 1
    return total


# -- reading turns -----------------------------------------------------------------------------------


def _read(store: Store, options: FactOptions, tz: dt.tzinfo, rows: Sequence[int]) -> Program[int]:
    """Let the model say which facts these turns tell, and tell them; returns how many turns were read."""
    view = store.view()
    turns, before, asides = _in_sight(view, options, rows)
    with store.reading() as state:
        known = _known(state.facts, [turn for turn in turns if turn.id not in asides], options.known)
    readings = yield from extract(turns, before, known, options.window, asides)
    done = 0
    for reading in readings:
        done += yield from _tell(store, options, tz, view, reading)
    return done


def _in_sight(
    view: View, options: FactOptions, rows: Sequence[int]
) -> tuple[list[ShownTurn], list[ShownTurn], frozenset[int]]:
    """Turns as prompts show them, those of one session together; the turns before the first of them; and
    which of the former stand only between others. System prompts are never shown."""
    narrow, show = view.narrow, partial(shown, view)
    roles = {*options.roles, "user", "assistant"}
    session, previous = narrow["session"], narrow["previous"]
    places = {code: place for place, code in enumerate(dict.fromkeys(int(session[row]) for row in rows))}
    ordered = sorted(rows, key=lambda row: (places[int(session[row])], row))

    def between(row: int, last: int, most: int) -> list[int]:
        found: list[int] = []
        row = int(previous[row])
        while row >= 0 and row != last and len(found) < most:
            if narrow["live"][row] and view.roles.text(int(narrow["role"][row])) in roles:
                found.append(row)
            row = int(previous[row])
        return found[::-1]

    chain: list[int] = []
    asides: list[int] = []
    for place, row in enumerate(ordered):
        earlier = ordered[place - 1] if place else -1
        if earlier >= 0 and session[earlier] == session[row]:
            some = between(row, earlier, options.window)
            asides += some
            chain += some
        chain.append(row)
    first = between(ordered[0], -1, options.window) if ordered else []
    turns = [turn for row in chain if (turn := show(row)) is not None]
    before = [turn for row in first if (turn := show(row)) is not None]
    return turns, before, frozenset(asides)


def _known(facts: FactColumns, turns: Sequence[ShownTurn], most: int) -> list[Offer]:
    """Active facts about what the turns name, those first of which they name most, then the latest; found by
    looking up the words of the turns, so that it costs the same in a large memory."""
    hits: dict[int, int] = {}
    for code in _named(facts, turns):
        for slot, weight in (("subject", 2), ("object", 1)):
            held = facts.units_of(slot, code)[-HELD:]
            for unit in held[facts.units["status"][held] == ACTIVE].tolist():
                hits[unit] = hits.get(unit, 0) + weight
    best = sorted(hits, key=lambda unit: (-hits[unit], -unit))[:most]
    return [Offer(unit, _fact(facts, unit)) for unit in sorted(best)]


def _named(facts: FactColumns, turns: Iterable[ShownTurn]) -> list[int]:
    """The codes of names that stand in the turns, or say them."""
    found: dict[int, None] = {}
    tried: set[str] = set()

    def look(text: str) -> None:
        folded = fold(text)
        if folded not in tried:
            tried.add(folded)
            if (code := facts.names.find_folded(folded)) is not None:
                found.setdefault(code)

    for turn in turns:
        look(turn.speaker or "")
        words = _WORDS.findall(turn.text)[: WORDS // max(len(tried), 1) + 200]
        for start in range(len(words)):
            for size in range(1, NGRAM + 1):
                if len(tried) < WORDS * NGRAM:
                    look(" ".join(words[start : start + size]))
    return list(found)


def _fact(facts: FactColumns, row: int) -> KnownFact:
    unit = units.unit(facts, row)
    since = None if unit.valid_from is None else unit.valid_from.date().isoformat()
    return KnownFact(unit.subject, unit.relation, unit.object, unit.category, unit.contexts, since)


def _tell(store: Store, options: FactOptions, tz: dt.tzinfo, view: View, reading: Reading) -> Program[int]:
    """Tell the facts of one reply by the rules, with the mark that its turns were read."""
    facts = _assertions(view, reading, tz)
    done = 0

    def plan(state: State, vectors: dict[str, bytes]) -> Sequence[Entry]:
        nonlocal done
        done = 0
        live, status = state.turns.narrow["live"], state.facts.units["status"]
        known = {unit for fact in reading.facts for unit in fact.units} | {*reading.taken}
        if not all(live[turn] for turn in reading.read) or any(status[unit] == FORGOTTEN for unit in known):
            return []  # what the model said of them must not be stored: they are read again
        if any(state.facts.readings.done(turn, turn + 1)[0] for turn in reading.turns):
            return []  # another process was first
        entries = factchanges.tell(store, state, vectors, facts, options, [], apart=True)
        tellings = tuple(telling.id for entry in entries for telling in entry.tellings)
        done = len(reading.turns)
        mark = TurnsRead(
            recorded=store.clock(),
            turns=reading.turns,
            read=reading.read,
            taken=reading.taken,
            tellings=tellings,
        )
        return [*entries, mark]

    yield from factchanges.commit(store, [text for _, fact in facts for text in fact.names()], plan)
    return done


def _assertions(view: View, reading: Reading, tz: dt.tzinfo) -> list[tuple[FactDraft, Assertion]]:
    """Facts as they are told: checked, their times resolved."""
    drafts: list[FactDraft] = []
    for one in reading.facts:
        start, end = interval(one.since, one.until, _said(view, one.turn), tz)
        drafts.append(
            FactDraft(
                subject=name(one.subject, "subject"),
                relation=name(one.relation, "relation"),
                object=name(one.object, "object"),
                category=one.category,
                context=one.context,
                valid_from=start,
                valid_to=end,
                confidence=one.confidence,
                because=[*(drafts[place] for place in one.facts), *one.units],
                source=one.turn,
            )
        )
    return read_facts(drafts, tz)


def _said(view: View, turn: int) -> int:
    """When a turn was said, so that of turns of the same moment the later one is later."""
    at = view.narrow["at"]
    return int(at[turn]) + int(np.count_nonzero(at[max(turn - LATEST, 0) : turn] == at[turn]))


# -- comparing ---------------------------------------------------------------------------------------


def _compare(store: Store, options: FactOptions) -> Program[int]:
    """Ask what is meant by a few contradictions, and do as the model says; returns how many."""
    view = store.view()
    with store.reading() as state:
        facts = state.facts.units
        slots: dict[tuple[int, int], tuple[int, int]] = {}
        for pair in _contradictions(state, options):  # one of each slot: it may settle the others
            slots.setdefault((int(facts["subject"][pair[0]]), int(facts["relation"][pair[0]])), pair)
        due = list(slots.values())[: fact_consistency.PAIRS]
        pairs = [_pair(state.facts, view, unit, other) for unit, other in due]
    if not pairs:
        return 0
    verdicts = yield from judge(pairs)
    done = 0
    for (unit, other), verdict in zip(due, verdicts, strict=True):
        done += yield from _decide(store, options, view, unit, other, verdict)
    return done


def _pair(facts: FactColumns, view: View, unit: int, other: int) -> Pair:
    show = partial(shown, view)

    def side(row: int) -> Side:
        one = units.unit(facts, row)
        turns = [turn for source in one.sources if (turn := show(source)) is not None]
        return Side(one.object, one.valid_from, turns[-1] if turns else None)

    one = units.unit(facts, unit)
    return Pair(one.subject, one.relation, one.contexts, side(other), side(unit))


def _decide(
    store: Store, options: FactOptions, view: View, unit: int, other: int, verdict: Choice
) -> Program[int]:
    """Store what is meant by one contradiction, if it still is one."""
    done = 0

    def plan(state: State, vectors: dict[str, bytes]) -> Sequence[Entry]:
        nonlocal done
        done = 0
        facts = state.facts
        if facts.units["status"][unit] != PENDING or facts.units["by"][unit] != other:
            return []
        if facts.readings.was_compared(unit, other):
            return []
        live = state.turns.narrow["live"]
        told = [*_tellings(facts, unit), *_tellings(facts, other)]
        rests = {int(turn) for one in told for turn in facts.sources[one] if turn >= 0}
        for reading in facts.readings.of_tellings(told):
            rests.update(facts.readings.read[reading].tolist())
        if not all(live[turn] for turn in rests):
            return []
        done = 1
        planned = _planned(store, options, state, view, unit, other, verdict)
        mark = TurnsRead(
            recorded=store.clock(),
            read=tuple(sorted(rests)),
            taken=(min(unit, other), max(unit, other)),
            tellings=tuple(telling.id for entry in planned for telling in entry.tellings),
            compared=((unit, other),),
        )
        return [*planned, mark]

    yield from factchanges.commit(store, [], plan)
    return done


def _planned(
    store: Store, options: FactOptions, state: State, view: View, unit: int, other: int, verdict: Choice
) -> list[FactsRewritten]:
    """The rewrite that a verdict makes. A replacement is told once more, as true from the time of the turn
    that tells it, which adds nothing to its confidence."""
    facts = state.facts
    relation = int(facts.units["relation"][unit])
    if verdict == "both" and not facts.names.narrow["policy"][relation]:
        return [factchanges.planner(state, store, options).decide((), relation, MANY_FOUND)]
    told = [one for one in _tellings(facts, unit) if facts.readings.of_tellings([one])]
    turns = sorted({int(turn) for one in told for turn in facts.sources[one] if turn >= 0})
    if verdict != "replaces" or not turns:
        return []
    begun = _said(view, turns[0])
    started = facts.units["valid_from"][unit] != OPEN_START or facts.units["valid_to"][unit] != OPEN_END
    if started or begun <= facts.units["valid_from"][other]:
        return []  # told with times of its own, or said before the other one began: it stays pending
    repeated = units.unit(facts, unit)
    draft = FactDraft(
        subject=repeated.subject,
        relation=repeated.relation,
        object=repeated.object,
        category=repeated.category,
        context=repeated.contexts,
        valid_from=times.datetime_of(begun),
        confidence=0.0,
        because=repeated.supports[0] if not repeated.asserted else (),
        source=turns,
    )
    (fact,) = read_facts([draft], dt.UTC)
    return factchanges.tell(store, state, {}, [fact], options, [])
