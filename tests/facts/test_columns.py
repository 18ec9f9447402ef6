"""The columns of the fact graph: trying out and putting back, checkpoints, replay after forgetting."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest

import hmem_core as hmem
from hmem_core.columns import adjacency, factnames, factpieces
from hmem_core.columns.checkpoint import Loaded
from hmem_core.columns.facts import FactColumns
from hmem_core.facts.rewrite import Draft, Planner
from hmem_core.journal.entries import OPEN_END, FactName
from hmem_core.state import pack_vector, unpack_vector
from tests.helpers import DIMENSION, Clock, open_memory
from tests.test_replay import assert_same, check_support, replayed

NAMES = "abcde"
ACTIONS = ["tell"] * 8 + ["list", "turn", "undo", "retract", "forget", "drop", "alias", "policy"]


def random_facts(seed: int, steps: int, checked: Any = None) -> hmem.Memory:
    """A memory after random changes of its facts."""
    chance = random.Random(seed)
    memory = open_memory(clock=Clock())
    facts = memory.facts
    seqs: list[int] = []
    for step in range(steps):
        units = [unit.id for unit in facts.find(include="all")]
        turns = [turn.id for turn in memory.turns()]
        action = chance.choice(
            ["tell"] * 8 + ["list", "turn", "undo", "retract", "forget", "drop", "alias", "policy"]
        )
        try:
            if action in ("tell", "list"):
                drafts = [draft(chance, units, turns) for _ in range(3 if action == "list" else 1)]
                seqs += [done.seq for done in facts.add_many(drafts) if done.new]
            elif action == "turn":
                memory.add(f"turn {step}")
            elif action == "undo" and seqs:
                seqs.append(facts.undo(chance.choice(seqs)).seq)
            elif action == "retract" and units:
                seqs.append(facts.retract(chance.choice(units), "a reason").seq)
            elif action == "forget" and units and chance.random() < 0.5:
                facts.forget(chance.choice(units))
            elif action == "drop" and turns:
                memory.forget(chance.choice(turns))
            elif action == "alias" and chance.random() < 0.2:
                facts.alias(*chance.sample(NAMES, 2))
            elif action == "policy":
                facts.policy(chance.choice("rs"), chance.choice(["one", "many"]))
        except (hmem.InvalidInput, hmem.RewriteNotFound):
            pass
        if checked is not None:
            checked(memory)
    return memory


def draft(chance: random.Random, units: list[int], turns: list[int]) -> dict[str, Any]:
    return {
        "subject": chance.choice(NAMES),
        "relation": chance.choice("rs"),
        "object": chance.choice(NAMES),
        "category": chance.choice([None, "k", "a"]),
        "context": chance.choice([None, None, "c", ("c", "d")]),
        "valid_from": chance.choice([None, "2026-01-01", "2026-01-02", "2026-01-03"]),
        "valid_to": chance.choice([None, None, "2026-01-09"]),
        "confidence": chance.choice([0.5, 1.0]),
        "because": chance.sample(units, min(len(units), chance.choice([0, 0, 1, 2]))),
        "source": chance.sample(turns, min(len(turns), chance.choice([0, 1, 2]))),
    }


@pytest.mark.parametrize("seed", range(8))
def test_replay_of_the_erased_journal_gives_the_live_columns(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adjacency, "_LEAST_TAIL", 8)

    def check(memory: hmem.Memory) -> None:
        assert_same(memory._store._state.facts.arrays(), replayed(memory).facts.arrays())
        check_support(memory)

    random_facts(seed, 40, check)


@pytest.mark.parametrize("seed", range(6))
def test_trying_out_leaves_no_trace_and_a_checkpoint_holds_everything(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factnames, "BLOCK_ROWS", 4)
    monkeypatch.setattr("hmem_core.columns.blocks.BLOCK_ROWS", 4)
    memory = random_facts(seed, 30)
    state = memory._store._state
    before = {name: copied(value) for name, value in state.facts.arrays().items()}
    rollback = state.facts.begin()
    chance = random.Random(seed)
    for step in range(12):
        change_something(state.facts, chance, step)
    assert {name for name, value in state.facts.arrays().items() if differs(value, before[name])}
    rollback()
    assert_same(state.facts.arrays(), before)
    assert_same(restored(state.facts).arrays(), before)


def change_something(facts: FactColumns, chance: random.Random, step: int) -> None:
    """A rewrite of any kind, planned and applied as it is in a list."""
    planner = Planner(facts, 10_000 + step, step, hmem.FactOptions(), unpack_vector)
    code = len(facts.names)
    names = [FactName(code, f"new {step}", pack_vector(np.ones(DIMENSION, np.float32)))]
    slots = [chance.randrange(code) for _ in range(2)]
    live = [unit for unit in range(len(facts)) if facts.units["status"][unit]]
    told = np.flatnonzero(facts.tellings["live"]).tolist()
    match chance.choice(["tell", "tell", "turn", "alias", "policy"]):
        case "tell":
            because = tuple(chance.sample(live, min(len(live), 2)))
            draft = Draft(*slots, code, -1, (slots[0],), step, OPEN_END, 1.0, because, (step,))
            planner.tell(draft, names, key=f"key {step}")
        case "turn" if told:
            planner.turn([chance.choice(told)], (), "retracted", reason="for no reason", undoes=step + 1)
        case "policy":
            planner.decide(names, slots[0], chance.choice([1, 2]))
        case _:
            if slots[0] != slots[1] and all(facts.names[slot] for slot in slots):
                planner.alias(names, *slots)


def differs(value: Any, before: Any) -> bool:
    return value.tobytes() != before.tobytes() if isinstance(value, np.ndarray) else value != before


def copied(value: Any) -> Any:
    return copy.deepcopy(value)


def restored(facts: FactColumns) -> FactColumns:
    pieces = factpieces.pieces(facts)
    batches = {piece.name: piece.batch() for piece in pieces}
    stamps = {piece.name: piece.stamp for piece in pieces}
    return factpieces.restore(DIMENSION, Loaded(None, batches, stamps, 0))  # type: ignore[arg-type]
