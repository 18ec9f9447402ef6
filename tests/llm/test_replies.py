"""From replies as models give them to values, or to one exception."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from hmem_core.effects import Message
from hmem_core.errors import LLMError, MalformedReply
from hmem_core.llm.replies import offered, parse_reply, repair_messages
from tests.llm.replies import Add, Color, Drop, Fact, Ids, Place, Reply, Step

TICKS = "```"
TWO = Place(2)
GOOD: list[tuple[str, Any, str]] = [
    # What stands around the JSON.
    ("plain", TWO, '{"height": 2}'),
    ("blanks", TWO, '\n\n  {"height": 2}\t\n'),
    ("byte order mark", TWO, '\ufeff{"height": 2}'),
    ("zero width", TWO, '\u200b{\u200b"height"\u2060:\ufeff2\u00ad}\u200b'),
    ("no-break spaces", TWO, '{\u00a0"height":\u00a02\u3000}'),
    ("fence", TWO, f'{TICKS}json\n{{"height": 2}}\n{TICKS}'),
    ("fence without a language", TWO, f'{TICKS}\n{{"height": 2}}\n{TICKS}'),
    ("fence on one line", TWO, f'{TICKS}json {{"height": 2}} {TICKS}'),
    ("tilde fence", TWO, '~~~json\n{"height": 2}\n~~~'),
    ("nested fences", TWO, f'{TICKS}`markdown\n{TICKS}json\n{{"height": 2}}\n{TICKS}\n{TICKS}`'),
    ("unclosed fence", TWO, f'{TICKS}json\n{{"height": 2}}'),
    ("fence that only closes", TWO, f'{{"height": 2}}\n{TICKS}'),
    ("prose before", TWO, 'Sure! It\'s the second one:\n{"height": 2}'),
    ("prose after", TWO, '{"height": 2}\n\nI chose it because it fits (see above).'),
    ("prose with brackets", TWO, 'Of {all} of [them], as in [12] or [3, 4]: {"height": 2} [end]'),
    ("label", TWO, 'JSON = {"height": 2};'),
    ("tag", TWO, '<answer>{"height": 2}</answer>'),
    ("template braces", TWO, '{{"height": 2}}'),
    ("harmony", TWO, '<|channel|>analysis<|message|>Hm.<|end|><|channel|>final<|message|>{"height": 2}'),
    # Thinking.
    ("thought", TWO, '<think>\nMaybe {"height": 1}? No {.\n</think>\n\n{"height": 2}'),
    ("empty thought", TWO, '<think></think>{"height": 2}'),
    ("thought in capitals", TWO, '<THINK>{"height": 1}</THINK>{"height": 2}'),
    ("other tags", TWO, '<thinking>{</thinking><reasoning>["</reasoning>{"height": 2}'),
    ("square tags", TWO, '[THINK]{"height": 1}[/THINK]{"height": 2}'),
    ("two thoughts", TWO, '<think>a</think> so <think>{"height": 3}</think>{"height": 2}'),
    (
        "thought within a thought",
        TWO,
        '<think>a<think>{"height": 1}</think>{"height": 3}</think>{"height": 2}',
    ),
    ("thought begun by the server", TWO, 'Perhaps {"height": 1}.\n</think>\n{"height": 2}'),
    ("the same with broken braces", TWO, 'Either {"height": 1 or 2}\n</think>\n{"height": 2}'),
    (
        "tags inside a string",
        Reply(summary="about </think> and <think>"),
        '{"summary": "about </think> and <think>"}',
    ),
    ("a tag named after the answer", TWO, '{"height": 2}\nNo <think> was needed.'),
    # Several values.
    ("the last decides", TWO, '{"height": 1}\n{"height": 2}'),
    ("another kind after", TWO, '{"height": 2} {"certainty": 0.9}'),
    ("another kind before", TWO, '{"options": [1, 2]} {"height": 2}'),
    ("invalid before valid", TWO, '{"height": "<a number>"} {"height": 2}'),
    ("citations", Ids([3]), 'As [12] says: {"turn_ids": [3]} (compare [4])'),
    ("empty object after", Step(Add("x")), '{"action": {"type": "add", "text": "x"}} {}'),
    # JSON that is not quite JSON.
    ("trailing commas", Ids([1, 2]), '{"turn_ids": [1, 2,],}'),
    ("single quotes", Reply(summary='say "hi"'), "{'summary': 'say \"hi\"'}"),
    ("escaped single quote", Reply(summary="it's"), r"{'summary': 'it\'s'}"),
    ("needless escape", Reply(summary="it's a_b*"), r'{"summary": "it\'s a\_b\*"}'),
    ("backslash not doubled", Reply(summary=r"C:\Users\data \alpha"), r'{"summary": "C:\Users\data \alpha"}'),
    ("typographic quotes", Reply(summary="it's"), "{“summary”: “it's”}"),
    ("German quotes", Reply(summary="ja"), "{„summary“: „ja“}"),
    ("typographic single quotes", Reply(summary="x"), "{‘summary’: ‘x’}"),
    ("Python", Reply(summary="x", sure=True), "{'summary': 'x', 'sure': True, 'note': None}"),
    ("Python escapes", Reply(summary="\x00é\U000e0001"), r"{'summary': '\x00\xe9\U000e0001'}"),
    ("keys without quotes", Reply(summary="x", sure=True), '{summary: "x", sure: true}'),
    ("line comments", TWO, '{ // the place\n"height": 2 # second\n}'),
    ("block comment", TWO, '{/* which? } */"height": 2}'),
    ("no-brake line", Reply(summary="a\nb\tc\x00\x1bd"), '{"summary": "a\nb\tc\x00\x1bd"}'),
    ("NaN for null", Place(None), '{"height": NaN}'),
    ("-Infinity for null", Place(None), '{"height": -Infinity}'),
    ("overflow for null", Place(None), '{"height": 1e999}'),
    ("undefined", Place(None), '{"height": undefined}'),
    ("surrogate pair", Reply(summary="😀"), '{"summary": "\\ud83d\\ude00"}'),
    ("lone surrogate escape", Reply(summary="a\ufffdb"), '{"summary": "a\\ud83db"}'),
    ("lone surrogate", Reply(summary="a\ufffdb"), '{"summary": "a\ud83db"}'),
    ("a key twice, alike", TWO, '{"height": 2, "height": 2}'),
    # Values not quite of the type.
    ("text for a number", TWO, '{"height": "2"}'),
    ("whole float", TWO, '{"height": 2.0}'),
    ("null as text", Place(None), '{"height": "null"}'),
    ("none as text", Place(None), '{"height": "None"}'),
    (
        "kinds of ids",
        Ids([12, 13, 14, 15, 16, 17]),
        '{"turn_ids": ["12", "[13]", "#14", "turn 15", "Turn-16", "id: 17"]}',
    ),
    ("bare numbered ids", Ids([12, 13]), '{"turn_ids": [#12, #13]}'),
    ("one id for a list", Ids([12]), '{"turn_ids": "turn 12"}'),
    ("null for a list", Ids([]), '{"turn_ids": null}'),
    ("null for a default", Reply(summary="x"), '{"summary": "x", "ids": null, "sure": null, "status": null}'),
    ("list as text", Ids([1, 2]), '{"turn_ids": "[1, 2]"}'),
    ("more fields", TWO, '{"reasoning": "because", "height": 2, "x": {"y": []}}'),
    ("names in another case", Ids([1]), '{"turnIds": [1], "WHY": ""}'),
    ("the exact name wins", Ids([1]), '{"turnIds": [2], "turn_ids": [1]}'),
    (
        "enum in another case",
        Reply(summary="x", color=Color.DARK_RED),
        '{"summary": "x", "color": "Dark_Red"}',
    ),
    (
        "literal in another case",
        Reply(summary="x", status="superseded"),
        '{"summary": "x", "status": " SUPERSEDED"}',
    ),
    ("yes", Reply(summary="x", sure=True), '{"summary": "x", "sure": "Yes"}'),
    ("1 for true", Reply(summary="x", sure=True), '{"summary": "x", "sure": 1}'),
    (
        "inner numbers as text",
        Reply(summary="x", scores={"a": 0.5}),
        '{"summary": "x", "scores": {"a": "0.5"}}',
    ),
    (
        "inner object as text",
        Reply(summary="x", facts=(Fact("a"),)),
        '{"summary": "x", "facts": ["{\\"subject\\": \\"a\\"}"]}',
    ),
    ("tagged", Step(Drop(3)), '{"action": {"type": "drop", "id": "#3"}}'),
    # Something around it.
    ("encoded twice", TWO, '"{\\"height\\": 2}"'),
    ("encoded twice in a fence", TWO, f'{TICKS}json\n"{{\\"height\\": 2}}"\n{TICKS}'),
    ("wrapped", TWO, '{"response": {"height": 2}}'),
    ("wrapped as text", TWO, '{"response": "{\\"height\\": 2}"}'),
    ("tool call", TWO, '{"name": "answer", "arguments": {"height": 2}}'),
    ("tool call as text", TWO, '{"name": "answer", "arguments": "{\\"height\\": 2}"}'),
    ("object in a list", TWO, '[{"height": 2}]'),
    ("list for an object with one list", Ids([1, 2]), "[1, 2]"),
    ("list on its own line", Ids([1, 2]), f"These:\n{TICKS}json\n[1, 2]\n{TICKS}\nThat is all."),
    ("object for a list", [1, 2], '{"ids": [1, "2"]}'),
    ("object with more for a list", [1, 2], '{"why": "so", "ids": [1, 2]}'),
    ("object for a number", 3, '{"value": 3}'),
    ("number", 3, "3"),
    ("text", "x y", '"x y"'),
]

BAD: list[tuple[str, Any, str, str | None]] = [
    ("empty", Place, "nothing", None),
    ("empty", Place, "empty", ""),
    ("empty", Place, "blank", " \n\ufeff\u200b"),
    ("empty", Place, "empty fence", f"{TICKS}\n{TICKS}"),
    ("broken", Place, "prose", "I cannot tell which one it is."),
    ("broken", Ids, "only a citation", "None of them, as [12] says."),
    ("broken", Place, "only a thought", '<think>{"height": 2}</think>'),
    ("cut", Place, "no closing brace", '{"height": 2'),
    ("cut", Place, "in a number", '{"height": 1'),
    ("cut", Place, "in a literal", '{"height": nul'),
    ("cut", Place, "in a bare key", "{heig"),
    ("cut", Place, "after a colon", '{"height":'),
    ("cut", Place, "after a comma", '{"height": 2,'),
    ("cut", Reply, "in a string", '{"summary": "They went to'),
    ("cut", Reply, "in an escape", '{"summary": "They \\'),
    ("cut", Ids, "in a list", '{"turn_ids": [1, 2'),
    ("cut", Ids, "in a comment", '{"turn_ids": [1, 2 /* and'),
    ("cut", Place, "in the second of two", '{"height": 1}\n{"height": 2'),
    ("cut", Place, "in a fence", f'{TICKS}json\n{{"height": 2'),
    ("cut", Place, "in a thought", '<think>Maybe {"height": 2}, but'),
    ("cut", Place, "at the end of a thought's braces", '<think>{"height": 2}'),
    ("broken", Place, "words for a value", '{"height": the second}'),
    ("broken", Place, "a choice", '{"height": 1 or 2}'),
    ("broken", Place, "a broken one before a good one", '{"height": 1 or 2} {"height": 2}'),
    ("broken", Reply, "quotation marks inside", '{"summary": "Ann said "yes" to Bob"}'),
    ("broken", Reply, "and a value behind them", '{"summary": "a "b" } {\'summary\': \'c\'}"}'),
    ("broken", Reply, "apostrophe", "{'summary': 'it's fine'}"),
    ("broken", Reply, "quotation marks of two kinds", '{"summary": “He said "no", "note": ”}'),
    ("broken", Ids, "left out", '{"turn_ids": [1, 2, ...]}'),
    ("broken", Ids, "missing comma", '{"turn_ids": [1 2]}'),
    ("broken", Ids, "two commas", '{"turn_ids": [1,, 2]}'),
    ("broken", Ids, "wrong bracket", '{"turn_ids": [1, 2}'),
    ("broken", Place, "a key twice", '{"height": 1, "height": 2}'),
    ("broken", Place, "thousands", '{"height": 1,000}'),
    ("broken", Place, "leading zero", '{"height": 007}'),
    ("broken", Place, "deep", '{"height": ' + "[" * 100 + "]" * 100 + "}"),
    ("broken", Place, "expression", '{"height": __import__("os")}'),
    ("invalid", Place, "missing field", '{"hight": 2}'),
    ("invalid", Place, "empty object", "{}"),
    ("invalid", Place, "out of bounds", '{"height": 0}'),
    ("invalid", Place, "negative name", '{"height": "height -1"}'),
    ("invalid", Place, "fraction", '{"height": 2.5}'),
    ("invalid", Place, "true for a number", '{"height": true}'),
    ("invalid", Place, "a list for a number", '{"height": [1, 2]}'),
    ("invalid", Place, "a word", '{"height": "second"}'),
    ("invalid", Place, "not that one", '{"height": "not 2"}'),
    ("invalid", Place, "the last decides", '{"height": 2}\nOn reflection:\n{"height": "neither"}'),
    ("invalid", Place, "a choice of objects", '[{"height": 1}, {"height": 2}]'),
    ("invalid", Place, "bare word", "none"),
    ("invalid", Place, "a schema", '{"type": "object", "properties": {"height": {"type": "integer"}}}'),
    ("invalid", Reply, "number for text", '{"summary": 12}'),
    ("invalid", Reply, "blank text", '{"summary": "  "}'),
    ("invalid", Reply, "null for text", '{"summary": null}'),
    ("invalid", Reply, "not in the list", '{"summary": "x", "status": "gone"}'),
    ("invalid", Reply, "confidence", '{"summary": "x", "facts": [{"subject": "a", "confidence": 1.5}]}'),
    ("invalid", Reply, "not a number", '{"summary": "x", "scores": {"a": NaN}}'),
    ("invalid", Reply, "per cent", '{"summary": "x", "scores": {"a": "85%"}}'),
    ("invalid", Step, "unknown tag", '{"action": {"type": "remove", "id": 3}}'),
    ("invalid", Ids, "a list of words", '["first", "second"]'),
    ("invalid", int, "a word for a number", "true"),
]


@pytest.mark.parametrize(("expected", "text"), [row[1:] for row in GOOD], ids=[row[0] for row in GOOD])
def test_is_understood(expected: Any, text: str) -> None:
    schema = list[int] if isinstance(expected, list) else type(expected)
    assert parse_reply(text, schema) == expected


@pytest.mark.parametrize(
    ("kind", "schema", "text"), [(row[0], row[1], row[3]) for row in BAD], ids=[row[2] for row in BAD]
)
def test_is_refused(kind: str, schema: type, text: str | None) -> None:
    with pytest.raises(MalformedReply) as caught:
        parse_reply(text, schema)
    assert caught.value.kind == kind
    assert caught.value.raw == (text or "")
    assert caught.value.repairable


@pytest.mark.parametrize(
    ("text", "finish_reason", "kind"),
    [
        ('{"height": 2}', "content_filter", "filtered"),
        (None, "content_filter", "filtered"),
        (None, "length", "empty"),
        ('{"height": 2', "length", "cut"),
        ("2", "length", "cut"),
        ('I thought of {"height": 1}, but', "length", "cut"),
        ('I thought of {"height": 1}', "length", "cut"),
        ('{"height": 1}\n{"height": 2}', "length", "cut"),
        ("The segment that", "length", "cut"),
        ('<think>{"height": 1}</think>', "length", "cut"),
        ('<think>{"height": 1} fits', "length", "cut"),
        ('<think>{"height": 1} fits', "stop", "cut"),
        ("<think>nothing fits", "stop", "cut"),
    ],
)
def test_what_the_server_says_counts(text: str | None, finish_reason: str, kind: str) -> None:
    with pytest.raises(MalformedReply) as caught:
        parse_reply(text, Place, finish_reason=finish_reason)
    assert caught.value.kind == kind
    assert caught.value.repairable == (kind != "filtered")


@pytest.mark.parametrize(
    ("text", "finish_reason"),
    [
        ('{"height": 2}', "length"),
        ('{"height": 2}\n\nI chose this since it', "length"),
        (f'{TICKS}json\n{{"height": 2}}\n{TICKS}\nBecause', "length"),
        ('<think>Is it {"height": 1}?</think>\n{"height": 2}', "length"),
        ('Is it {"height": 1}?\n</think>\n{"height": 2}', "length"),
        ('<think>It is not {"height": 1}.\n{"height": 2}', "stop"),
        ('{"height": 2}', "stop"),
        ('{"height": 2}', "tool_calls"),
    ],
)
def test_a_whole_answer_counts_whatever_was_cut_behind_it(text: str, finish_reason: str) -> None:
    assert parse_reply(text, Place, finish_reason=finish_reason) == TWO


def test_a_refusal_is_no_reply() -> None:
    with pytest.raises(MalformedReply, match="refused: I can't help") as caught:
        parse_reply('{"height": 2}', Place, refusal="I can't help with that.")
    assert (caught.value.kind, caught.value.repairable) == ("refused", False)
    assert parse_reply('{"height": 2}', Place, refusal=" ") == TWO


def test_an_error_says_what_is_wrong_and_keeps_the_reply_shortened() -> None:
    with pytest.raises(LLMError, match=r"line 1 has no ',' or '}' after a value \(inside a string") as caught:
        parse_reply('{"summary": "Ann said "yes" to Bob"}', Reply)
    assert "⟨here⟩yes" in str(caught.value)
    with pytest.raises(LLMError, match=r"Expected `int` >= 1 - at `\$\.height`"):
        parse_reply('{"height": 0}', Place)
    with pytest.raises(MalformedReply) as caught:
        parse_reply("x" * 10_000 + "end", Place)
    assert len(caught.value.raw) == 2000
    assert "…" in caught.value.raw
    assert caught.value.raw.endswith("xend")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.kind, again.raw) == (str(caught.value), caught.value.kind, caught.value.raw)


def test_only_what_was_offered_is_taken() -> None:
    given_ids = [3, "12", "#3", "turn 7", 7.0, 99, "x", None, True, [7], "[1]", 1e300, "9" * 500]
    assert offered(given_ids, {1, 3, 7, 12}) == [3, 12, 7, 1]
    assert offered(None, [1]) == []
    assert offered([0, False], range(1)) == [0]


def test_a_repair_extends_the_prompt_with_the_reply_and_its_error() -> None:
    prompt = (Message("system", "Be brief."), Message("user", "Which?"))
    with pytest.raises(MalformedReply) as caught:
        parse_reply('{"height": 0}', Place)
    messages = repair_messages(prompt, '{"height": 0}', caught.value)
    assert messages[:2] == prompt
    assert [message.role for message in messages[2:]] == ["assistant", "user"]
    assert messages[2].content == '{"height": 0}'
    assert "Expected `int` >= 1" in messages[3].content
    long = repair_messages(prompt, "x" * 10**6, caught.value)
    assert sum(len(message.content) for message in long) < 3000
    assert repair_messages(prompt, None, caught.value)[2].content
