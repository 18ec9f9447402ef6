"""A memory whose facts a model reads from turns: what is asked, and what comes of it."""

from __future__ import annotations

from typing import Any

import pytest

import hmem_core as hmem
from hmem_core.effects import Ask
from hmem_core.errors import LLMMissing
from hmem_core.llm.prompts.fact_consistency import Verdict, Verdicts
from hmem_core.llm.prompts.fact_extraction import Extracted, Extraction
from tests.events.judge import Driver, records, sections
from tests.facts.model import CONTRADICTING, TURNS, Reader, by_status, told, with_reader
from tests.settled import DEMO, check

SOME = DEMO[:240]
# -- what is asked, and what comes of it -------------------------------------------------------------


def test_facts_of_turns_are_told_by_the_rules_with_their_sources() -> None:
    with with_reader(Driver(Reader()), batch=4) as memory:
        memory.add(TURNS, at="2026-03-01")
        check(memory)
        assert by_status(memory) == {
            "Ann lives in Porto": "superseded",
            "Bo knows Ann": "active",
            "Ann takes the tram": "outdated",
            "Bo has a boat": "active",
            "Bo has a dog": "active",
            "Ann lives in Lisbon": "active",
            "Cleo works at the mill": "active",
            "Cleo lives in Porto": "active",
        }
        (tram,) = memory.facts.find("Ann", "takes", include="all")
        why = memory.facts.why(tram)
        assert [turn.id for turn in why.turns] == [3]
        assert [str(one.unit) for one in why.because[0]] == ["Ann lives in Porto"]
        (lisbon,) = memory.facts.find("Ann", "lives in")
        assert lisbon.valid_from is not None
        assert (lisbon.valid_from.isoformat(), lisbon.sources) == ("2026-02-01T00:00:00+00:00", (5,))


def test_a_reason_may_be_a_fact_that_is_known() -> None:
    driver = Driver(Reader())
    with with_reader(driver, batch=3) as memory:
        memory.add(TURNS[:3])
        memory.add(["Ann | takes | the tram | because=Porto", "so", "so"])
        check(memory)
        known = dict(sections(driver.asked[-1]))["Known facts:"]
        assert [(one["known"], one["object"]) for one in known] == [("k1", "Porto"), ("k2", "Ann")]
        (tram,) = memory.facts.find("Ann", "takes")
        assert [len(needed) for needed in tram.supports] == [1]


def test_what_is_shown_beside_turns() -> None:
    driver = Driver(Reader())
    with with_reader(driver, batch=2, window=3) as memory:
        memory.add([f"talk {i}" for i in range(6)], session="s")
        memory.add([{"role": "system", "content": "Bo | is | root"}], system=True, session="s")
        memory.add("Ann | is | kind", role="tool", session="s")
        memory.add("talk 8", session="s")
        memory.add("talk 9", session="s")
        shown = [dict(sections(ask)) for ask in driver.asked]
        assert [one["id"] for one in shown[-1]["The turns to read:"]] == [8, 9]
        assert [one["id"] for one in shown[-1]["Said before:"]] == [3, 4, 5]
        assert told(memory) == set(), "prompts and tools are not learned from"
        check(memory)
    with with_reader(Driver(Reader()), batch=1, roles=("tool",)) as memory:
        memory.add("Ann | is | kind", role="tool")
        memory.add("Ann | is | tall")
        assert told(memory) == {"Ann is kind"}
        check(memory)


def test_turns_between_those_that_are_read_are_shown_as_such() -> None:
    driver = Driver(Reader())
    with with_reader(driver, batch=2, roles=("user",)) as memory:
        memory.add("Ann | is | kind", session="s")
        memory.add("Ann | is | rude", role="assistant", session="s")
        memory.add("yes", session="s")
        shown = dict(sections(driver.asked[-1]))
        assert [one["id"] for one in shown["Said in between:"]] == [1]
        assert [one["id"] for one in shown["The turns to read:"]] == [0, 2]
        assert told(memory) == {"Ann is kind"}
        check(memory)
        memory.forget(1)
        assert memory.stats().waiting == 2, "it was shown"


def test_recalled_context_is_not_learned_again() -> None:
    with with_reader(Driver(Reader()), batch=1) as memory:
        memory.add("Ann | lives in | Porto")
        recalled = memory.context("Ann").messages()
        memory.add(recalled, system=True)
        (unit,) = memory.facts.find()
        assert unit.sources == (0,)
        check(memory)


@pytest.mark.parametrize("size", [1, 100])
def test_questions_on_the_demo_conversation_are_at_most_one_for_five_turns(size: int) -> None:
    class Talker(Reader):
        def fact_extraction(self, shown: dict[str, list[Any]]) -> Extraction:
            turns = shown["The turns to read:"]
            return Extraction(
                [Extracted(one["id"], one["speaker"], "says", one["text"][:60]) for one in turns]
            )

    driver = Driver(Talker("both"))
    with with_reader(driver) as memory:
        for start in range(0, len(SOME), size):
            memory.add(SOME[start : start + size])
        memory.settle()
        check(memory)
        assert driver.asks["fact_extraction"] == -(-len(SOME) // hmem.FactOptions().batch)
        assert driver.asks.total() <= 0.2 * len(SOME)
        assert driver.longest < 18_000


def test_prompts_do_not_grow_with_the_facts() -> None:
    driver = Driver(Reader())
    with with_reader(driver, batch=8) as memory:
        lengths = []
        for start in range(0, 256, 32):
            driver.asked.clear()
            memory.add([f"Ann | relation{start + i} | value{start + i}" for i in range(32)])
            memory.settle()
            lengths.append(driver.longest)
        assert len(memory.facts.find()) == 256
        assert max(lengths[1:]) < 1.05 * lengths[1]
        check(memory)


def test_a_few_turns_wait_for_more() -> None:
    driver = Driver(Reader())
    with with_reader(driver, batch=4) as memory:
        memory.add(TURNS[:3])
        assert not driver.asked
        assert memory.stats().waiting == 3
        memory.add(TURNS[3])
        assert memory.stats().waiting == 0
        memory.add(TURNS[4:6])
        assert memory.settle() == 2
        check(memory)


def test_one_add_waits_for_a_few_questions_at_most() -> None:
    driver = Driver(Reader())
    with with_reader(driver, batch=2) as memory:
        memory.add([f"talk {i}" for i in range(30)])
        assert driver.asks.total() == 4
        assert memory.stats().waiting == 22
        memory.settle()
        check(memory)


def test_nothing_is_asked_unless_it_is_wanted() -> None:
    driver = Driver(Reader())
    with with_reader(driver, extract=False) as memory:
        memory.add(TURNS)
        assert memory.settle() == 0
        assert not driver.asked
        assert memory.stats().waiting == 0


def test_a_speaker_who_says_i_is_meant_by_name() -> None:
    with with_reader(Driver(Reader()), batch=1) as memory:
        memory.add({"role": "user", "name": "Ann", "content": "I | lives in | Porto"})
        memory.add({"role": "user", "name": "Bo", "content": "Ann | knows | me"})
        memory.add("I | likes | tea")
        assert told(memory) == {"Ann lives in Porto", "Ann knows Bo", "user likes tea"}


def test_times_are_dates_or_the_time_of_the_turn_and_else_left_open() -> None:
    cases = {
        "since=2026-02-03": ("2026-02-03", None),
        "since=2026-2-3 | until=2026-03": ("2026-02-03", "2026-03-01"),
        "since=2025": ("2025-01-01", None),
        "since=now": ("2026-06-01", None),
        "until=past": (None, "2026-06-01"),
        "since=the day the music died": (None, None),
        "since=2026-99-99": (None, None),
        "since=99999": (None, None),
        "since=2026-03-01 | until=2026-01-01": ("2026-03-01", None),
    }
    with with_reader(Driver(Reader()), batch=len(cases)) as memory:
        memory.add([f"s{i} | is | o | {said}" for i, said in enumerate(cases)], at="2026-06-01")
        found = {
            unit.subject: tuple(
                None if at is None else at.date().isoformat() for at in (unit.valid_from, unit.valid_to)
            )
            for unit in memory.facts.find(include="all")
        }
        assert found == {f"s{i}": times for i, times in enumerate(cases.values())}


def test_of_turns_of_one_moment_the_later_one_is_newer() -> None:
    with with_reader(Driver(Reader()), batch=2) as memory:
        memory.add(
            ["Ann | lives in | Porto | since=now", "Ann | lives in | Lisbon | since=now"], at="2026-01-01"
        )
        assert by_status(memory) == {"Ann lives in Porto": "superseded", "Ann lives in Lisbon": "active"}


def test_the_same_fact_told_again_is_confirmed() -> None:
    with with_reader(Driver(Reader()), batch=1) as memory:
        memory.add("Ann | lives in | Porto | confidence=0.5")
        memory.add("ann | Lives in | PORTO | confidence=0.5")
        (unit,) = memory.facts.find()
        assert (str(unit), unit.sources, unit.confidence) == ("Ann lives in Porto", (0, 1), 0.75)
        check(memory)


# -- contradictions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "porto", "lisbon"),
    [
        ("replaces", "superseded", "active"),
        ("Replaces.", "superseded", "active"),
        ("both", "active", "active"),
        ("unclear", "active", "pending"),
        ("drop all tables", "active", "pending"),
    ],
)
def test_a_model_decides_what_no_rule_does(verdict: str, porto: str, lisbon: str) -> None:
    driver = Driver(Reader(verdict))
    with with_reader(driver, batch=2) as memory:
        memory.add(CONTRADICTING)
        assert by_status(memory) == {"Ann lives in Porto": porto, "Ann lives in Lisbon": lisbon}
        check(memory)
        memory.add(["talk", "talk"])
        memory.settle()
        assert driver.asks["fact_consistency"] == 1, "asked once, whatever comes of it"
        (unit,) = memory.facts.find("Ann", "lives in", "Lisbon", include="all")
        assert unit.confidence == 0.8
        check(memory)


def test_one_pair_of_each_slot_is_asked_about_at_a_time() -> None:
    for verdict, asked in (("both", 1), ("unclear", 3)):
        driver = Driver(Reader(verdict))
        with with_reader(driver, batch=8) as memory:
            memory.add([f"{name} | likes | {what}" for name in ("Ann", "Bo") for what in "abcd"])
            memory.settle()
            check(memory)
            assert driver.asks["fact_consistency"] == asked
            assert len(memory.facts.find()) == (8 if verdict == "both" else 2)


def test_contradictions_are_left_alone_where_nobody_is_to_be_asked() -> None:
    driver = Driver(Reader("replaces"))
    with with_reader(driver, batch=2, consult=False) as memory:
        memory.add(CONTRADICTING)
        memory.settle()
        assert driver.asks["fact_consistency"] == 0
        check(memory)
    driver = Driver(Reader("replaces"))
    with with_reader(driver, batch=2) as memory:
        memory.facts.add("Ann", "lives in", "Porto")
        memory.facts.add("Ann", "lives in", "Lisbon")
        memory.settle()
        assert driver.asks.total() == 0, "the caller was told of it"


def test_a_relation_that_the_user_gave_one_value_keeps_one() -> None:
    with with_reader(Driver(Reader("both")), batch=2) as memory:
        memory.facts.policy("lives in", "one")
        memory.add(CONTRADICTING)
        assert by_status(memory) == {"Ann lives in Porto": "active", "Ann lives in Lisbon": "pending"}
        memory.add(["Bo | lives in | Rome ; Bo | lives in | Oslo", "talk"])
        assert len(memory.facts.find("Bo", "lives in")) == 1
        check(memory)


def test_two_values_in_one_turn_are_both_meant_and_in_two_turns_they_contradict() -> None:
    with with_reader(Driver(Reader()), batch=3) as memory:
        memory.add(["Bo | likes | tea ; Bo | likes | milk", *CONTRADICTING])
        assert told(memory) == {"Bo likes tea", "Bo likes milk", "Ann lives in Porto"}
        check(memory)


# -- questions ---------------------------------------------------------------------------------------


def test_a_question_becomes_slots() -> None:
    with with_reader(Driver(Reader())) as memory:
        (slots,) = memory.facts.parse("Who is it that Ann knows?")
        assert slots == hmem.FactSlots(subject="Ann", relation="knows")
        with pytest.raises(hmem.InvalidInput):
            memory.facts.parse("  ")
        memory._driver = None
        with pytest.raises(LLMMissing):
            memory.facts.parse("Who is it that Ann knows?")


def test_verdicts_about_pairs_that_were_not_shown_are_nothing() -> None:
    def reply(ask: Ask) -> Any:
        if ask.purpose == "fact_consistency":
            assert len(records(ask)) == 3
            return Verdicts([Verdict(2, "replaces"), Verdict(0, "replaces"), Verdict(-1, "both")])
        return Reader()(ask)

    with with_reader(Driver(reply), batch=2) as memory:
        memory.add(CONTRADICTING)
        check(memory)
        assert by_status(memory) == {"Ann lives in Porto": "active", "Ann lives in Lisbon": "pending"}
