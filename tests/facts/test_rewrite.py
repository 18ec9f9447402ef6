"""What telling a fact does to those that are there."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hmem_core as hmem
from hmem_core.facts.rewrite import noisy_or
from tests.helpers import Clock, open_memory
from tests.test_replay import check_support


def day(number: int, month: int = 1) -> datetime:
    return datetime(2026, month, number, tzinfo=UTC)


def statuses(memory: hmem.Memory) -> dict[str, str]:
    return {unit.object: unit.status for unit in memory.facts.find(include="all")}


def lives(memory: hmem.Memory, place: str, **more: Any) -> hmem.Rewrite:
    return memory.facts.add("Ann", "lives in", place, **more)


@pytest.fixture
def memory() -> hmem.Memory:
    return open_memory(clock=Clock())


# -- one value at a time -----------------------------------------------------------------------------


def test_a_newer_value_supersedes_and_the_older_one_ends_where_it_starts(memory: hmem.Memory) -> None:
    lives(memory, "Porto", valid_from="2026-01-01")
    rewrite = lives(memory, "Faro", valid_from="2026-01-05")
    assert (rewrite.added, rewrite.superseded, rewrite.pending) == ((1,), (0,), ())
    old, new = memory.facts.find("Ann", include="history")
    assert (old.status, old.valid_from, old.valid_to, old.by) == ("superseded", day(1), day(5), 1)
    assert (new.status, new.valid_from, new.valid_to, new.by) == ("active", day(5), None, None)
    change = next(change for change in rewrite.changes if change.unit == 0)
    assert change.before is not None
    assert (change.before.status, change.before.valid_to, change.after.why) == ("active", None, "superseded")


@pytest.mark.parametrize("start", [None, "2026-01-01"])
def test_a_value_that_nothing_makes_newer_is_pending_and_reported(
    memory: hmem.Memory, start: str | None
) -> None:
    lives(memory, "Porto", valid_from=start)
    rewrite = lives(memory, "Faro", valid_from=start)
    assert rewrite.pending == (1,)
    assert rewrite.conflicts == (hmem.Contradiction(1, 0),)
    assert statuses(memory) == {"Porto": "active", "Faro": "pending"}
    assert lives(memory, "Faro", valid_from=start).conflicts == (hmem.Contradiction(1, 0),)
    promoted = lives(memory, "Faro", valid_from="2026-02-01")
    assert promoted.superseded == (0,)
    assert [unit.object for unit in memory.facts.find()] == ["Faro"]
    if start is None:  # the pending unit has got its start; else it goes on saying something else
        assert (promoted.confirmed, promoted.restored) == ((1,), (1,))


def test_a_value_without_a_start_is_not_newer_than_one_that_has_one(memory: hmem.Memory) -> None:
    lives(memory, "Porto", valid_from="2026-01-01")
    assert lives(memory, "Faro").conflicts == (hmem.Contradiction(1, 0),)


def test_retracting_what_stands_in_the_way_settles_a_contradiction(memory: hmem.Memory) -> None:
    lives(memory, "Porto")
    lives(memory, "Faro")
    assert memory.facts.retract(0).restored == (1,)
    assert statuses(memory) == {"Porto": "retracted", "Faro": "active"}


def test_what_was_retracted_and_is_told_again_is_the_same_unit(memory: hmem.Memory) -> None:
    first = lives(memory, "Porto")
    retracted = memory.facts.retract(0, "a joke")
    again = lives(memory, "Porto")
    assert (again.added, again.confirmed, again.restored) == ((), (0,), (0,))
    assert [version.status for version in memory.facts.history(0)] == ["active", "retracted", "active"]
    memory.facts.undo(retracted)
    memory.facts.undo(again)
    assert memory.facts.get(0).status == "active"
    memory.facts.undo(first)
    assert memory.facts.get(0).status == "retracted"


def test_a_back_dated_value_is_history_with_the_right_interval(memory: hmem.Memory) -> None:
    lives(memory, "Porto", valid_from="2026-01-10")
    lives(memory, "Faro", valid_from="2026-01-20")
    rewrite = lives(memory, "Braga", valid_from="2026-01-15")
    assert rewrite.added == rewrite.superseded == (2,)
    assert rewrite.changes[0].after.why == "valid before another"
    intervals = {
        unit.object: (unit.valid_from, unit.valid_to) for unit in memory.facts.find(include="history")
    }
    assert intervals == {"Porto": (day(10), day(15)), "Braga": (day(15), day(20)), "Faro": (day(20), None)}
    lives(memory, "Lagos", valid_from="2026-01-01", valid_to="2026-01-03")
    assert memory.facts.find(object="Lagos", include="history")[0].valid_to == day(3)
    assert [unit.object for unit in memory.facts.find("Ann", valid_at="2026-01-16")] == ["Braga"]
    assert memory.facts.find("Ann", valid_at="2026-01-05") == []


@settings(max_examples=60, deadline=None)
@given(st.permutations(range(5)))
def test_the_order_of_telling_does_not_matter_where_all_starts_are_known(order: list[int]) -> None:
    memory = open_memory(clock=Clock())
    for place in order:
        lives(memory, f"place {place}", valid_from=day(1 + place))
    told = [(unit.object, unit.valid_from, unit.valid_to) for unit in memory.facts.find(include="history")]
    assert told == [(f"place {n}", day(1 + n), day(2 + n) if n < 4 else None) for n in range(5)]
    assert memory.facts.find("Ann")[0].object == "place 4"


def test_a_value_that_comes_back_is_a_unit_of_its_own(memory: hmem.Memory) -> None:
    lives(memory, "Porto", valid_from="2026-01-01")
    lives(memory, "Faro", valid_from="2026-01-05")
    assert lives(memory, "Porto", valid_from="2026-01-09").added == (2,)
    history = [(unit.object, unit.status) for unit in memory.facts.find("Ann", include="history")]
    assert history == [("Porto", "superseded"), ("Faro", "superseded"), ("Porto", "active")]


def test_an_old_value_pasted_back_is_a_contradiction_not_a_copy(memory: hmem.Memory) -> None:
    lives(memory, "Porto", valid_from="2026-01-01")
    lives(memory, "Faro", valid_from="2026-01-05")
    rewrite = lives(memory, "Porto")
    assert (rewrite.added, rewrite.confirmed) == ((), (0,))
    assert rewrite.conflicts == (hmem.Contradiction(0, 1),)
    assert statuses(memory) == {"Porto": "superseded", "Faro": "active"}


def test_an_end_that_is_told_later_is_kept(memory: hmem.Memory) -> None:
    lives(memory, "Porto", valid_from="2026-01-01")
    lives(memory, "Porto", valid_to="2026-03-01")
    assert memory.facts.get(0).valid_to == day(1, 3)
    lives(memory, "Porto", valid_from="2026-01-10", valid_to="2026-01-20")  # speaks of a part only
    assert memory.facts.get(0).valid_to == day(1, 3)
    lives(memory, "Faro")
    assert statuses(memory) == {"Porto": "superseded", "Faro": "active"}, "what ended stands in nobody's way"


def test_other_contexts_and_other_subjects_do_not_contradict(memory: hmem.Memory) -> None:
    add = memory.facts.add
    add("Ann", "drinks", "coffee", context="at work")
    assert add("Ann", "drinks", "tea", context="in the evening").conflicts == ()
    assert add("Ann", "drinks", "water", context=["in the evening", "at work"]).conflicts == ()
    assert add("Anna", "drinks", "milk", context="at work").conflicts == ()
    assert add("Ann", "drinks", "mate", context=["at  WORK"]).conflicts == (hmem.Contradiction(4, 0),)
    assert [unit.object for unit in memory.facts.find(context="in the evening")] == ["tea", "water"]


# -- the same fact, told again -----------------------------------------------------------------------


def test_the_same_fact_is_never_copied(memory: hmem.Memory) -> None:
    memory.add(["one", "two"])
    lives(memory, "Porto", confidence=0.6, source=0)
    again = memory.facts.add("ANN", "lives  in", "porto", confidence=0.5, source=[1])
    assert (again.added, again.confirmed, again.new) == ((), (0,), True)
    unit = memory.facts.get(0)
    assert (unit.subject, unit.sources, unit.confidence) == ("Ann", (0, 1), pytest.approx(0.8))
    before = memory.stats().seq
    repeated = lives(memory, "Porto", confidence=0.6, source=0)
    assert (repeated.confirmed, repeated.new, memory.stats().seq) == ((0,), False, before)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0, 1))
def test_confidence_never_falls_by_repetition_and_stays_under_the_cap(some: list[float], cap: float) -> None:
    found = noisy_or(some, cap)
    assert max(some) <= found <= max(*some, cap) if len(some) > 1 else found == some[0]


def test_undoing_a_repetition_takes_its_confidence_and_source_back(memory: hmem.Memory) -> None:
    memory.add(["one", "two"])
    lives(memory, "Porto", confidence=0.6, source=0)
    memory.facts.undo(lives(memory, "Porto", confidence=0.5, source=1))
    unit = memory.facts.get(0)
    assert (unit.sources, unit.confidence, unit.status) == ((0,), 0.6, "active")


# -- several values ----------------------------------------------------------------------------------


def test_a_relation_of_many_values_holds_all_of_them(memory: hmem.Memory) -> None:
    memory.facts.policy("speaks", "many")
    for language in ("Polish", "French"):
        assert memory.facts.add("Ann", "Speaks", language).conflicts == ()
    assert statuses(memory) == {"Polish": "active", "French": "active"}
    assert memory.facts.add("Ann", "speaks", "polish").confirmed == (0,)
    assert memory.facts.policy("speaks", "one").pending == (1,)
    assert memory.facts.policy("speaks", "many").restored == (1,)


def test_what_one_list_tells_of_the_same_time_is_all_meant(memory: hmem.Memory) -> None:
    def tell(*languages: str) -> list[hmem.Rewrite]:
        return memory.facts.add_many(
            [{"subject": "Ann", "relation": "speaks", "object": language} for language in languages]
        )

    tell("Polish", "French")
    assert set(statuses(memory).values()) == {"active"}
    memory.facts.add("Bo", "speaks", "Thai")
    assert memory.facts.add("Bo", "speaks", "Lao").conflicts == (), (
        "the relation has many values for everybody"
    )
    memory.facts.policy("speaks", "one")
    assert [bool(rewrite.conflicts) for rewrite in tell("Irish", "Welsh")] == [True, True]


# -- what rests on it --------------------------------------------------------------------------------


def test_dependents_fall_and_rise_however_far(memory: hmem.Memory) -> None:
    first = lives(memory, "Porto")
    chain = [first]
    for step in range(4):
        chain.append(memory.facts.add("Ann", f"step {step}", "done", because=chain[-1]))
    moved = lives(memory, "Faro", valid_from="2026-02-01")
    assert moved.outdated == (1, 2, 3, 4)
    assert [memory.facts.get(unit).by for unit in (1, 2, 3, 4)] == [0, 1, 2, 3]
    undone = memory.facts.undo(moved)
    assert (undone.restored, undone.retracted, undone.undoes) == ((0, 1, 2, 3, 4), (5,), moved.seq)
    redone = memory.facts.undo(undone)
    assert (redone.outdated, redone.restored) == ((1, 2, 3, 4), (5,))


def test_dependencies_are_not_inherited_by_the_new_version(memory: hmem.Memory) -> None:
    memory.facts.add("Ann", "commutes by", "tram", because=lives(memory, "Porto"))
    new = lives(memory, "Faro", valid_from="2026-02-01")
    assert statuses(memory)["tram"] == "outdated"
    assert memory.facts.add("Ann", "commutes by", "tram", because=new).restored == (1,)
    assert memory.facts.get(1).supports == ((0,), (2,))


def test_a_dependent_needs_all_of_one_justification_and_any_of_several(memory: hmem.Memory) -> None:
    add = memory.facts.add
    a, b, c = (add("x", f"is {name}", "true").added[0] for name in "abc")
    both = add("x", "is", "both", because=[a, b]).added[0]
    add("x", "is", "both", because=c)
    memory.facts.retract(a)
    assert memory.facts.get(both).status == "active"
    memory.facts.retract(c)
    assert memory.facts.get(both).status == "outdated"


def test_a_unit_told_by_itself_as_well_stands(memory: hmem.Memory) -> None:
    home = lives(memory, "Porto")
    memory.facts.add("Ann", "commutes by", "tram", because=home)
    memory.facts.add("Ann", "commutes by", "tram")
    assert lives(memory, "Faro", valid_from="2026-02-01").outdated == ()


def test_units_that_only_hold_each_other_up_fall_together(memory: hmem.Memory) -> None:
    add = memory.facts.add
    root = add("x", "is root", "true")
    one = add("x", "is one", "true", because=root)
    two = add("x", "is two", "true", because=one)
    add("x", "is one", "true", because=two)
    assert memory.facts.retract(root.added[0]).outdated == (1, 2)


def test_a_unit_that_rests_on_what_does_not_hold_is_born_outdated(memory: hmem.Memory) -> None:
    home = lives(memory, "Porto")
    lives(memory, "Faro", valid_from="2026-02-01")
    born = memory.facts.add("Ann", "commutes by", "tram", because=home)
    assert (born.added, born.outdated) == ((2,), (2,))
    assert memory.facts.get(2).by == 0


def test_an_outdated_value_gives_way_without_a_contradiction(memory: hmem.Memory) -> None:
    job = memory.facts.add("Ann", "works at", "the port")
    lives(memory, "Porto", because=job)
    memory.facts.retract(job.added[0])
    rewrite = lives(memory, "Faro")
    assert rewrite.conflicts == ()
    assert statuses(memory) == {"the port": "retracted", "Porto": "superseded", "Faro": "active"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"Porto": "superseded", "Faro": "active", "tram": "outdated", "a pass": "outdated"}),
        (
            {"cascade": "path"},
            {"Porto": "superseded", "Faro": "active", "tram": "outdated", "a pass": "active"},
        ),
        (
            {"strategy": "append-only"},
            {"Porto": "active", "Faro": "active", "tram": "active", "a pass": "active"},
        ),
        (
            {"strategy": "relation-level"},
            {"Porto": "superseded", "Faro": "active", "tram": "active", "a pass": "active"},
        ),
    ],
)
def test_strategies(options: dict[str, Any], expected: dict[str, str]) -> None:
    memory = open_memory(facts=hmem.FactOptions(**options))
    home = lives(memory, "Porto")
    tram = memory.facts.add("Ann", "commutes by", "tram", because=home)
    memory.facts.add("Ann", "owns", "a pass", because=tram)
    lives(memory, "Faro", valid_from="2026-02-01")
    assert statuses(memory) == expected
    assert lives(memory, "Faro", valid_from="2026-02-01").added == (
        (4,) if expected["Porto"] == "active" else ()
    )


def test_the_relation_level_baseline_looks_at_neither_time_nor_context() -> None:
    memory = open_memory(facts=hmem.FactOptions(strategy="relation-level"))
    lives(memory, "Porto", valid_from="2026-02-01")
    assert lives(memory, "Faro", context="in summer").superseded == (0,)


def test_explain_shows_where_the_rewrite_looked_and_changes_nothing(memory: hmem.Memory) -> None:
    home = lives(memory, "Porto", category="residence")
    memory.facts.add("Ann", "commutes by", "tram", because=home)
    moved = lives(memory, "Faro", category="residence", valid_from="2026-02-01", explain=True)
    assert moved.explain is not None
    assert moved.explain.region == (0, 1)
    assert (moved.superseded, moved.outdated) == ((0,), (1,))
    assert lives(memory, "Lagos").explain is None


# -- random histories --------------------------------------------------------------------------------

assertions = st.fixed_dictionaries(
    {
        "subject": st.sampled_from("ab"),
        "relation": st.sampled_from("rst"),
        "object": st.sampled_from("xyz"),
        "valid_from": st.sampled_from([None, day(1), day(2), day(3)]),
        "valid_to": st.sampled_from([None, None, day(4)]),
        "confidence": st.sampled_from([0.5, 1.0]),
    }
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(assertions, st.lists(st.integers(0, 30), max_size=3)), max_size=24), st.data())
def test_support_is_that_of_truth_maintenance_and_no_slot_has_two_values(
    told: list[tuple[dict[str, Any], list[int]]], data: st.DataObject
) -> None:
    memory = open_memory(clock=Clock())
    rewrites = []
    for fact, because in told:
        known = len(memory._store._state.facts)
        rewrite = memory.facts.add(**fact, because=[one for one in because if one < known])
        rewrites.append(rewrite)
        action = data.draw(st.sampled_from(["none", "none", "undo", "retract"]))
        target = data.draw(st.sampled_from(rewrites))
        try:
            if action == "undo":
                rewrites.append(memory.facts.undo(target))
            elif action == "retract" and target.added:
                rewrites.append(memory.facts.retract(target.added[0]))
        except (hmem.InvalidInput, hmem.RewriteNotFound):
            pass
        check_support(memory)
        active = [(unit.subject, unit.relation) for unit in memory.facts.find()]
        assert len(active) == len(set(active))
        for unit in memory.facts.find(include="history"):
            assert unit.valid_from is None or unit.valid_to is None or unit.valid_from <= unit.valid_to


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        assertions, max_size=10, unique_by=lambda fact: (fact["subject"], fact["relation"], fact["object"])
    )
)
def test_a_list_does_what_its_facts_do_one_by_one(facts: list[dict[str, Any]]) -> None:
    apart, together = open_memory(clock=Clock()), open_memory(clock=Clock())
    for memory in (apart, together):
        for relation in "rst":
            memory.facts.policy(relation, "one")
    single = [apart.facts.add(**fact) for fact in facts]
    listed = together.facts.add_many(facts)
    view = [(one.added, one.superseded, one.pending, one.conflicts) for one in single]
    assert [(one.added, one.superseded, one.pending, one.conflicts) for one in listed] == view
    assert [unit.status for unit in apart.facts.find(include="all")] == [
        unit.status for unit in together.facts.find(include="all")
    ]
