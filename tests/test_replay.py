"""Replaying the journal gives what was built live, bit for bit."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import hmem_core as hmem
import hmem_core.state
from hmem_core import factchanges
from hmem_core.columns import adjacency, annotations, blocks, factnames, links, notes, postings, states, turns
from hmem_core.columns.events import EventView
from hmem_core.effects import drive
from hmem_core.embedding.function import FunctionEncoder
from hmem_core.factdrafts import read_facts
from hmem_core.journal.entries import (
    ACTIVE,
    FORGOTTEN,
    OUTDATED,
    Entry,
    EventDescribed,
    SegmentAnnotated,
    TimelineItem,
    TurnAnalysed,
    TurnsLinked,
    TurnsRead,
    rests_on,
)
from hmem_core.records import FactDraft
from hmem_core.state import State, pack_vector
from hmem_core.store import Plan
from tests.helpers import Clock, HashingStates, hashing_encoder, open_memory
from tests.oracles import cascade

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(str.strip)
names = st.sampled_from([None, "ann", "bo", "çé", "dee"])


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, np.ndarray):
            assert found[name].dtype == value.dtype, name
            assert found[name].tobytes() == value.tobytes(), name
        else:
            assert found[name] == value, name


def replayed(memory: hmem.Memory) -> State:
    state = State(settled=memory._store.journal.position().rewritten)
    for seq, entry in memory._store.journal.read():
        state.apply(seq, entry)
    return state


def check_support(memory: hmem.Memory) -> None:
    """A unit that nothing blocks is active if and only if truth maintenance, from nothing, has it so."""
    facts = memory._store._state.facts
    blocked = ~np.isin(facts.units["status"], [ACTIVE, OUTDATED])
    inside = cascade.labels(blocked, cascade.justifications(facts.support(), len(facts)))
    assert inside == set(np.flatnonzero(facts.units["status"] == ACTIVE).tolist())


class Replay(RuleBasedStateMachine):
    """Random changes to one memory, opened twice so that each also catches up with the other."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = TemporaryDirectory()
        self.clock = Clock()
        self.encoder: HashingStates | FunctionEncoder = HashingStates()
        self.memories = [self.open(), self.open()]
        self.model: dict[int, tuple[str, str | None, str | None]] = {}
        self.rewrites: list[int] = []

    def open(self, **options: Any) -> hmem.Memory:
        path = Path(self.directory.name) / "m"
        return open_memory(path, clock=self.clock, encoder=self.encoder, **options)

    @rule(
        who=st.integers(0, 1), text=texts, session=names, speaker=names, meta=st.sampled_from([{}, {"a": 1}])
    )
    def add(
        self, who: int, text: str, session: str | None, speaker: str | None, meta: dict[str, Any]
    ) -> None:
        added = self.memories[who].add(text, session=session, speaker=speaker, metadata=meta)
        self.model[added.ids[0]] = (text, session, speaker)

    @rule(who=st.integers(0, 1), parts=st.lists(texts, min_size=1, max_size=4), key=st.sampled_from("kl"))
    def add_keyed(self, who: int, parts: list[str], key: str) -> None:
        added = self.memories[who].add(parts, key=key)
        for turn, text in zip(added.ids, parts, strict=True):
            self.model.setdefault(turn, (text, None, None))

    @precondition(lambda self: self.model)
    @rule(who=st.integers(0, 1), data=st.data())
    def forget(self, who: int, data: st.DataObject) -> None:
        turn = data.draw(st.sampled_from(sorted(self.model)))
        self.memories[who].forget(turn)
        del self.model[turn]

    @rule(who=st.integers(0, 1), session=names.filter(bool))
    def forget_session(self, who: int, session: str) -> None:
        gone = self.memories[who].forget(session=session).ids
        for turn in gone:
            assert self.model.pop(turn)[1] == session

    @precondition(lambda self: self.model)
    @rule(who=st.integers(0, 1), text=texts, data=st.data())
    def annotate(self, who: int, text: str, data: st.DataObject) -> None:
        """As a model does it; what a node's annotation rests on may be anything up to the node's own span."""
        store = self.memories[who]._store

        def plan(state: State) -> Plan:
            tree = state.tree.view()
            node = data.draw(st.integers(0, len(state.tree) - 1))
            entry = SegmentAnnotated(
                recorded=self.clock(),
                node=node,
                first=int(tree.start[node]),
                last=int(tree.end[node]),
                text=text,
                vector=pack_vector(self.encoder.embed([text])[0]),
            )
            return Plan([entry])

        store.commit(plan)

    @precondition(lambda self: self.model)
    @rule(who=st.integers(0, 1), data=st.data())
    def link(self, who: int, data: st.DataObject) -> None:
        """As a model does it: any turns that are stored, to any events or new ones."""

        def plan(state: State) -> Plan:
            columns, made = state.events.links, []
            count = columns.count
            chosen = st.lists(st.sampled_from(sorted(self.model)), min_size=1, max_size=3, unique=True)
            for turn in data.draw(chosen):
                old = set(range(columns.count)) - set(columns.events_of(turn))
                events = data.draw(st.lists(st.sampled_from(sorted(old)), unique=True)) if old else []
                if data.draw(st.booleans()):
                    events, count = [*events, count], count + 1
                made.append((turn, tuple(events)))
            return Plan([TurnsLinked(recorded=self.clock(), links=tuple(made))])

        self.memories[who]._store.commit(plan)

    @precondition(lambda self: self.model)
    @rule(who=st.integers(0, 1), text=texts, summarised=st.booleans(), data=st.data())
    def describe(self, who: int, text: str, summarised: bool, data: st.DataObject) -> None:
        """Models write of a turn and of an event, from whatever turns they were shown."""
        turn = data.draw(st.sampled_from(sorted(self.model)))
        read = tuple(data.draw(st.lists(st.sampled_from(sorted(self.model)), max_size=3)))

        def plan(state: State) -> Plan:
            analysed = TurnAnalysed(
                recorded=self.clock(), turn=turn, keywords=(text,), context=text, read=read
            )
            if not state.events.links.count:
                return Plan([analysed])
            described = EventDescribed(
                recorded=self.clock(),
                event=data.draw(st.integers(0, state.events.links.count - 1)),
                summary=text if summarised else None,
                timeline=(TimelineItem(turn, None, text),),
                read=read,
                vector=pack_vector(self.encoder.embed([text])[0]) if summarised else None,
            )
            return Plan([analysed, described])

        self.memories[who]._store.commit(plan)

    @rule(
        who=st.integers(0, 1),
        slots=st.tuples(st.sampled_from("abA"), st.sampled_from("rs"), st.sampled_from("xyzb")),
        context=st.sampled_from([None, "c", ("c", "d")]),
        start=st.sampled_from([None, "2026-01-01", "2026-02-01", "2026-03-01"]),
        confidence=st.sampled_from([1.0, 0.5]),
        data=st.data(),
    )
    def tell(
        self,
        who: int,
        slots: tuple[str, str, str],
        context: Any,
        start: str | None,
        confidence: float,
        data: st.DataObject,
    ) -> None:
        facts = self.memories[who].facts
        known = [unit.id for unit in facts.find(include="all")]
        because = data.draw(st.lists(st.sampled_from(known), max_size=2)) if known else []
        source = data.draw(st.lists(st.sampled_from(sorted(self.model)), max_size=2)) if self.model else []
        rewrite = facts.add(
            *slots,
            category=data.draw(st.sampled_from([None, "k"])),
            context=context,
            valid_from=start,
            confidence=confidence,
            because=because,
            source=source,
            key=data.draw(st.sampled_from([None, None, "k1", "k2"])),
        )
        if rewrite.new:
            self.rewrites.append(rewrite.seq)

    @precondition(lambda self: self.model)
    @rule(who=st.integers(0, 1), slots=st.sampled_from(["arx", "ary", "bsx"]), data=st.data())
    def read(self, who: int, slots: str, data: st.DataObject) -> None:
        """As a model does it: a fact with the mark that some turns were read for it, and some units shown."""
        store = self.memories[who]._store
        some = st.lists(st.sampled_from(sorted(self.model)), min_size=1, max_size=3, unique=True)
        turns, shown, source = data.draw(some), data.draw(some), data.draw(some)
        (fact,) = read_facts(
            [FactDraft(subject=slots[0], relation=slots[1], object=slots[2], source=source)], UTC
        )

        def plan(state: State, vectors: dict[str, bytes]) -> list[Entry]:
            known = np.flatnonzero(state.facts.units["status"] != FORGOTTEN).tolist()
            taken = data.draw(st.lists(st.sampled_from(known), max_size=2)) if known else []
            told = factchanges.tell(store, state, vectors, [fact], hmem.FactOptions(), [])
            mark = TurnsRead(
                recorded=self.clock(),
                turns=tuple(turns),
                read=tuple(shown),
                taken=tuple(taken),
                tellings=tuple(one.id for entry in told for one in entry.tellings),
                compared=(tuple(taken),) if len(taken) == 2 else (),  # type: ignore[arg-type]
            )
            return [*told, mark]

        drive(
            factchanges.commit(store, list(fact[1].names()), plan),
            lambda effect: self.encoder.embed(effect.texts),  # type: ignore[union-attr]
        )

    @precondition(lambda self: self.rewrites)
    @rule(who=st.integers(0, 1), action=st.sampled_from(["undo", "retract", "forget"]), data=st.data())
    def take_back(self, who: int, action: str, data: st.DataObject) -> None:
        facts = self.memories[who].facts
        try:
            if action == "undo":
                self.rewrites.append(facts.undo(data.draw(st.sampled_from(self.rewrites))).seq)
            elif known := [unit.id for unit in facts.find(include="all")]:
                unit = data.draw(st.sampled_from(known))
                if action == "forget":
                    facts.forget(unit)
                else:
                    self.rewrites.append(facts.retract(unit, "because").seq)
        except (hmem.InvalidInput, hmem.RewriteNotFound):
            pass  # it was taken back before

    @rule(who=st.integers(0, 1), relation=st.sampled_from("rs"), values=st.sampled_from(["one", "many"]))
    def policy(self, who: int, relation: str, values: Any) -> None:
        self.memories[who].facts.policy(relation, values)

    @rule(who=st.integers(0, 1), pair=st.sampled_from([("b", "a"), ("y", "x"), ("d", "c")]))
    def alias(self, who: int, pair: tuple[str, str]) -> None:
        self.memories[who].facts.alias(*pair)

    @rule(who=st.integers(0, 1))
    def checkpoint(self, who: int) -> None:
        self.memories[who].checkpoint()

    @rule(who=st.integers(0, 1))
    def reopen(self, who: int) -> None:
        self.memories[who].close()
        self.memories[who] = self.open()

    @rule(who=st.integers(0, 1), late=st.booleans())
    def reopen_with_states_or_without(self, who: int, late: bool) -> None:
        self.memories[who].close()
        self.memories[who] = self.open(late_interaction=late)

    @rule(dimension=st.sampled_from([8, 16, 70]), states=st.booleans())
    def reembed(self, dimension: int, states: bool) -> None:
        self.memories[1].close()
        self.encoder = HashingStates(dimension) if states else hashing_encoder(dimension)
        self.memories[1] = self.open(reembed=True)
        self.memories[0].close()
        self.memories[0] = self.open()

    @invariant()
    def same(self) -> None:
        for memory in self.memories:
            assert {turn.id: (turn.text, turn.session, turn.speaker) for turn in memory.turns()} == self.model
            annotations = memory._store.view().annotations
            assert all(annotations.of(node) for node in annotations.nodes.tolist())
            self.check_notes(memory._store.view().events)
            self.check_readings(memory)
            assert_same(memory._store._state.arrays(), replayed(memory).arrays())
            check_support(memory)

    def check_notes(self, view: EventView) -> None:
        """Nothing that a model wrote rests on what is forgotten."""
        for turn in view.analyses.rows_of:
            analysed = view.analysis_of(turn)
            assert analysed is not None
            assert rests_on(analysed) <= self.model.keys()
        for event in view.descriptions.rows_of:
            entries = view.descriptions_of(event)
            assert entries
            assert all(rests_on(entry) <= self.model.keys() for entry in entries)

    def check_readings(self, memory: hmem.Memory) -> None:
        """Readings that count were shown nothing that is forgotten; the others left nothing."""
        facts = memory._store._state.facts
        for row in range(len(facts.readings)):
            told = facts.tellings["unit"][facts.readings.tellings[row]]
            if facts.readings.live[row]:
                assert self.model.keys() >= set(facts.readings.read[row].tolist())
                assert all(facts.units["status"][facts.readings.taken[row]] != FORGOTTEN)
            else:
                assert all(told < 0)

    def teardown(self) -> None:
        for memory in self.memories:
            memory.close()
        self.directory.cleanup()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (annotations, blocks, factnames, notes, postings, states, turns, hmem_core.state):
        monkeypatch.setattr(module, "BLOCK_ROWS", 4)
    monkeypatch.setattr(postings, "_TAIL_TURNS", 3)
    monkeypatch.setattr(links, "_TAIL", 3)
    monkeypatch.setattr(links, "_CHUNK", 3)
    monkeypatch.setattr(adjacency, "_LEAST_TAIL", 3)


@pytest.mark.usefixtures("small_blocks")
def test_replay_equals_live() -> None:
    run_state_machine_as_test(
        Replay, settings=settings(max_examples=20, stateful_step_count=25, deadline=None)
    )


@pytest.mark.soak
@pytest.mark.usefixtures("small_blocks")
def test_replay_equals_live_at_length() -> None:
    run_state_machine_as_test(
        Replay, settings=settings(max_examples=500, stateful_step_count=60, deadline=None)
    )
