"""The cost of a rewrite is that of what it changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hmem_core.columns.adjacency import Adjacency
from hmem_core.columns.facttables import Table
from hmem_core.facts.rewrite import Draft, Planner
from hmem_core.journal.entries import ACTIVE, OPEN_END, OUTDATED, SUPERSEDED, FactName
from hmem_core.options import FactOptions
from hmem_core.retrieval import units as reading
from hmem_core.retrieval.units import Slots
from hmem_core.state import pack_vector, unpack_vector
from tests.facts.synthetic import DIMENSION, graph

VECTOR = pack_vector(np.ones(DIMENSION, np.float32))


def told_anew(facts: Any, **options: Any) -> Any:
    """The entry that supersedes unit 0."""
    code = len(facts.names)
    unit = facts.units
    draft = Draft(int(unit["subject"][0]), int(unit["relation"][0]), code, -1, (), 1, OPEN_END, 1.0, (), ())
    planner = Planner(facts, 3, 5, FactOptions(**options), unpack_vector)
    rollback = facts.begin()
    try:
        return planner.tell(draft, [FactName(code, "another value", VECTOR)])
    finally:
        rollback()


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were written and list entries read, counted up in its only item."""
    count = [0]

    def counted(kind: type, name: str, weigh: Any) -> None:
        method = getattr(kind, name)

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = method(self, *args, **kwargs)
            count[0] += weigh(result)
            return result

        monkeypatch.setattr(kind, name, call)

    counted(Adjacency, "__getitem__", lambda found: found.size)
    counted(Adjacency, "latest", lambda found: found.size)
    counted(Table, "set", lambda _: 1)
    counted(Table, "append", lambda _: 1)
    return count


@pytest.mark.parametrize("options", [{}, {"cascade": "path"}])
def test_what_a_rewrite_touches_does_not_grow_with_the_store(touched: list[int], options: Any) -> None:
    costs = []
    for units in (1_000, 10_000, 100_000):
        facts = graph(units, chain=20)
        touched[0] = 0
        entry = told_anew(facts, **options)
        facts.apply(3, entry, unpack_vector)
        found = reading.find(facts, Slots("subject 0", "relation 0"), None, None, "all", None)
        assert [unit.status for unit in found] == ["superseded", "active"]
        costs.append(touched[0])
    assert costs[0] == costs[1] == costs[2]
    assert costs[0] < 400


def test_a_million_units_and_a_chain_of_a_hundred_thousand() -> None:
    units, chain = 1_000_000, 100_000
    facts = graph(units, chain, per_subject=100)
    entry = told_anew(facts)
    assert len(entry.changes) == chain + 2
    assert (facts.units["status"] == ACTIVE).all(), "planning leaves no trace"
    facts.apply(3, entry, unpack_vector)
    status = facts.units["status"]
    assert status[0] == SUPERSEDED
    assert (status[units - chain : units] == OUTDATED).all()
    assert (status[1 : units - chain] == ACTIVE).all()
    assert [row.by for row in entry.changes[2:5]] == [0, units - chain, units - chain + 1]
