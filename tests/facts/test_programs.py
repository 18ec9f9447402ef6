"""The programs that ask a model about facts, answered by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import hmem_core as hmem
from hmem_core.effects import Ask
from hmem_core.errors import LLMRefused, LLMUnavailable, MalformedReply
from hmem_core.facts import questions
from hmem_core.facts.consistency import judge
from hmem_core.facts.extraction import FACTS, Offer, extract
from hmem_core.llm.prompts.fact_consistency import Pair, Side, Verdict, Verdicts
from hmem_core.llm.prompts.fact_extraction import Extracted, Extraction, KnownFact
from hmem_core.llm.prompts.question_facts import Asked, Sought
from hmem_core.llm.prompts.rendering import ShownTurn
from tests.events.judge import sections

AT = datetime(2026, 3, 2, tzinfo=UTC)
PORTO = Offer(40, KnownFact("Ann", "lives in", "Porto"))
BOAT = Offer(41, KnownFact("Bo", "has", "a boat", contexts=("in summer",)))


def run(program: Any, *replies: Any) -> tuple[Any, list[Ask]]:
    """What a program returns for these replies, and what it asked."""
    asked: list[Ask] = []
    left = list(replies)
    effect = next(program)
    while True:
        asked.append(effect)
        reply = left.pop(0)
        try:
            effect = program.throw(reply) if isinstance(reply, Exception) else program.send(reply)
        except StopIteration as stop:
            assert not left
            return stop.value, asked


def turns(*texts: str, first: int = 0) -> list[ShownTurn]:
    return [ShownTurn(first + place, AT, "Ann", text) for place, text in enumerate(texts)]


def fact(turn: int, object: str = "tea", **more: Any) -> Extracted:
    return Extracted(turn, "Ann", "likes", object, **more)


def test_reasons_come_before_what_rests_on_them() -> None:
    reply = Extraction([fact(0, "c", id="f1", because=["F3", "f2"]), fact(0, "b", id=2), fact(0, id="f3")])
    (reading,), _ = run(extract(turns("c b tea"), [], [], 4), reply)
    assert [(one.object, one.facts) for one in reading.facts] == [("b", ()), ("tea", ()), ("c", (0, 1))]


def test_facts_that_rest_on_one_another_do_not_hold_each_other() -> None:
    reply = Extraction([fact(0, "a", id="f1", because=["f2"]), fact(0, "b", id="f2", because=["f1"])])
    (reading,), _ = run(extract(turns("a b"), [], [], 4), reply)
    assert [(one.object, one.facts) for one in reading.facts] == [("a", ()), ("b", (0,))]


def test_known_facts_are_meant_by_the_names_that_were_shown() -> None:
    reply = Extraction([fact(0, because=["k1", "k2", "k3", "k0", "k"])])
    (reading,), (ask,) = run(extract(turns("tea"), [], [PORTO, BOAT], 4), reply)
    assert [one["known"] for one in dict(sections(ask))["Known facts:"]] == ["k1", "k2"]
    assert reading.facts[0].units == (40, 41)
    assert reading.taken == (40, 41)


def test_a_fact_does_not_rest_on_one_that_says_the_same() -> None:
    reply = Extraction([Extracted(0, "ann", "lives in", "PORTO", because=["k1", "f1"], id="f1")])
    (reading,), _ = run(extract(turns("Ann is in Porto"), [], [PORTO], 4), reply)
    assert (reading.facts[0].units, reading.facts[0].facts, reading.taken) == ((), (), ())


@pytest.mark.parametrize(
    ("text", "told", "taken"),
    [
        ("Porto is nice", "Porto", ()),
        ("it is nice", "Porto", (40,)),
        ("it is nice", "a big BOAT", (41,)),
        ("a boat is nice", "the boat", ()),
        ("it is nice", "it in summer", (41,)),
    ],
)
def test_what_is_taken_from_known_facts(text: str, told: str, taken: tuple[int, ...]) -> None:
    (reading,), _ = run(extract(turns(text), [], [PORTO, BOAT], 4), Extraction([fact(0, told)]))
    assert reading.taken == taken


@pytest.mark.parametrize(
    ("named", "object", "source"),
    [
        (5, "a boat", 5),
        (5, "boats", 5),  # said in other words
        (5, "green tea", 6),
        (1, "green tea", 6),
        (1, "a boat", 5),
        (1, "nothing of that", None),
        (1, "is", None),  # both have it
    ],
)
def test_the_source_of_a_fact_is_a_turn_that_was_asked_about(
    named: int, object: str, source: int | None
) -> None:
    asked = turns("a Boat is nice", "Green tea is not", first=5)
    (reading,), _ = run(extract(asked, turns("before"), [], 4), Extraction([fact(named, object)]))
    assert [one.turn for one in reading.facts] == [source][: source is not None]


def test_a_reply_that_only_echoes_known_facts_tells_nothing() -> None:
    def found(text: str, *facts: Extracted) -> list[str]:
        (reading,), _ = run(extract(turns(text), [], [PORTO, BOAT], 4), Extraction(list(facts)))
        return [f"{one.subject} {one.relation} {one.object}" for one in reading.facts]

    assert found("Hello", Extracted(0, "Zoe", "has", "a kite", id="K2")) == []
    assert found("Hello", Extracted(0, "Ann", "lives in", "porto")) == []
    assert found("Porto, still", Extracted(0, "Ann", "lives in", "Porto")) == ["Ann lives in Porto"]
    assert found("Zoe moved there too", Extracted(0, "Zoe", "lives in", "Porto")) == ["Zoe lives in Porto"]
    assert found("A kite", Extracted(0, "Zoe", "has", "a kite", id="k3")) == ["Zoe has a kite"]


def test_a_date_is_taken_too() -> None:
    dated = Offer(42, KnownFact("Ann", "lives in", "Porto", since="2026-01-05"))
    for text, taken in (("tea", (42,)), ("tea since 2026-01-05", ())):
        reply = Extraction([fact(0, since="2026-01-05")])
        (reading,), _ = run(extract(turns(text), [], [dated], 4), reply)
        assert reading.taken == taken


def test_one_turn_has_only_so_many_facts_and_each_once() -> None:
    many = [fact(0, f"tea {i}") for i in range(50)]
    reply = Extraction([fact(1), *many, fact(1, "TEA"), fact(1, context="in winter")])
    (reading,), _ = run(extract(turns("x", "y"), [], [], 4), reply)
    assert [one.turn for one in reading.facts].count(0) == FACTS
    assert [one.context for one in reading.facts if one.turn == 1] == [None, "in winter"]


def test_a_question_that_gets_no_reply_is_asked_in_halves_with_what_was_said_before() -> None:
    before = turns("p", "q", first=0)
    asked_about = turns("a", "b", "c", first=2)
    replies = [MalformedReply("no", "broken"), Extraction([fact(2, "a")]), LLMRefused("too long"),
               Extraction([]), MalformedReply("no", "broken")]  # fmt: skip
    readings, asks = run(extract(asked_about, before, [], 2), *replies)
    shown = [dict(sections(ask)) for ask in asks]
    assert [[one["id"] for one in some["The turns to read:"]] for some in shown] == [
        [2, 3, 4], [2], [3, 4], [3], [4],
    ]  # fmt: skip
    assert [one["id"] for one in shown[3]["Said before:"]] == [1, 2]
    assert [(one.turns, one.read, len(one.facts)) for one in readings] == [
        ((2,), (0, 1, 2), 1),
        ((3,), (1, 2, 3), 0),
        ((4,), (4,), 0),
    ]


def test_a_model_that_goes_away_leaves_what_was_read() -> None:
    replies = [MalformedReply("no", "broken"), Extraction([fact(0)]), LLMUnavailable("gone")]
    readings, _ = run(extract(turns("a", "b"), [], [], 4), *replies)
    assert [one.turns for one in readings] == [(0,)]
    with pytest.raises(LLMUnavailable):
        run(extract(turns("a", "b"), [], [], 4), LLMUnavailable("gone"))


def test_verdicts() -> None:
    side = Side("x", None, None)
    pairs = [Pair("Ann", "likes", (), side, side)] * 4
    reply = Verdicts([Verdict(4, "Both!"), Verdict(1, "replaces"), Verdict(1, "both"), Verdict(9, "both")])
    assert run(judge(pairs), reply)[0] == ["replaces", "unclear", "unclear", "both"]
    assert run(judge(pairs), MalformedReply("no", "broken"))[0] == ["unclear"] * 4
    with pytest.raises(LLMUnavailable):
        run(judge(pairs), LLMUnavailable("gone"))


def test_questions_become_slots() -> None:
    reply = Asked(
        [
            Sought("Ann", "lives in", "?", "residence", "", "2026-01-01"),
            Sought("Ann", "lives in", "Unknown", "residence", None, "2026-01-01"),
            Sought(None, "", "  ", None, "in winter"),
            Sought("x" * 500, "has", 40),
            *(Sought(f"n{i}") for i in range(9)),
        ]
    )
    slots, (ask,) = run(questions.parse("Where did Ann live?", AT), reply)
    assert slots[:2] == [
        hmem.FactSlots(subject="Ann", relation="lives in", category="residence", at="2026-01-01"),
        hmem.FactSlots(relation="has", object="40"),
    ]
    assert len(slots) == questions.FACTS
    assert dict(sections(ask))["The question:"] == [
        {"question": "Where did Ann live?"},
        {"today": "2026-03-02"},
    ]
    assert run(questions.parse("Hm?", AT), Asked([]))[0] == []
