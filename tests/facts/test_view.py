"""Asking for facts, and what is refused."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import hmem_core as hmem
from hmem_core.embedding.function import FunctionEncoder
from tests.helpers import DIMENSION, Clock, hashed, hashing_encoder, open_memory


@pytest.fixture
def memory() -> hmem.Memory:
    return open_memory(clock=Clock())


def lives(memory: hmem.Memory, place: str, **more: Any) -> hmem.Rewrite:
    return memory.facts.add("Ann", "lives in", place, **more)


# -- names -------------------------------------------------------------------------------------------


def test_names_fold_but_are_never_guessed(memory: hmem.Memory) -> None:
    memory.facts.add("Ann  Lee", "\ufb01nds", "Stra\u00dfe")
    assert memory.facts.find("ANN LEE", "FINDS", "STRASSE")[0].subject == "Ann Lee"
    for other in ("Anna Lee", "AnnLee", "Ann Le", "Ann"):
        assert memory.facts.find(other) == []
        memory.facts.add(other, "finds", "a door")
    assert len({unit.subject for unit in memory.facts.find()}) == 5


def test_an_alias_joins_what_was_told_of_both(memory: hmem.Memory) -> None:
    memory.facts.add("Bob", "lives in", "Porto")
    memory.facts.add("Robert Smith", "lives in", "Faro", valid_from="2026-01-01")
    memory.facts.add("Ann", "knows", "bob")
    rewrite = memory.facts.alias("Bob", "Robert Smith")
    assert rewrite.superseded == (0,)
    assert [unit.object for unit in memory.facts.about("BOB")] == ["Faro"]
    assert memory.facts.find("Ann", object="Robert Smith")[0].object == "Robert Smith"
    assert memory.facts.add("bob", "lives in", "Faro").confirmed == (1,)
    memory.facts.alias("Rob", "Bob")
    assert memory.facts.about("Rob") == memory.facts.about("Robert Smith")
    assert memory.facts.alias("rob", "robert smith").changes == ()


def test_what_two_names_for_one_thing_both_said_does_not_contradict_itself(memory: hmem.Memory) -> None:
    memory.facts.add("Bob", "lives in", "Porto")
    memory.facts.add("Robert", "lives in", "Porto")
    assert memory.facts.alias("Bob", "Robert").conflicts == ()
    assert [unit.status for unit in memory.facts.find(include="all")] == ["active", "active"]


def test_a_name_is_embedded_once(memory: hmem.Memory) -> None:
    seen: list[str] = []

    def embed(texts: list[str]) -> Any:
        seen.extend(texts)
        return hashed(texts)

    memory = open_memory(encoder=FunctionEncoder(embed, name="counted", dimension=DIMENSION))
    seen.clear()
    memory.facts.add("Ann", "lives in", "Porto", category="residence", context="now")
    memory.facts.add("ann", "lives in", "Faro", category="Residence")
    assert seen == ["Ann", "lives in", "Porto", "residence", "now", "Faro"]


# -- times -------------------------------------------------------------------------------------------


def test_two_times_what_was_true_and_what_was_believed(memory: hmem.Memory) -> None:
    first = lives(memory, "Porto", valid_from="2026-01-01")
    second = lives(memory, "Faro", valid_from="2026-03-01")
    lives(memory, "Braga", valid_from="2026-02-01")

    def found(**when: Any) -> list[str]:
        return [unit.object for unit in memory.facts.find("Ann", **when)]

    assert found(valid_at="2026-02-15") == ["Braga"]
    assert found(valid_at="2026-02-15", as_of=second.seq) == ["Porto"]
    assert found(valid_at="2026-03-15", as_of=first.seq) == ["Porto"]
    assert found(as_of=first.seq - 1) == []
    assert found(as_of=first.changes[0].after.recorded) == ["Porto"]
    assert found(as_of=second.changes[0].after.recorded) == ["Faro"]
    before = memory.facts.find("Ann", as_of=first.seq)[0]
    assert (before.status, before.valid_to, before.by) == ("active", None, None)


def test_the_sources_of_an_earlier_moment(memory: hmem.Memory) -> None:
    memory.add(["one", "two"])
    first = lives(memory, "Porto", source=0)
    second = lives(memory, "Porto", source=1)
    memory.facts.undo(first)
    sources = [memory.facts.find(as_of=seq)[0].sources for seq in (first.seq, second.seq, second.seq + 1)]
    assert sources == [(0,), (0, 1), (1,)]


def test_find_by_any_slot_and_a_limit(memory: hmem.Memory) -> None:
    for day in range(1, 5):
        memory.facts.add(f"p{day}", "was at", "the fair", category="visit", valid_from=f"2026-01-0{day}")
    memory.facts.add("p1", "owns", "the fair")
    assert len(memory.facts.find(object="The Fair")) == 5
    assert [unit.subject for unit in memory.facts.find(category="visit", limit=2)] == ["p3", "p4"]
    assert memory.facts.find("p1", object="the fair", relation="owns")[0].id == 4
    assert memory.facts.find(limit=0) == []
    assert memory.facts.find("p1", category="nothing") == []


# -- why ---------------------------------------------------------------------------------------------


def test_why_goes_down_to_the_turns_and_ends_in_cycles(memory: hmem.Memory) -> None:
    memory.add("We moved to Porto.", speaker="Ann")
    home = lives(memory, "Porto", source=0)
    tram = memory.facts.add("Ann", "commutes by", "tram", because=home)
    memory.facts.add("Ann", "lives in", "Porto", because=tram)
    why = memory.facts.why(tram.added[0])
    ((support,),) = why.because
    assert (support.unit.id, support.turns[0].text) == (0, "We moved to Porto.")
    assert support.because[0][0].because == ()
    assert memory.facts.why(1, depth=0).because == ()
    assert memory.facts.rewrite(home.seq).added == (0,)


def test_a_long_chain_is_shown_as_deep_as_is_asked(memory: hmem.Memory) -> None:
    last: Any = ()
    for step in range(120):
        last = memory.facts.add("x", f"step {step}", "done", because=last)
    why, depth = memory.facts.why(last.added[0], depth=100), 0
    while why.because:
        why, depth = why.because[0][0], depth + 1
    assert depth == 100


# -- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"object": "  "}, hmem.InvalidInput, "empty"),
        ({"subject": 7}, hmem.InvalidInput, "subject=7"),
        ({"relation": "r" * 5000}, hmem.InvalidInput, "5000 characters"),
        ({"context": ["work", ""]}, hmem.InvalidInput, "context"),
        ({"valid_from": "2026-02-01", "valid_to": "2026-02-01"}, hmem.InvalidInput, "not before"),
        ({"valid_from": "soon"}, hmem.InvalidInput, "valid_from='soon'"),
        ({"confidence": 1.5}, hmem.InvalidInput, "confidence=1.5"),
        ({"confidence": float("nan")}, hmem.InvalidInput, "confidence=nan"),
        ({"confidence": True}, hmem.InvalidInput, "confidence=True"),
        ({"because": [9]}, hmem.UnitNotFound, "unit 9"),
        ({"because": [1]}, hmem.UnitForgotten, "unit 1"),
        ({"because": "0"}, hmem.InvalidInput, "because='0'"),
        ({"source": 9}, hmem.TurnNotFound, "source=9"),
        ({"source": 1}, hmem.TurnForgotten, "source=1"),
        ({"source": "turn"}, hmem.InvalidInput, "source='turn'"),
        ({"key": ""}, hmem.InvalidInput, "key=''"),
    ],
)
def test_bad_facts_store_nothing(
    memory: hmem.Memory, given: dict[str, Any], error: type[Exception], says: str
) -> None:
    memory.add(["kept", "forgotten"])
    lives(memory, "Porto")
    memory.facts.forget(memory.facts.add("x", "is", "gone").added[0])
    memory.forget(1)
    before = memory.stats().seq
    fact = {"subject": "Ann", "relation": "lives in", "object": "Faro", **given}
    with pytest.raises(error, match=says):
        memory.facts.add(**fact)
    if "key" not in given:
        with pytest.raises(error, match=says):
            memory.facts.add_many([{"subject": "a", "relation": "b", "object": "c"}, fact])
    assert memory.stats().seq == before
    assert [str(unit) for unit in memory.facts.find()] == ["Ann lives in Porto"]


def test_other_bad_calls(memory: hmem.Memory) -> None:
    rewrite = lives(memory, "Porto")
    facts = memory.facts
    for call, error, says in (
        (lambda: facts.get(5), hmem.UnitNotFound, "ids go from 0 to 0"),
        (lambda: facts.get("0"), hmem.InvalidInput, "whole number"),
        (lambda: facts.find(include="some"), hmem.InvalidInput, "active, history, all"),
        (lambda: facts.find(7), hmem.InvalidInput, "subject=7"),
        (lambda: facts.find(limit=-1), hmem.InvalidInput, "limit=-1"),
        (lambda: facts.find(as_of=-1), hmem.InvalidInput, "as_of=-1"),
        (lambda: facts.policy("speaks", "several"), hmem.InvalidInput, "'one' or 'many'"),
        (lambda: facts.alias("a", "A"), hmem.InvalidInput, "same name"),
        (lambda: facts.undo(1), hmem.RewriteNotFound, "entry 1"),
        (lambda: facts.undo(99), hmem.RewriteNotFound, "entry 99"),
        (lambda: facts.rewrite(1), hmem.RewriteNotFound, "1 is not"),
        (lambda: facts.undo(facts.policy("speaks", "many")), hmem.InvalidInput, "set another"),
        (lambda: facts.why(0, depth=1000), hmem.InvalidInput, "depth=1000"),
        (lambda: facts.add_many([{"subject": "a"}]), hmem.InvalidInput, "missing .'object', 'relation'"),
        (lambda: facts.add_many(["fact"]), hmem.InvalidInput, "fact 0 of the list"),
        (lambda: facts.add_many({"subject": "a"}), hmem.InvalidInput, "give a list"),
        (lambda: facts.retract(0, reason=3), hmem.InvalidInput, "reason=3"),
    ):
        with pytest.raises(error, match=says):
            call()
    facts.undo(rewrite)
    with pytest.raises(hmem.InvalidInput, match="taken back already"):
        facts.undo(rewrite)
    with pytest.raises(hmem.InvalidInput, match="retracted already"):
        facts.retract(0)
    with pytest.raises(hmem.InvalidInput, match="cascade='some'"):
        hmem.FactOptions(cascade="some")  # type: ignore[arg-type]


# -- keys, lists, several writers ----------------------------------------------------------------------


def test_a_key_makes_a_retry_harmless(memory: hmem.Memory) -> None:
    first = lives(memory, "Porto", key="k")
    again = lives(memory, "Porto", key="k")
    assert (again.seq, again.added, again.new) == (first.seq, (0,), False)
    facts = [{"subject": "a", "relation": "r", "object": one} for one in "xyz"]
    listed = memory.facts.add_many(facts, key="list")
    assert [one.seq for one in memory.facts.add_many(facts, key="list")] == [one.seq for one in listed]
    assert memory.stats().seq == listed[-1].seq


def test_facts_of_a_list_may_rest_on_those_before_them(memory: hmem.Memory) -> None:
    home = hmem.FactDraft(subject="Ann", relation="lives in", object="Porto")
    tram = hmem.FactDraft(subject="Ann", relation="commutes by", object="tram", because=[home])
    assert [one.added for one in memory.facts.add_many([home, tram])] == [(0,), (1,)]
    assert memory.facts.get(1).supports == ((0,),)
    with pytest.raises(hmem.InvalidInput, match="does not stand before"):
        memory.facts.add_many([tram, home])


def test_another_writer_in_between_is_planned_on(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m") as one, open_memory(tmp_path / "m") as other:
        append = one._store.journal.append
        told = []

        def late(*args: Any, **kwargs: Any) -> int:
            if not told:
                told.append(lives(other, "Porto"))
            return append(*args, **kwargs)

        one._store.journal.append = late  # type: ignore[method-assign]
        rewrite = lives(one, "Faro", valid_from="2026-01-01")
        assert (rewrite.added, rewrite.superseded) == ((1,), (0,))
        assert [unit.object for unit in other.facts.find()] == ["Faro"]


def test_a_new_encoder_embeds_the_names_anew(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m") as memory:
        memory.add("a turn")
        lives(memory, "Porto")
    with open_memory(tmp_path / "m", encoder=hashing_encoder(8), reembed=True) as memory:
        names = memory._store._state.facts.names
        assert names.vectors[names.find("porto")].tolist() == pytest.approx(  # type: ignore[index]
            hashing_encoder(8).embed(["Porto"])[0].tolist(), abs=1e-3
        )
        assert lives(memory, "Faro", valid_from="2026-01-01").superseded == (0,)


def test_awaited() -> None:
    async def main() -> None:
        async with await hmem.AsyncMemory.open(encoder=hashing_encoder()) as memory:
            home = await memory.facts.add("Ann", "lives in", "Porto")
            await memory.facts.add_many(
                [{"subject": "Ann", "relation": "owns", "object": "x", "because": home}]
            )
            assert (await memory.facts.retract(0)).outdated == (1,)
            assert (await memory.facts.why(1)).because[0][0].unit.status == "retracted"
            assert await memory.facts.find("Ann") == []
            await asyncio.gather(*(memory.facts.add("p", f"r{n}", "o") for n in range(8)))
            assert len(await memory.facts.about("p")) == 8

    asyncio.run(main())


def test_times_are_utc(memory: hmem.Memory) -> None:
    lives(memory, "Porto", valid_from="2026-01-01T00:00+01:00")
    assert memory.facts.get(0).valid_from == datetime(2025, 12, 31, 23, tzinfo=UTC)
