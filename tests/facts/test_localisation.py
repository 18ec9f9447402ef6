"""Where in the fact graph a rewrite looks: against the slow way, and what it costs."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hmem_core as hmem
from hmem_core.columns.facts import FactColumns
from hmem_core.facts.localisation import Region, Temporary, localise
from hmem_core.facts.matching import Named
from tests.facts.synthetic import graph
from tests.helpers import Clock, open_memory
from tests.oracles import localisation as oracle

VECTORS = dict(
    zip(
        "ABCrstxyzkluvn",
        # Of length 1, with cosines that are exact: 1, 0.75, 0.5, 0.25, 0, and less.
        [
            *([1, 0, 0, 0], [0.5, 0.5, 0.5, 0.5], [0, 1, 0, 0]),
            *([1, 0, 0, 0], [0.5, 0.5, 0.5, -0.5], [0, 0, 0, 1]),
            *([0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, -0.5], [0, 0, 1, 0]),
            *([1, 0, 0, 0], [0.5, -0.5, 0.5, 0.5]),
            *([0, 1, 0, 0], [0.5, 0.5, -0.5, 0.5]),
            [-0.5, 0.5, 0.5, 0.5],
        ],
        strict=True,
    )
)


def encoder() -> Any:
    return hmem.FunctionEncoder(
        lambda texts: np.array([VECTORS[text] for text in texts], float), name="exact", dimension=4
    )


facts = st.fixed_dictionaries(
    {
        "subject": st.sampled_from("ABC"),
        "relation": st.sampled_from("rst"),
        "object": st.sampled_from("xyz"),
        "category": st.sampled_from([None, "k", "l"]),
        "context": st.sampled_from([(), (), ("u",), ("u", "v")]),
        "valid_from": st.sampled_from(
            [None, datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)]
        ),
        "confidence": st.sampled_from([0.5, 1.0]),
    }
)
temporary = st.fixed_dictionaries(
    {
        "subject": st.sampled_from([None, "A", "B", "n"]),
        "relation": st.sampled_from([None, "r", "s", "n"]),
        "object": st.sampled_from([None, "x", "n"]),
        "category": st.sampled_from([None, "k", "l", "n"]),
        "contexts": st.sampled_from([(), (), ("u",), ("v", "n")]),
    }
)
options = st.builds(
    hmem.FactOptions,
    graphs=st.sampled_from([1, 2, 12]),
    candidates=st.sampled_from([1, 5, 24]),
    depth=st.sampled_from([1, 2, 3]),
    considered=st.sampled_from([1, 3, 256]),
    members=st.sampled_from([1, 2, 32]),
    links=st.just(64),
    neighbours=st.sampled_from([1, 2, 4]),
    subject=st.sampled_from([0.5, 1.5]),  # weights whose sum is a power of 2, so that scores are exact
    attributes=st.sampled_from([0.25, 1.0]),
    dependency=st.sampled_from([0.25, 0.5]),
)


def tell(memory: hmem.Memory, told: list[tuple[dict[str, Any], list[int]]]) -> FactColumns:
    for fact, because in told:
        columns = memory._store._state.facts
        memory.facts.add(**fact, because=[one for one in because if one < len(columns)])
    return memory._store._state.facts


def temporaries(columns: FactColumns, wanted: list[dict[str, Any]]) -> list[Temporary]:
    def named(name: str | None) -> Named | None:
        if name is None:
            return None
        code = columns.names.find(name)
        return Named(len(columns.names) if code is None else code, np.array(VECTORS[name], np.float32))

    return [
        Temporary(
            named(one["subject"]),
            named(one["relation"]),
            named(one["object"]),
            named(one["category"]),
            tuple(filter(None, map(named, one["contexts"]))),
        )
        for one in wanted
    ]


told_facts = st.lists(st.tuples(facts, st.lists(st.integers(0, 20), max_size=2)), max_size=14)
NOW = 1_780_000_000_000_000


def check(told: list[tuple[dict[str, Any], list[int]]], wanted: list[dict[str, Any]], options: Any) -> int:
    """Compare with the oracle; returns how many of the paths have several units."""
    with open_memory(clock=Clock(), encoder=encoder()) as memory:
        columns = tell(memory, told)
        found = localise(columns, temporaries(columns, wanted), NOW, options)
        units = sorted(memory.facts.find(include="all"), key=lambda unit: unit.id)
    now = datetime.fromtimestamp(NOW / 1e6, UTC)
    region, path, candidates, graphs = oracle.localise(units, wanted, now, VECTORS, options)
    pairs = columns.index.micrographs
    names = {
        (columns.names[int(pairs.first[one])], columns.names[int(pairs.second[one])]): relevance
        for one, relevance in found.graphs
    }
    assert names == graphs
    assert [one.units for one in found.candidates] == [units for units, _ in candidates]
    np.testing.assert_allclose(
        [one[1:] for one in found.candidates], [parts for _, parts in candidates], rtol=1e-6
    )
    assert (found.path, found.units) == (path, region)
    active = {unit.id for unit in units if unit.status == "active"}
    assert all(active.issuperset(one.units) for one in found.candidates)
    return sum(len(one.units) > 1 for one in found.candidates)


@settings(max_examples=100, deadline=None)
@given(told_facts, st.lists(temporary, max_size=2), options)
def test_like_the_oracle(
    told: list[tuple[dict[str, Any], list[int]]], wanted: list[dict[str, Any]], options: hmem.FactOptions
) -> None:
    check(told, wanted, options)


def hanging_together(rng: random.Random) -> int:
    """Up to 16 units that rest on others in and out of their MicroGraphs, and tie."""
    told = []
    for number in range(rng.randint(8, 16)):
        fact = {
            "subject": rng.choice("ABC"),
            "relation": rng.choice("rst"),
            "object": rng.choice("xyz"),
            "category": rng.choice([None, "k", "l"]),
            "context": rng.choice([(), ("u",), ("u", "v")]),
            "confidence": rng.choice([1.0, 1.0, 0.5]),
        }
        told.append((fact, rng.sample(range(number), min(number, rng.choice([0, 1, 2])))))
    wanted = [
        {
            "subject": rng.choice([None, "A", "B"]),
            "relation": rng.choice([None, "r"]),
            "object": rng.choice([None, None, "n"]),
            "category": rng.choice([None, "k"]),
            "contexts": rng.choice([(), ("u",)]),
        }
        for _ in range(rng.choice([1, 1, 2]))
    ]
    wanted[0]["subject"] = wanted[0]["subject"] or "A"
    options = hmem.FactOptions(
        graphs=rng.choice([1, 3, 12]),
        candidates=rng.choice([24, 60]),
        depth=rng.choice([2, 3]),
        considered=rng.choice([2, 256]),
        members=rng.choice([1, 2, 32]),
        neighbours=rng.choice([1, 2, 4]),
        links=64,
        steps=10**6,
    )
    return check(told, wanted, options)


def test_like_the_oracle_where_much_hangs_together() -> None:
    assert sum(hanging_together(random.Random(seed)) for seed in range(60)) > 600


@settings(max_examples=60, deadline=None)
@given(told_facts, facts, options)
def test_a_region_holds_whatever_could_contradict(
    told: list[tuple[dict[str, Any], list[int]]], fact: dict[str, Any], options: hmem.FactOptions
) -> None:
    with open_memory(clock=Clock(), encoder=encoder()) as memory:
        columns = tell(memory, told)
        (wanted,) = temporaries(columns, [{**fact, "contexts": fact["context"]}])
        found = localise(columns, [wanted], NOW, options).units
        literal = localise(columns, [wanted], NOW, hmem.FactOptions(localisation=False)).units
        same = memory.facts.find(fact["subject"], fact["relation"], include="all")
        assert literal == {unit.id for unit in same}
        assert found >= literal
        for unit in literal:
            assert found.issuperset(columns.dependents(unit).tolist())


def test_options_are_checked() -> None:
    with pytest.raises(hmem.InvalidInput, match="members=0"):
        hmem.FactOptions(members=0)
    with pytest.raises(hmem.InvalidInput, match="localisation"):
        hmem.FactOptions(localisation="on")  # type: ignore[arg-type]


# -- what it costs -----------------------------------------------------------------------------------


def look(columns: FactColumns, **options: Any) -> Region:
    def named(slot: str) -> Named | None:
        code = int(columns.units[slot][0])
        return None if code < 0 else Named(code, columns.names.vectors[code])

    wanted = Temporary(*map(named, ("subject", "relation", "object", "category")))
    return localise(columns, [wanted], NOW, hmem.FactOptions(**options))


@pytest.mark.parametrize("category", [None, "of all"])
def test_what_is_touched_does_not_grow_with_the_store(category: str | None) -> None:
    """Not even where every unit of the store has one category."""
    costs = []
    for units in (10_000, 100_000):
        columns = graph(units, chain=20, category=category)
        found = look(columns)
        assert len(found.graphs) == (1 if category is None else 12)
        costs.append(found.touched)
    assert costs[0] == costs[1]
    assert costs[0] < 15_000


def test_a_large_group_is_bounded_too() -> None:
    costs = [look(graph(units, per_subject=units)).touched for units in (10_000, 100_000)]
    assert costs[0] == costs[1] < 5_000


def test_dependents_come_into_the_region_by_localisation_alone() -> None:
    def outcome(**options: Any) -> list[str]:
        with open_memory(facts=hmem.FactOptions(cascade="path", **options)) as memory:
            home = memory.facts.add("Ann", "lives in", "Porto", category="residence")
            memory.facts.add("Ann", "commutes by", "tram", category="transport", because=home)
            memory.facts.add("Ann", "lives in", "Faro", valid_from="2026-02-01")
            return [unit.status for unit in memory.facts.find(include="all")]

    assert outcome() == ["superseded", "outdated", "active"]
    assert outcome(localisation=False) == ["superseded", "active", "active"]


# -- what a user sees --------------------------------------------------------------------------------


@pytest.fixture
def memory() -> hmem.Memory:
    memory = open_memory(clock=Clock(), encoder=encoder())
    add = memory.facts.add
    add("A", "r", "x", category="k")
    add("A", "s", "y", category="l", because=0)
    add("B", "t", "z", category="k", context="u")
    return memory


def test_locate_gives_chains_with_the_parts_of_their_scores(memory: hmem.Memory) -> None:
    found = memory.facts.locate("A", "r")
    assert found.paths[0].units == (0, 1)
    assert found.paths[0].text == "A r x → A s y"
    for path in found.paths:
        parts = (path.attributes, path.dependency, path.validity, path.context)
        assert path.score == pytest.approx(sum(parts) / 4)
    assert [one.score for one in found.paths] == sorted((one.score for one in found.paths), reverse=True)
    assert {(one.subject, one.category) for one in found.graphs} == {("A", "k"), ("A", "l")}


def test_locate_embeds_what_it_does_not_know_and_keeps_nothing(memory: hmem.Memory) -> None:
    before = memory.stats().seq
    found = memory.facts.locate(relation="n", category="k", context="v")
    assert {unit for path in found.paths for unit in path.units} == {0, 1, 2}
    assert found.paths[0].attributes < 1
    assert memory.facts.locate("n").paths == ()
    assert memory.stats().seq == before
    assert memory.facts.find("n") == []


def test_locate_refuses_what_has_no_meaning(memory: hmem.Memory) -> None:
    with pytest.raises(hmem.InvalidInput, match="nothing is given"):
        memory.facts.locate()
    with pytest.raises(hmem.InvalidInput, match="subject=7"):
        memory.facts.locate(7)  # type: ignore[arg-type]
    with pytest.raises(hmem.InvalidInput, match="at="):
        memory.facts.locate("A", at="soon")


def test_time_makes_a_difference(memory: hmem.Memory) -> None:
    memory.facts.add("C", "r", "x", category="k", valid_from="2026-06-01")
    then, before = (memory.facts.locate("C", at=f"2026-0{month}-15").paths[0] for month in (6, 5))
    assert (then.units, then.validity) == ((3,), 1)
    assert before.score < then.score


@pytest.mark.parametrize("cascade", ["full", "path"])
def test_add_explains_where_it_looked(cascade: Any) -> None:
    with open_memory(clock=Clock(), encoder=encoder(), facts=hmem.FactOptions(cascade=cascade)) as memory:
        first = memory.facts.add("A", "r", "x", explain=True)
        assert first.explain == hmem.Localisation(paths=(), graphs=(), region=(), touched=0)
        memory.facts.add("A", "s", "y", because=first)
        rewrite = memory.facts.add("A", "r", "z", valid_from="2026-02-01", explain=True)
        assert rewrite.explain is not None
        assert rewrite.explain.paths[0].units == (0, 1)
        assert rewrite.explain.region == (0, 1)
        assert memory.facts.add("A", "t", "z").explain is None


def test_forgotten_units_are_nowhere(memory: hmem.Memory) -> None:
    memory.facts.forget(0)
    found = memory.facts.locate("A", "r", category="k")
    assert {unit for path in found.paths for unit in path.units} == {2}, "unit 1 rested on it"
