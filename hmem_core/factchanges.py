"""The changes of the fact graph: planning their journal entries on the state, and writing them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from hmem_core.columns.factforgetting import Gone, gone, unread
from hmem_core.columns.factnames import fold
from hmem_core.columns.facts import FactColumns
from hmem_core.effects import Embed, Program
from hmem_core.errors import InvalidInput, RewriteNotFound, TurnForgotten, TurnNotFound
from hmem_core.factdrafts import Assertion
from hmem_core.facts.rewrite import Draft, Planner
from hmem_core.journal.entries import (
    Entry,
    FactName,
    FactsRewritten,
    TurnsForgotten,
    UnitChange,
    erase,
)
from hmem_core.localised import Localisation
from hmem_core.options import FactOptions
from hmem_core.records import POLICIES, Rewrite
from hmem_core.retrieval import units as reading
from hmem_core.retrieval.locating import localisation
from hmem_core.state import State, pack_vector, unpack_vector
from hmem_core.store import Plan, Store

__all__ = [
    "Done",
    "add_facts",
    "commit",
    "forget_facts",
    "lost",
    "name_alias",
    "planner",
    "retract",
    "set_policy",
    "tell",
    "undo",
]

_BATCH = 512


class _Unready(Exception):
    """Vectors are missing."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts


class _Naming:
    """Codes for names, in entries that are being planned."""

    def __init__(self, facts: FactColumns, vectors: dict[str, bytes]) -> None:
        self._facts = facts
        self._vectors = vectors
        self.new: list[FactName] = []
        self._codes: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        """The code of a name; a new one is entered in `new`."""
        folded = fold(text)
        code = self._facts.names.find_folded(folded)
        if code is None:
            code = self._codes.get(folded)
        if code is None:
            if folded not in self._vectors:
                raise _Unready([text])
            code = self._codes[folded] = len(self._facts.names) + len(self.new)
            self.new.append(FactName(code, text, self._vectors[folded]))
        return code


def _embed(store: Store, texts: Iterable[str], vectors: dict[str, bytes]) -> Program[None]:
    """Make the vectors of the names that are new."""
    with store.reading() as state:
        missing = {
            folded: text
            for text in texts
            if (folded := fold(text)) not in vectors and state.facts.names.find_folded(folded) is None
        }
    folded_texts = list(missing)
    for first in range(0, len(folded_texts), _BATCH):
        some = folded_texts[first : first + _BATCH]
        made = yield Embed(tuple(missing[folded] for folded in some))
        vectors.update({folded: pack_vector(vector) for folded, vector in zip(some, made, strict=True)})


def commit(
    store: Store,
    texts: Sequence[str],
    plan: Callable[[State, dict[str, bytes]], Sequence[Entry]],
) -> Program[int]:
    """Write what `plan` makes of the state, once all names have vectors.

    The plan may change the fact graph: it is put back.
    """
    vectors: dict[str, bytes] = {}
    while True:
        yield from _embed(store, texts, vectors)
        unready: list[str] = []

        def planned(state: State, unready: list[str] = unready) -> Plan:
            unready.clear()
            rollback = state.facts.begin()
            try:
                return Plan(plan(state, vectors))
            except _Unready as error:  # a name that was known has been forgotten meanwhile
                unready += error.texts
                return Plan([])
            finally:
                rollback()

        seq = store.commit(planned)
        if not unready:
            return seq


# -- telling -----------------------------------------------------------------------------------------


class Done(NamedTuple):
    """What became of one fact of a list: its rewrite, or the unit that was known already."""

    seq: int
    unit: int
    new: bool
    explain: Localisation | None = None


def add_facts(
    store: Store,
    facts: Sequence[tuple[Any, Assertion]],
    options: FactOptions,
    key: str | None,
    explain: bool = False,
) -> Program[list[Rewrite]]:
    """Tell facts, one rewrite each, in one append."""
    done: list[Done] = []

    def plan(state: State, vectors: dict[str, bytes]) -> list[FactsRewritten]:
        done.clear()
        return tell(store, state, vectors, facts, options, done, key=key, explain=explain)

    yield from commit(store, [text for _, fact in facts for text in fact.names()], plan)
    with store.reading() as state:
        return [_result(state.facts, one) for one in done]


def tell(
    store: Store,
    state: State,
    vectors: dict[str, bytes],
    facts: Sequence[tuple[Any, Assertion]],
    options: FactOptions,
    done: list[Done],
    *,
    key: str | None = None,
    explain: bool = False,
    apart: bool = False,
) -> list[FactsRewritten]:
    """The rewrites that facts make, each planned on what those before it did. The graph is changed: `commit`
    puts it back.

    Args:
        done: gets what became of each fact.
        apart: only several values that the same turns tell are all meant; else all in the list.
    """
    columns = state.facts
    _check_sources(state, {turn for _, fact in facts for turn in fact.sources})
    known = {} if key is None else columns.keys.get(key, {})
    many = _several([fact for _, fact in facts], apart) if options.strategy == "coordinated" else set()
    told: dict[int, int] = {}
    entries: list[FactsRewritten] = []
    recorded = store.clock()
    for part, (given, fact) in enumerate(facts):
        if part in known:
            done.append(Done(known[part], _told_by(columns, known[part]), False))
        else:
            seq = state.seq + 1 + len(entries)
            planned = Planner(columns, seq, recorded, options, unpack_vector)
            naming = _Naming(columns, vectors)
            draft = _draft(columns, fact, naming, told)
            found = _slot(fact, apart) in many and _unsaid(columns, draft.relation)
            entry = planned.tell(draft, naming.new, many=found, key=key, part=part, explain=explain)
            if entry is not None:
                entries.append(entry)
            unit = planned.told
            located = planned.located if explain else None
            shown = None if located is None else localisation(columns, located)
            done.append(Done(state.seq if entry is None else seq, unit, entry is not None, shown))
        told[id(given)] = done[-1].unit
    return entries


def _result(facts: FactColumns, done: Done) -> Rewrite:
    if done.new or facts.tellings_of(done.seq):
        return reading.rewrite(facts, done.seq, done.explain, new=done.new)
    return Rewrite(seq=done.seq, confirmed=(done.unit,), new=False, explain=done.explain)


def _told_by(facts: FactColumns, seq: int) -> int:
    """The unit that a rewrite told."""
    return int(facts.tellings["unit"][facts.tellings_of(seq)[0]])


def _draft(facts: FactColumns, fact: Assertion, naming: _Naming, told: dict[int, int]) -> Draft:
    because = []
    for one in fact.because:
        if isinstance(one, int):
            because.append(reading.number(facts, one))
        elif id(one) in told:
            because.append(told[id(one)])
        else:
            raise InvalidInput(f"because={one!r} does not stand before it in the list; put it there")
    subject, relation, object = naming(fact.subject), naming(fact.relation), naming(fact.object)
    category = -1 if fact.category is None else naming(fact.category)
    contexts = tuple(dict.fromkeys(naming(context) for context in fact.contexts))
    times = fact.valid_from, fact.valid_to
    return Draft(
        subject, relation, object, category, contexts, *times, fact.confidence, tuple(because), fact.sources
    )


def _check_sources(state: State, turns: Collection[int]) -> None:
    live = state.turns.narrow["live"]
    for turn in sorted(turns):
        if not 0 <= turn < len(live):
            raise TurnNotFound(f"source={turn}: there is no such turn; add the turn first")
        if not live[turn]:
            raise TurnForgotten(f"source={turn}: that turn was forgotten; leave it out")


_Slot = tuple[str, str, frozenset[str], int, int, tuple[int, ...]]


def _slot(fact: Assertion, apart: bool) -> _Slot:
    contexts = frozenset(map(fold, fact.contexts))
    times = fact.valid_from, fact.valid_to
    return fold(fact.subject), fold(fact.relation), contexts, *times, fact.sources if apart else ()


def _several(told: Sequence[Assertion], apart: bool) -> set[_Slot]:
    """Slots of which one list tells several values, at the same time: all of them are meant."""
    values: dict[_Slot, set[str]] = {}
    for fact in told:
        values.setdefault(_slot(fact, apart), set()).add(fold(fact.object))
    return {slot for slot, some in values.items() if len(some) > 1}


def _unsaid(facts: FactColumns, relation: int) -> bool:
    """Whether nobody has said how many values a relation has."""
    return relation >= len(facts.names) or not facts.names.narrow["policy"][relation]


# -- taking back -------------------------------------------------------------------------------------


def retract(store: Store, unit: Any, reason: str | None, options: FactOptions) -> Program[Rewrite]:
    """Withdraw all that told a unit."""

    def plan(state: State, vectors: dict[str, bytes]) -> list[FactsRewritten]:
        facts = state.facts
        row = reading.number(facts, unit)
        told = [one for one in facts.index.tellings[row].tolist() if facts.tellings["live"][one]]
        if not told:
            raise InvalidInput(f"unit {row} is retracted already; `undo` takes that back")
        return [planner(state, store, options).turn(told, (), "retracted", reason=reason)]

    return (yield from _written(store, [], plan))


def undo(store: Store, rewrite: Any, options: FactOptions) -> Program[Rewrite]:
    """Take a rewrite back: what it told counts no longer, and what it withdrew counts again."""
    if isinstance(rewrite, Rewrite):
        rewrite = rewrite.seq
    if isinstance(rewrite, bool) or not isinstance(rewrite, int):
        raise InvalidInput(f"{rewrite!r} is not a rewrite; give a Rewrite, or its number")

    def plan(state: State, vectors: dict[str, bytes]) -> list[FactsRewritten]:
        facts = state.facts
        entry = store.journal.fetch([rewrite])[0].entry if 1 <= rewrite <= state.seq else None
        if not isinstance(entry, FactsRewritten):
            raise RewriteNotFound(f"entry {rewrite} of the journal is no rewrite of facts; see Rewrite.seq")
        if facts.undone(rewrite):
            raise InvalidInput(f"rewrite {rewrite} is taken back already, by {facts.undoing[rewrite]}")
        if (entry.policies and not entry.tellings) or entry.aliases:
            raise InvalidInput(f"rewrite {rewrite} set a policy or an alias; set another instead")
        unit, live = facts.tellings["unit"], facts.tellings["live"]
        told = [*(telling.id for telling in entry.tellings), *entry.revived]
        withdrawn = [one for one in told if unit[one] >= 0 and live[one]]
        revived = [one for one in entry.withdrawn if unit[one] >= 0 and not live[one]]
        if not withdrawn and not revived:
            raise RewriteNotFound(
                f"what rewrite {rewrite} did is forgotten, or was taken back piece by piece"
            )
        return [planner(state, store, options).turn(withdrawn, revived, "undone", undoes=rewrite)]

    return (yield from _written(store, [], plan))


def planner(state: State, store: Store, options: FactOptions) -> Planner:
    """What plans the next rewrite."""
    return Planner(state.facts, state.seq + 1, store.clock(), options, unpack_vector)


def _written(
    store: Store,
    texts: Sequence[str],
    plan: Callable[[State, dict[str, bytes]], Sequence[FactsRewritten]],
) -> Program[Rewrite]:
    """Write one rewrite, and say what it did."""
    seq = yield from commit(store, texts, plan)
    with store.reading() as state:
        return reading.rewrite(state.facts, seq)


# -- names -------------------------------------------------------------------------------------------


def set_policy(store: Store, relation: str, policy: str, options: FactOptions) -> Program[Rewrite]:
    """Say how many values a relation has at a time."""
    if policy not in ("one", "many"):
        raise InvalidInput(f"policy={policy!r}: choose 'one' or 'many'")
    chosen = POLICIES.index(policy)

    def plan(state: State, vectors: dict[str, bytes]) -> list[FactsRewritten]:
        naming = _Naming(state.facts, vectors)
        code = naming(relation)
        if not naming.new and state.facts.names.narrow["policy"][code] == chosen:
            return []
        return [planner(state, store, options).decide(naming.new, code, chosen)]

    return (yield from _written(store, [relation], plan))


def name_alias(store: Store, alias: str, name: str, options: FactOptions) -> Program[Rewrite]:
    """From here on, `alias` means what `name` means."""
    if fold(alias) == fold(name):
        raise InvalidInput(f"{alias!r} and {name!r} are the same name already")

    def plan(state: State, vectors: dict[str, bytes]) -> list[FactsRewritten]:
        naming = _Naming(state.facts, vectors)
        code, other = naming(alias), naming(name)
        if code == other:
            return []
        return [planner(state, store, options).alias(naming.new, code, other)]

    return (yield from _written(store, [alias, name], plan))


# -- forgetting --------------------------------------------------------------------------------------


class Lost(NamedTuple):
    """What a forgetting does to the fact graph."""

    gone: Gone
    changes: tuple[UnitChange, ...]
    readings: tuple[int, ...]


def lost(state: State, store: Store, turns: Iterable[int], units: Iterable[int], cap: float) -> Lost:
    """What goes with these turns and units, and what becomes of the units that are left."""
    facts = state.facts
    turns, units = list(turns), list(units)
    readings = unread(facts, turns, units)
    going = gone(facts, turns, units, readings)
    if not going.tellings:
        return Lost(going, (), tuple(sorted(readings)))
    rollback = facts.begin()
    try:
        changes = planner(state, store, FactOptions(cap=cap)).lose(going.units, going.tellings)
        return Lost(going, changes, tuple(sorted(readings)))
    finally:
        rollback()


def forget_facts(store: Store, given: Any, options: FactOptions) -> tuple[tuple[int, ...], int]:
    """Forget units for good; returns their numbers, and that of the entry."""
    chosen: list[int] = []

    def plan(state: State) -> Plan:
        several = given if isinstance(given, Iterable) else [given]
        chosen[:] = sorted({reading.number(state.facts, one) for one in several})
        if not chosen:
            return Plan([])
        going, changes, readings = lost(state, store, (), chosen, options.cap)
        fetched = store.journal.fetch(list(going.seqs))
        rewrite: dict[int, Entry] = {seq: erase(entry, frozenset(), going) for seq, entry in fetched}
        forgotten = TurnsForgotten(
            recorded=store.clock(), ids=(), units=tuple(chosen), changes=changes, readings=readings
        )
        return Plan([forgotten], rewrite)

    seq = store.commit(plan)
    return tuple(chosen), seq
