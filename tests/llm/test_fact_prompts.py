"""Prompts about facts: as `test_prompts` for those about segments and events."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest

from hmem_core.effects import Ask
from hmem_core.llm.prompts import fact_consistency, fact_extraction, question_facts
from hmem_core.llm.prompts.fact_consistency import Pair, Side, Verdicts
from hmem_core.llm.prompts.fact_extraction import Extraction, KnownFact
from hmem_core.llm.prompts.question_facts import Asked
from hmem_core.llm.prompts.rendering import QUOTED, Prompt
from hmem_core.llm.replies import parse_reply
from hmem_core.llm.schemas import json_schema
from tests.llm.test_prompts import AT, HOSTILE, flat, records, turn, user

PROMPTS = [fact_extraction.PROMPT, fact_consistency.PROMPT, question_facts.PROMPT]


def asks(text: str) -> list[Ask]:
    """Every question, with a text in all places that texts of users reach."""
    known = KnownFact(text, text, text, text, (text,), text)
    turns = [turn(7, text, text), turn(8, text, text)]
    pair = Pair(text, text, (text,), Side(text, AT, turns[0]), Side(text, None, turns[1]))
    return [
        fact_extraction.ask(turns, [turn(6, text, text)], [known], frozenset({8})),
        fact_consistency.ask([pair, pair]),
        question_facts.ask(text, AT),
    ]


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.name)
def test_prompts_say_what_is_quoted_and_the_form_of_the_reply(prompt: Prompt) -> None:
    assert QUOTED in prompt.system
    schema = json_schema(prompt.reply)
    assert schema["strict"]
    (example,) = re.findall(r"[^{]*nothing else[^{]*(\{.*\})\.$", prompt.system, re.DOTALL)
    (entries,) = vars_of(parse_reply(example, prompt.reply)).values()
    assert len(entries) == 1, "the example is a reply"


def vars_of(reply: Any) -> dict[str, Any]:
    return {name: getattr(reply, name) for name in reply.__struct_fields__}


# The system messages by name and version. If one changes on purpose, raise its version and set this anew.
WORDS = {
    ("fact_extraction", 1): "79e7b7c6b6e1652a",
    ("fact_consistency", 1): "61496429d4a134a2",
    ("question_facts", 1): "41724da2a680a0db",
}


def test_no_prompt_changes_without_its_version() -> None:
    found = {(one.name, one.version): hashlib.sha256(one.system.encode()).hexdigest()[:16] for one in PROMPTS}
    assert found == WORDS


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_changes_only_its_own_string(text: str) -> None:
    for ask, plain in zip(asks(text), asks("plain"), strict=True):
        assert ask.messages[0] == plain.messages[0]
        lines, expected = user(ask).split("\n"), user(plain).split("\n")
        assert [one for one in lines if not one.startswith("{")] == [
            one for one in expected if not one.startswith("{")
        ]
        for shown, other in zip(records(ask), records(plain), strict=True):
            assert shown.keys() == other.keys()


def test_prompts_do_not_grow_with_what_is_stored() -> None:
    huge = "a" * 5000
    known = [KnownFact(huge, huge, huge, huge, (huge,) * 50, huge)] * fact_extraction.KNOWN
    turns = [turn(number, huge, huge) for number in range(fact_extraction.TURNS)]
    assert len(flat(fact_extraction.ask(turns, turns[:8], known))) < 45_000
    side = Side(huge, AT, turn(1, huge, huge))
    pairs = [Pair(huge, huge, (huge,) * 50, side, side)] * fact_consistency.PAIRS
    assert len(flat(fact_consistency.ask(pairs))) < 25_000
    assert len(flat(question_facts.ask("a" * 10**6, AT))) < 6_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"facts": []}', []),
        ('Sure!\n```json\n{"facts": [{"turn": "12", "subject": "Ann", "relation": null}]}\n```', [12]),
        ('{"facts": [{"turn": 3, "object": 40, "confidence": "high", "because": "f1"}]}', [3]),
        ('{"facts": [{"turn": 3, "because": ["k1", 2], "since": 2025, "extra": [1]}]}', [3]),
        ('[{"turn": 1}, {"turn": 2}]', [1, 2]),
    ],
)
def test_replies_are_read_as_models_write_them(text: str, expected: list[int]) -> None:
    assert [one.turn for one in parse_reply(text, Extraction).facts] == expected


def test_verdicts_and_questions_are_read_as_models_write_them() -> None:
    reply = parse_reply('{"pairs": [{"pair": "1", "verdict": "BOTH"}]}', Verdicts)
    assert [(one.pair, one.verdict) for one in reply.pairs] == [(1, "BOTH")]
    assert parse_reply('{"facts": [{"subject": "Ann", "object": 4}]}', Asked).facts[0].object == 4
