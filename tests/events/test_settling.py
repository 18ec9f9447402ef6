"""A memory whose events a model makes: what is asked, what is stored, and what forgetting takes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hmem_core as hmem
from hmem_core.effects import Ask
from hmem_core.interfaces import demo
from hmem_core.journal.entries import TurnsLinked
from hmem_core.llm.prompts.event_description import Description
from hmem_core.llm.prompts.turn_analysis import Analyses, Analysis
from tests.events.judge import (
    TURNS,
    Driver,
    Judge,
    Record,
    by_word,
    events,
    records,
    sections,
    turns_of,
    with_judge,
)
from tests.helpers import files_holding
from tests.settled import DEMO, check
from tests.test_replay import assert_same, replayed

USUAL = hmem.EventOptions()


# -- how much is asked -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 16, 400])
def test_batched_questions_on_the_demo_conversation_are_at_most_one_for_two_turns(size: int) -> None:
    driver = Driver(Judge.by_session(DEMO))
    with with_judge(driver, sure=USUAL.sure, far=USUAL.far) as memory:
        for start in range(0, len(DEMO), size):
            memory.add(DEMO[start : start + size])
        memory.settle()
        check(memory)
        assert driver.asks.total() <= 0.5 * len(DEMO)
        assert driver.longest < 20_000
        sessions = [turn["session"] for turn in DEMO]
        for event in range(events(memory).links.events):
            turns = turns_of(memory, event)
            session = sessions[turns[0]]
            assert turns == [row for row, one in enumerate(sessions) if one == session], "as the judge says"


def test_few_questions_find_the_evidence_that_the_papers_many_find() -> None:
    """By the same judgements, the default mode loses no evidence that the faithful one finds, neither among
    the turns that a search by events shows nor in the three nearest events."""
    questions = json.loads((Path(demo.__file__).parent / "questions.json").read_text())
    found: dict[bool, list[float]] = {}
    for faithful in (True, False):
        driver = Driver(Judge.by_session(DEMO))
        with with_judge(driver, sure=USUAL.sure, far=USUAL.far, faithful=faithful) as memory:
            for start in range(0, len(DEMO), 16):
                memory.add(DEMO[start : start + 16])
            memory.settle()
            asked = driver.asks.total() / len(DEMO)
            assert asked > 2.9 if faithful else asked <= 0.5
            keys = {turn.id: turn.key for turn in memory.turns()}
            found[faithful] = []
            for question in questions:
                if gold := set(question["evidence"]):
                    hits = memory.search(question["question"], 8, view="events")
                    got = {keys[turn] for hit in hits for turn in hit.turns}
                    events = memory.events.search(question["question"], 3)
                    read = {keys[turn] for event in events for turn in event.turns}
                    found[faithful] += [len(gold & got) / len(gold), len(gold & read) / len(gold)]
    assert sum(found[False]) >= sum(found[True]) > 0


def test_the_faithful_mode_asks_what_the_paper_does() -> None:
    some = DEMO[:60]
    judge = Judge.by_session(some)
    topics = judge.topics
    both = {turn["content"][:60] for turn in some[10:25]}  # a quarter of the turns belong to two events
    judge.topics = lambda turn: [*topics(turn), *(["plans"] if turn["text"][:60] in both else [])]
    driver = Driver(judge)
    with with_judge(driver, faithful=True) as memory:
        for turn in some:
            memory.add(turn)
        check(memory)
        links = len(events(memory).links.turn)
        assert links == 75
        updates = driver.asks["event_description"] + driver.asks["event_timeline"]
        assert driver.asks["turn_analysis"] == 60
        assert driver.asks["event_affiliation"] == 59, "the first turn has nothing to choose"
        assert updates == links
        assert driver.asks.total() / 60 == pytest.approx(3.25, abs=0.02)
        large = sum(max(len(turns_of(memory, one)) - 10, 0) for one in range(events(memory).links.events))
        assert driver.asks["event_timeline"] == large, "the turns after the tenth of an event"
        for ask in driver.asked:
            shown = dict(sections(ask))
            if ask.purpose == "turn_analysis":
                assert len(shown["The turns to analyse:"]) == 1
                assert len(shown.get("Said before:", ())) <= 5
            if ask.purpose == "event_affiliation":
                assert len(shown["The events:"]) <= 11


def test_any_way_of_adding_gives_the_same_events_by_the_same_judgements() -> None:
    found = []
    for options, size in (({}, 1), ({}, 30), ({"batch": 3}, 7), ({"faithful": True}, 4)):
        with with_judge(Driver(Judge(by_word)), **options) as memory:
            for start in range(0, len(TURNS), size):
                memory.add(TURNS[start : start + size])
            memory.settle()
            check(memory)
            found.append([turns_of(memory, event) for event in range(events(memory).links.events)])
    assert found[0] == [[*range(6), *range(18, 24)], [*range(6, 12), *range(24, 30)], [*range(12, 18)]]
    assert all(one == found[0] for one in found)


def test_turns_that_are_near_one_event_alone_need_no_question() -> None:
    driver = Driver(Judge(by_word))
    with with_judge(driver, sure=0.6, margin=0.2, batch=4, describe=False) as memory:
        memory.add(["topica apples pears plums"] * 4)
        memory.add(["topicb engines wheels brakes"] * 4)
        asked = driver.asks.total()
        memory.add(["topica apples pears plums again"] * 4)
        assert driver.asks.total() == asked == 2
        assert turns_of(memory, 0) == [0, 1, 2, 3, 8, 9, 10, 11]
        check(memory)


def test_a_few_turns_wait_for_more() -> None:
    driver = Driver(Judge(by_word))
    with with_judge(driver, batch=8) as memory:
        memory.add(TURNS[:7])
        assert not driver.asked
        assert memory.stats().waiting == 7
        memory.add(TURNS[7])
        assert memory.stats().waiting == 0
        memory.add(TURNS[8:12])
        assert memory.stats().waiting == 4
        assert memory.settle() == 4 + 4 + 1
        check(memory)


def test_analyses_and_descriptions_are_what_the_model_says() -> None:
    with with_judge(Driver(Judge(by_word))) as memory:
        memory.add([{"role": "user", "name": "Ann", "content": text} for text in TURNS])
        memory.settle()
        analysis = events(memory).analysis_of(13)
        assert analysis is not None
        assert (analysis.context, analysis.keywords, analysis.tags) == ("Ann speaks", ("c",), ("tag",))
        told = events(memory).descriptions_of(2)
        assert [entry.summary for entry in told] == ["This is about c."] * 2, "once in add, once to settle"
        assert [[item.turn for item in entry.timeline] for entry in told] == [[12, 13, 14, 15], [16, 17]]
        assert told[0].timeline[0].fact == "Ann said: topicc number 0"
        view = events(memory).descriptions
        place = view.subjects.tolist().index(2)
        encoded = memory._encoder.embed([told[1].index_text])[0]
        assert view.vectors[0][view.vector_rows[place]] == pytest.approx(encoded, abs=1e-3)


def test_without_descriptions_only_links_are_asked_for() -> None:
    driver = Driver(Judge(by_word))
    with with_judge(driver, describe=False) as memory:
        memory.add(TURNS)
        memory.settle()
        check(memory)
        assert set(driver.asks) == {"event_affiliation"}
    driver = Driver(Judge(by_word))
    with with_judge(driver, affiliation="cosine") as memory:
        memory.add(TURNS)
        memory.settle()
        check(memory)
        assert set(driver.asks) == {"turn_analysis", "event_description"}


# -- shapes of events --------------------------------------------------------------------------------


def test_one_giant_event_keeps_prompts_small() -> None:
    driver = Driver(Judge(lambda turn: ["all"]))
    with with_judge(driver) as memory:
        lengths = []
        for start in range(0, 960, 96):
            driver.asked.clear()
            memory.add([f"remark {start + i} on the one thing there is" for i in range(96)])
            memory.settle()
            lengths.append(driver.longest)
        check(memory)
        assert len(turns_of(memory, 0)) == 960
        assert max(lengths) < 6_000
        assert max(lengths[1:]) < 1.1 * lengths[1], "once its summary is frozen"
        told = events(memory).descriptions_of(0)
        assert sorted(item.turn for entry in told for item in entry.timeline) == list(range(960))
        assert max(len(entry.read) for entry in told) <= 32 + 24, "what is stored for each is bounded too"


def test_a_thousand_events_of_one_turn() -> None:
    driver = Driver(Judge(lambda turn: [turn["text"].split()[0]]))
    with with_judge(driver) as memory:
        for start in range(0, 1000, 100):
            memory.add([f"subject{start + i} is all that this turn speaks of" for i in range(100)])
        memory.settle()
        check(memory)
        assert events(memory).links.events == 1000
        assert driver.longest < 20_000
        for ask in driver.asked:
            assert len(records(ask)) <= 24 + 1 + 5 + 16
        assert driver.asks["event_description"] == 1000


def test_two_events_that_merge() -> None:
    driver = Driver(Judge(by_word))
    with with_judge(driver) as memory:
        memory.add([*TURNS[:12], "topica and topicb are one now", "both topica and topicb", *["topicc"] * 2])
        memory.settle()
        check(memory)
        assert turns_of(memory, 0) == [*range(6), 12, 13]
        assert turns_of(memory, 1) == [*range(6, 14)]
        for event in (0, 1):
            facts = [item.turn for entry in events(memory).descriptions_of(event) for item in entry.timeline]
            assert facts[-2:] == [12, 13], "both tell of it"


# -- forgetting --------------------------------------------------------------------------------------


def test_forgetting_a_turn_takes_what_rested_on_it_and_makes_it_due_again(tmp_path: Path) -> None:
    class Quoting(Judge):
        def event_description(self, shown: dict[str, list[Record]]) -> Description:
            told = super().event_description(shown)
            quoted = " ".join(turn["text"] for turn in shown["The new turns:"])
            return Description(f"{quoted[:300]}. {told.summary}", ["secret"], [], [], told.timeline)

        def turn_analysis(self, shown: dict[str, list[Record]]) -> Analyses:
            quoted = " ".join(one["text"] for some in shown.values() for one in some)
            return Analyses([Analysis(one["id"], quoted) for one in shown["The turns to analyse:"]])

    driver = Driver(Quoting(by_word))
    with with_judge(driver, tmp_path / "m", batch=4) as memory:
        memory.add([*TURNS[:5], "topica the kumquat secret", *TURNS[6:12]])
        memory.settle()
        assert files_holding(tmp_path, "kumquat")
        memory.checkpoint()
        memory.forget(5)
        assert files_holding(tmp_path, "kumquat") == []
        assert memory.stats().waiting > 0
        assert_same(memory._store._state.arrays(), replayed(memory).arrays())
        memory.settle()
        check(memory)
        assert files_holding(tmp_path, "kumquat") == []
        assert turns_of(memory, 0) == [0, 1, 2, 3, 4, 5], "the link is a number, and stays"
        facts = [item.turn for entry in events(memory).descriptions_of(0) for item in entry.timeline]
        assert sorted(facts) == [0, 1, 2, 3, 4]
        assert all(events(memory).analysis_of(turn) for turn in range(12) if turn != 5)
        memory.forget([0, 1, 2, 3, 4])
        memory.settle()
        check(memory)
        assert events(memory).descriptions_of(0) == []


@pytest.mark.parametrize("faithful", [False, True])
def test_a_turn_that_is_forgotten_while_the_model_reads_it_is_in_nothing(
    tmp_path: Path, faithful: bool
) -> None:
    judge = Judge(by_word)
    victims = {"turn_analysis": 3, "event_affiliation": 8, "event_description": 10}

    with with_judge(Driver(judge), tmp_path / "m", faithful=faithful) as memory:

        def meanwhile(ask: Ask) -> Any:
            shown = [one.get("id") for one in records(ask)]
            if victims.get(ask.purpose, -1) in shown:
                memory.forget(victims.pop(ask.purpose))
            return judge(ask)

        driver = Driver(meanwhile)
        memory._driver = driver  # type: ignore[assignment]
        memory.add(TURNS[:12])
        memory.settle()
        assert not victims
        check(memory)
        assert not {3, 8, 10} & {
            item.turn
            for event in range(2)
            for entry in events(memory).descriptions_of(event)
            for item in entry.timeline
        }
        linked = [entry for _, entry in memory._store.journal.read() if isinstance(entry, TurnsLinked)]
        assert sum(len(entry.links) for entry in linked) >= 9
