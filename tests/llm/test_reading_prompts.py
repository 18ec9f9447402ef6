"""Prompts of guided search and of answers: as `test_prompts` for those that build a memory."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmem_core.effects import Ask
from hmem_core.llm.prompts import (
    answer_verdict,
    question_keywords,
    short_answer,
    turn_filter,
    turn_prediction,
)
from hmem_core.llm.prompts.rendering import QUOTED, Prompt, ShownEvent, ShownFact, ShownTurn, share
from hmem_core.llm.prompts.turn_prediction import Opened
from hmem_core.llm.replies import parse_reply
from hmem_core.llm.schemas import json_schema
from tests.llm.test_prompts import HOSTILE, flat, holds_exactly, hostile, records, shared, short, turn, turns

PROMPTS = [
    question_keywords.PROMPT,
    turn_prediction.PROMPT,
    turn_filter.PROMPT,
    short_answer.PROMPT,
    answer_verdict.PROMPT,
]
some = st.lists(turns.filter(short), min_size=1, max_size=4)


def event(number: int, *shown: ShownTurn, summary: str = "A move.", left_out: int = 0) -> Opened:
    return Opened(id=number, summary=summary, turns=shown, left_out=left_out)


def without_question(ask: Ask, question: str, place: int = 0) -> Ask:
    """`ask` without the record of its question, whose place is checked."""
    lines = ask.messages[1].content.split("\n")
    found = [number for number, one in enumerate(lines) if one.startswith('{"question"')]
    assert [json.loads(lines[number]) for number in found] == [{"question": question}]
    del lines[found[0]]
    return Ask(ask.purpose, (ask.messages[0], type(ask.messages[1])("user", "\n".join(lines))), ask.schema)


@given(hostile, some)
def test_the_filter_and_the_answer_show_exactly_the_turns(question: str, shown: list[ShownTurn]) -> None:
    holds_exactly(without_question(turn_filter.ask(question, shown), question), shown, 3)
    holds_exactly(without_question(short_answer.ask(question, shown), question), shown, 3)


@given(hostile, hostile, some, some)
def test_prediction_shows_exactly_the_events_and_their_turns(
    question: str, summary: str, first: list[ShownTurn], second: list[ShownTurn]
) -> None:
    fact = ShownFact(first[0].id, "2026-03-02", summary)
    events = [
        Opened(id=1, summary=summary, facts=(fact,), turns=tuple(first)),
        Opened(id=2, turns=tuple(second)),
    ]
    ask = without_question(turn_prediction.ask(question, events), question)
    expected = [ShownEvent(1, summary), fact, *first, ShownEvent(2, ""), *second]
    holds_exactly(ask, expected, 1 + 2 * 3)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_changes_only_its_own_string(text: str) -> None:
    def asks(text: str) -> list[Ask]:
        shown = [turn(text=text, speaker=text)]
        return [
            question_keywords.ask(text),
            turn_prediction.ask(text, [event(1, *shown, summary=text)]),
            turn_filter.ask(text, shown),
            short_answer.ask(text, shown),
            answer_verdict.ask(text, text, text),
        ]

    for mild, wild in zip(asks("mild"), asks(text), strict=True):
        assert wild.messages[0] == mild.messages[0]
        kept = [
            [one for one in ask.messages[1].content.split("\n") if one[:1] != "{"] for ask in (mild, wild)
        ]
        assert kept[0] == kept[1]
        assert [replaced(one, text) for one in records(wild)] == [
            replaced(one, "mild") for one in records(mild)
        ]


def replaced(record: dict[str, Any], text: str) -> dict[str, Any]:
    return {name: "<text>" if value == text else value for name, value in record.items()}


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.name)
def test_a_prompt_is_complete(prompt: Prompt) -> None:
    assert QUOTED in prompt.system
    schema = json_schema(prompt.reply)
    for name in schema["schema"]["properties"]:
        assert f'"{name}": ' in prompt.system, "the form of the reply is shown"
    assert schema["strict"]


# The system messages by name and version. If one changes on purpose, raise its version and set this anew.
WORDS = {
    ("question_keywords", 1): "e4eecb16d3037a2e",
    ("turn_prediction", 1): "591ce29a822a064a",
    ("turn_filter", 1): "716a51dfa3464804",
    ("short_answer", 1): "86594a73472e1b46",
    ("answer_verdict", 1): "263d1f509840c3c9",
}


def test_no_prompt_changes_without_its_version() -> None:
    found = {(one.name, one.version): hashlib.sha256(one.system.encode()).hexdigest()[:16] for one in PROMPTS}
    assert found == WORDS


def test_questions_put_together_share_what_they_can() -> None:
    predictions = [turn_prediction.ask("Where to?", [event(n, turn(n))]) for n in (1, 2)]
    filters = [turn_filter.ask("Where to?", [turn(n)]) for n in (1, 2)]
    for asks in (predictions, filters):
        assert "Where to?" in shared(*asks)
    # An answer's turns come before the question, as several questions may be put about the same turns.
    assert "We moved to Porto." in shared(*(short_answer.ask(one, [turn()]) for one in ("Who?", "When?")))


def test_prompts_are_bounded() -> None:
    long = [turn(number, "a" * 5000, "b" * 500) for number in range(128)]
    facts = tuple(ShownFact(number, "2026", "c" * 5000) for number in range(64))
    events = [Opened(id=1, summary="d" * 9000, facts=facts, turns=tuple(long), left_out=900)]
    for ask in (
        turn_prediction.ask("q" * 10**6, events),
        turn_filter.ask("q" * 10**6, long),
        short_answer.ask("q" * 10**6, long),
        question_keywords.ask("q" * 10**6),
        answer_verdict.ask("q" * 10**6, "e" * 10**6, "f" * 10**6),
    ):
        assert len(flat(ask)) < 64_000
        assert ask.max_tokens <= 512
    assert records(turn_prediction.ask("q", events))[-1] == {"left_out": 900}


@given(st.lists(st.integers(0, 3000), max_size=40), st.integers(0, 20_000))
def test_what_short_texts_leave_goes_to_long_ones(lengths: list[int], total: int) -> None:
    def taken(limit: int) -> int:
        return sum(min(length, limit) for length in lengths)

    limit = share(lengths, total)
    assert taken(limit) <= total
    assert limit == 1200 or taken(limit + 1) > total


def test_a_long_turn_among_short_ones_is_shown_whole() -> None:
    shown = [turn(number, "short") for number in range(40)] + [turn(99, "a" * 1100 + "z")]
    assert records(turn_filter.ask("Which?", shown))[-1]["text"].endswith("az")


def test_speakers_and_times_stand_beside_every_turn() -> None:
    shown = [turn(1, "Yes.", "Ann"), turn(2, "No.", "Bo"), turn(3, "Maybe.", "Cy"), turn(4, "Well.", None)]
    for ask in (turn_filter.ask("Who agreed?", shown), turn_prediction.ask("Who?", [event(1, *shown)])):
        found = [(one.get("speaker"), one["time"]) for one in records(ask) if "text" in one]
        assert found == [(name, "2026-03-02T10:05Z") for name in ("Ann", "Bo", "Cy", None)]


def test_ids_are_read_as_they_come_and_only_those_offered_count() -> None:
    shown = [turn(number) for number in (3, 5, 8)]
    said = '{"turns": ["#5", 5, "turn 3", 99, -1, "all of them", "5"]}'
    assert turn_filter.named(parse_reply(said, turn_filter.Kept), shown) == [5, 3]
    events = [event(1, shown[0]), event(2, shown[1], shown[2])]
    assert turn_prediction.named(parse_reply(said, turn_prediction.Predicted), events) == [5, 3]
    assert turn_filter.named(parse_reply('{"turns": []}', turn_filter.Kept), shown) == []


def test_keywords_are_used_once_and_bounded() -> None:
    reply = question_keywords.Keywords(
        [" Porto ", "porto", "", "…", "x" * 500, *(f"word {n}" for n in range(50))]
    )
    words = question_keywords.words(reply)
    assert words[:2] == ["Porto", "word 0"]
    assert len(words) == question_keywords.KEYWORDS


def test_an_answer_that_is_expected_not_to_exist_is_null() -> None:
    assert records(answer_verdict.ask("Who?", None, "Nobody said.")) == [
        {"question": "Who?", "expected": None, "given": "Nobody said."}
    ]
    assert "There are none." in short_answer.ask("Who?", []).messages[1].content
