"""Programs on events, answered by hand: what becomes of whatever a model replies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmem_core.effects import Ask, Program, drive
from hmem_core.errors import BudgetExceeded, LLMError, LLMRefused, LLMUnavailable, MalformedReply
from hmem_core.events.affiliation import affiliate, clear, nearest
from hmem_core.events.analysis import Analysed, analyse
from hmem_core.events.updating import NEW, Described, Story, describe
from hmem_core.events.wording import sentence, words
from hmem_core.llm.prompts.event_affiliation import Affiliated, Affiliations
from hmem_core.llm.prompts.event_description import Description
from hmem_core.llm.prompts.event_timeline import Item, Timeline
from hmem_core.llm.prompts.rendering import ShownEvent, ShownTurn
from hmem_core.llm.prompts.turn_analysis import Analyses, Analysis
from tests.events.judge import Record, sections

AT = datetime(2026, 3, 2, 10, 5, tzinfo=UTC)


def turn(number: int, text: str = "We moved.") -> ShownTurn:
    return ShownTurn(number, AT, "Ann", text)


def turns(*numbers: int) -> list[ShownTurn]:
    return [turn(number) for number in numbers]


def run(program: Program[Any], answer: Callable[[dict[str, list[Record]]], Any]) -> tuple[Any, list[Ask]]:
    """What the program returns, and what it asked."""
    asked: list[Ask] = []

    def reply(effect: Any) -> Any:
        asked.append(effect)
        return answer(dict(sections(effect)))

    return drive(program, reply), asked


def ids(shown: Sequence[Record]) -> list[int]:
    return [one["id"] for one in shown]


# -- analysis ----------------------------------------------------------------------------------------


def analysed(shown: dict[str, list[Record]]) -> Analyses:
    return Analyses([Analysis(number, f"of {number}") for number in ids(shown["The turns to analyse:"])])


def test_an_analysis_is_bounded_and_rests_on_what_was_shown() -> None:
    def answer(shown: dict[str, list[Record]]) -> Analyses:
        assert ids(shown["Said before:"]) == [3, 4, 5, 6, 7]
        long = Analysis(
            8, "so  much \n talk " * 100, ["Porto", "porto", " ", "…", "x" * 300, *"abcdefghijklm"]
        )
        return Analyses([long, Analysis(8, "again"), Analysis(99, "invented"), Analysis(9, "short")])

    found, asked = run(analyse(turns(8, 9), turns(1, 2, 3, 4, 5, 6, 7), 5), answer)
    assert len(asked) == 1
    first, second = found
    assert first.keywords == ("Porto", *"abcdefghi")
    assert len(first.context) == 400
    assert first.context.startswith("so much talk so")
    assert first.context.endswith("…")
    assert first.read == second.read == (3, 4, 5, 6, 7, 8, 9)
    assert second == Analysed(9, (), "short", (), (), first.read)


def test_turns_that_a_reply_lacks_are_asked_about_again() -> None:
    def answer(shown: dict[str, list[Record]]) -> Analyses:
        return Analyses(analysed(shown).turns[:3])

    found, asked = run(analyse(turns(*range(8)), [], 5), answer)
    assert [one.turn for one in found] == list(range(8))
    assert [one.context for one in found] == [f"of {number}" for number in range(8)]
    assert [len(ids(dict(sections(ask))["The turns to analyse:"])) for ask in asked] == [8, 5, 2]
    assert found[7].read == (1, 2, 3, 4, 5, 6, 7), "the window lies before the turns that were asked about"


def test_one_turn_that_no_model_speaks_of_costs_no_other() -> None:
    def answer(shown: dict[str, list[Record]]) -> Analyses:
        if 5 in ids(shown["The turns to analyse:"]):
            raise MalformedReply("the model refused: no", "refused")
        return analysed(shown)

    found, asked = run(analyse(turns(*range(16)), [], 5), answer)
    assert [one.context for one in found] == ["" if n == 5 else f"of {n}" for n in range(16)]
    assert found[5].read == (5,)
    assert len(asked) == 9  # down to one of sixteen, and the other half each time


@given(st.integers(1, 20), st.randoms())
def test_questions_in_parts_are_bounded(count: int, random: Any) -> None:
    def answer(shown: dict[str, list[Record]]) -> Analyses:
        if random.random() < 0.5:
            raise MalformedReply("the reply is empty", "empty")
        replies = analysed(shown).turns
        return Analyses(random.sample(replies, random.randint(0, len(replies))))

    found, asked = run(analyse(turns(*range(count)), [], 5), answer)
    assert [one.turn for one in found] == list(range(count))
    assert len(asked) <= 2 * count - 1


@pytest.mark.parametrize("error", [LLMUnavailable("down"), BudgetExceeded("over")])
def test_what_was_found_before_a_failure_is_kept(error: LLMError) -> None:
    replies: list[Any] = [None, error]

    def answer(shown: dict[str, list[Record]]) -> Analyses:
        if (failure := replies.pop(0)) is not None:
            raise failure
        return Analyses(analysed(shown).turns[:2])

    found, _ = run(analyse(turns(*range(6)), [], 5), answer)
    assert [one.turn for one in found] == [0, 1]
    replies = [error]
    with pytest.raises(type(error)):
        run(analyse(turns(0, 1), [], 5), answer)


def test_a_wrong_key_is_not_tried_turn_by_turn() -> None:
    asked = []

    def answer(shown: dict[str, list[Record]]) -> Analyses:
        asked.append(len(shown["The turns to analyse:"]))
        raise LLMRefused("no such key (401)")

    with pytest.raises(LLMRefused):
        run(analyse(turns(*range(16)), [], 5), answer)
    assert asked == [16, 8, 4, 2, 1]


# -- affiliation -------------------------------------------------------------------------------------

EVENTS = [ShownEvent(0, "A move."), ShownEvent(3, "A job."), ShownEvent(11, "", ("Ann: a cat",))]


def affiliated(*replies: tuple[int, list[int | str]]) -> Callable[[Any], Affiliations]:
    return lambda shown: Affiliations([Affiliated(*reply) for reply in replies])


def test_numbers_that_were_offered_and_words_for_new_events() -> None:
    reply = affiliated(
        (20, [3]), (21, ["event 0", "#11"]), (22, ["new1"]), (23, ["New 1", 3]), (24, ["new_event_2"])
    )
    found, asked = run(affiliate(turns(20, 21, 22, 23, 24), EVENTS, 11, turns(18, 19), 5), reply)
    assert found == {20: (3,), 21: (0, 11), 22: ("new1",), 23: ("new1", 3), 24: ("new2",)}
    shown = dict(sections(asked[0]))
    assert shown["The event that got a turn last:"] == [{"event": 11}]
    assert ids(shown["Said before:"]) == [18, 19]
    assert shown["The events:"][2] == {"event": 11, "latest": ["Ann: a cat"]}


@pytest.mark.parametrize("invented", [[7], [], ["the move"], [-1, 10**9], ["7", "new!?x"]])
def test_an_answer_that_was_not_offered_means_a_new_event(invented: list[int | str]) -> None:
    found, asked = run(
        affiliate(turns(20, 21), EVENTS, None, [], 5), affiliated((20, invented), (21, invented))
    )
    assert found == {20: ("only20",), 21: ("only21",)}, "each its own"
    assert len(asked) == 1


def test_a_turn_about_which_nothing_can_be_used_begins_an_event() -> None:
    def answer(shown: dict[str, list[Record]]) -> Affiliations:
        raise MalformedReply("the reply is empty", "empty")

    found, asked = run(affiliate(turns(20), EVENTS, None, [], 5), answer)
    assert found == {20: ("only20",)}
    assert len(asked) == 1


def test_new_events_go_on_from_one_part_of_a_question_to_the_next() -> None:
    def answer(shown: dict[str, list[Record]]) -> Affiliations:
        new = ids(shown["The new turns:"])
        if len(new) == 4:
            raise MalformedReply("cut", "cut")
        begun = [event["event"] for event in shown["The events:"] if isinstance(event["event"], str)]
        if not begun:
            return Affiliations([Affiliated(new[0], ["new1"]), Affiliated(new[1], ["new2"])])
        assert begun == ["new1", "new2"]
        return Affiliations([Affiliated(new[0], ["new2"]), Affiliated(new[1], ["new3"])])

    found, asked = run(affiliate(turns(1, 2, 3, 4), EVENTS, None, [], 5), answer)
    assert found == {1: ("new1",), 2: ("new2",), 3: ("new2",), 4: ("new3",)}
    assert len(asked) == 3


def test_many_events_for_one_turn_are_cut() -> None:
    offered = [ShownEvent(number, "e") for number in range(20)]
    found, _ = run(affiliate(turns(1), offered, None, [], 5), affiliated((1, list(range(20)))))
    assert found == {1: (0, 1, 2, 3, 4)}


def test_the_nearest_of_every_turn_are_offered_first() -> None:
    scores = np.array([[0.9, 0.8, 0.7, 0.1, -np.inf], [0.1, 0.2, 0.3, 0.6, -np.inf]], np.float32)
    assert nearest(scores, 1, 24, None) == [0, 3]
    assert nearest(scores, 2, 3, None) == [0, 1, 3]
    assert nearest(scores, 10, 24, 4) == [0, 1, 2, 3, 4], "the last updated one always"
    assert nearest(scores, 10, 1, None) == [0]
    assert nearest(np.empty((2, 0), np.float32), 10, 24, None) == []


def test_what_is_unambiguous_needs_no_question() -> None:
    alone = np.eye(2, dtype=np.float32)
    close = np.array([[1, 0.95], [0.95, 1]], np.float32)

    def rule(scores: list[list[float]], likeness: Any) -> Any:
        return clear(np.array(scores, np.float32).reshape(2, -1), likeness, 0.7, 0.2, 0.2)

    assert rule([[0.9, 0.3], [0.2, 0.8]], alone) == [0, 1]
    assert rule([[0.9, 0.8], [0.2, 0.8]], alone) is None, "too close to the second"
    assert rule([[0.9, 0.3], [0.2, 0.6]], alone) is None, "not near enough"
    assert rule([[0.9, 0.3], [0.1, 0.1]], alone) == [0, "new1"]
    assert rule([[0.9], [0.9]], alone) is None, "there is no second"
    assert rule([[0.1, 0.1], [0.1, 0.1]], alone) == ["new1", "new2"]
    assert rule([[0.1, 0.1], [0.1, 0.1]], close) == ["new1", "new1"]
    assert rule([[0.1, 0.1], [0.9, 0.1]], close) is None, "the new event is as near"
    assert rule([[], []], alone) == ["new1", "new2"]
    assert rule([[], []], np.array([[1, 0.5], [0.5, 1]], np.float32)) is None


# -- updating ----------------------------------------------------------------------------------------


def story(known: int = 0, unread: int = 1, summary: str | None = None) -> Story:
    rows = tuple(range(known + unread))
    return Story(4, summary, (), rows[:known] if summary else (), rows[:known], rows[known:])


def tell(one: Story, answer: Callable[[dict[str, list[Record]]], Any]) -> tuple[Described, list[Ask]]:
    described, asked = run(describe(one, turn, 10), answer)
    assert isinstance(described, Described)
    return described, asked


def test_a_small_event_is_described_anew_from_all_its_turns() -> None:
    def answer(shown: dict[str, list[Record]]) -> Description:
        assert shown["The event so far:"] == [{"event": 4, "summary": "Before."}]
        assert ids(shown["Turns that were read before:"]) == list(range(9))
        items = [
            Item(9, "Ann moved.", "2026-03-01"),
            Item(9, "Ann moved."),
            Item(0, "old"),
            Item(77, "invented"),
            Item(9, " \n"),
        ]
        return Description(" A\nmove. ", ["Porto"], ["home"], ["Ann"], items)

    described, _ = tell(story(9, 1, "Before."), answer)
    assert described.summary == "A move."
    assert described.timeline == ((9, "2026-03-01", "Ann moved."),)
    assert described.read == tuple(range(10))


def test_a_large_event_gains_in_its_timeline_alone() -> None:
    def answer(shown: dict[str, list[Record]]) -> Timeline:
        assert shown["The event:"] == [{"event": 4, "summary": "Frozen."}]
        return Timeline([Item(10, "One."), Item(10, "Two."), Item(10, "Three."), Item(10, "Four.")])

    described, asked = tell(story(10, 1, "Frozen."), answer)
    assert [ask.purpose for ask in asked] == ["event_timeline"]
    assert described.summary is None
    assert [line.fact for line in described.timeline] == ["One.", "Two.", "Three."]


def test_an_empty_summary_says_nothing() -> None:
    described, _ = tell(story(3, 2, "Before."), lambda shown: Description(" \n ", ["k"]))
    assert described.summary is None


def test_a_large_event_without_a_summary_gets_one_from_its_latest_turns() -> None:
    def answer(shown: dict[str, list[Record]]) -> Description:
        assert len(shown["The new turns:"]) == NEW
        known = shown["Turns that were read before:"]
        return Description(f"of {len(known)}")

    described, _ = tell(story(300, 300), answer)
    assert described.summary == "of 8"
    assert described.read == tuple(range(292, 300 + NEW))


def test_of_turns_that_no_model_speaks_of_the_first_counts_as_read() -> None:
    asked = []

    def answer(shown: dict[str, list[Record]]) -> Description:
        asked.append(len(shown["The new turns:"]))
        raise MalformedReply("refused", "refused")

    described, _ = tell(story(2, 24), answer)
    assert asked == [24, 6, 1]
    assert described == Described(4, None, (), (), (), (), (2,))
    with pytest.raises(LLMUnavailable):
        run(describe(story(), turn, 10), _down)
    with pytest.raises(LLMRefused):
        run(describe(story(), turn, 10), _refused)


def _down(shown: object) -> Any:
    raise LLMUnavailable("down")


def _refused(shown: object) -> Any:
    raise LLMRefused("no such key")


# -- wording -----------------------------------------------------------------------------------------


@given(st.text(), st.integers(2, 50))
def test_a_sentence_is_one_line_within_its_bound(text: str, longest: int) -> None:
    found = sentence(text, longest)
    assert len(found) <= longest
    assert len(found.splitlines()) <= 1
    found.encode()
    assert sentence(found, longest) == found


def test_lone_surrogates_do_not_reach_the_journal() -> None:
    assert sentence("a\ud800b", 10) == "a?b"
    assert words(["a\ud800b", "??", "Ab", "aB"]) == ("a?b", "Ab")
