"""What `add` accepts, and what it makes of it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import hmem_core as hmem
from hmem_core.messages import MAX_TEXT_BYTES, Defaults, Draft, read_messages
from hmem_core.records import Skipped


def read(given: Any, **defaults: Any) -> list[Draft]:
    return read_messages(given, Defaults(**defaults), dt.UTC)[0]


def test_text_message_turn_and_lists_of_them() -> None:
    drafts = read(
        ["text", {"role": "assistant", "content": "message"}, hmem.Turn(text="turn", speaker="Ann")]
    )
    assert [(draft.text, draft.role, draft.speaker) for draft in drafts] == [
        ("text", "user", None),
        ("message", "assistant", None),
        ("turn", "user", "Ann"),
    ]
    assert [draft.text for draft in read(iter("ab"))] == ["a", "b"]
    assert read([]) == []


def test_what_a_message_says_itself_comes_first() -> None:
    own = {
        "content": "x",
        "role": "assistant",
        "name": "Own",
        "session": "own",
        "at": "2026-01-01",
        "key": "own",
        "metadata": {"a": "own"},
    }
    (draft,) = read(
        own, role="user", speaker="D", session="d", at="2020-01-01", key="d", metadata={"a": "d", "b": "d"}
    )
    assert (draft.role, draft.speaker, draft.session, draft.key) == ("assistant", "Own", "own", "own")
    assert draft.metadata == {"a": "own", "b": "d"}
    assert draft.at == 1_767_225_600_000_000


def test_multipart_content_and_tool_calls_become_text() -> None:
    (draft,) = read(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look at this"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "input_audio", "input_audio": {}},
                {"type": "output_text", "text": "and this"},
            ],
        }
    )
    assert draft.text == "look at this\n[image]\n[audio]\nand this"
    (draft,) = read(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"in":"Porto"}'},
                }
            ],
        }
    )
    assert draft.text == 'weather({"in":"Porto"})'
    (draft,) = read({"role": "tool", "tool_call_id": "1", "content": "rain"})
    assert (draft.role, draft.text) == ("tool", "rain")


def test_system_prompts_and_empty_messages_are_reported_as_skipped() -> None:
    given = [
        {"role": "system", "content": "You are helpful."},
        {"role": "user", "content": "  "},
        {"role": "developer", "content": "Be brief."},
        {"role": "assistant", "content": None},
        "kept",
    ]
    drafts, skipped = read_messages(given, Defaults(), dt.UTC)
    assert [draft.text for draft in drafts] == ["kept"]
    assert [one.index for one in skipped] == [0, 1, 2, 3]
    assert skipped[1] == Skipped(1, "no text")
    assert "system=True" in skipped[0].reason
    assert [draft.role for draft in read(given, system=True)] == ["system", "developer", "user"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "NoneType"),
        (7, "int"),
        ("", "nothing to remember"),
        ({"role": "user", "content": ""}, "nothing to remember"),
        ([b"bytes"], "message 0 is a bytes"),
        ([{"content": 3}], "content of message 0 is a int"),
        ([{"content": [3]}], "part of the content"),
        ({"content": "x", "timestamp": 1}, "'timestamp', which would be lost"),
        ({"content": "x", "role": 3}, "role of the message"),
        ({"content": "x", "at": 1700000000}, "is a int; give a datetime"),
        ({"content": "x", "at": "last week"}, "'last week' is not an ISO 8601 time"),
        ({"content": "x", "at": "0001-01-01T00:00+14:00"}, "outside the years"),
        ({"content": "x", "metadata": {"a": float("nan")}}, "nan"),
        ({"content": "x", "metadata": {"a": {1: 2}}}, "field name 1"),
        ({"content": "x", "metadata": {"a": {"b": object()}}}, "field 'a' field 'b' holds a object"),
        ({"content": "x", "metadata": {"a": 2**70}}, "beyond 64 bits"),
        ({"content": "x", "metadata": "text"}, "metadata"),
        ({"content": "x", "key": "k", "part": -1}, "part of the message"),
    ],
)
def test_what_is_no_message_is_refused_by_name(given: Any, says: str) -> None:
    with pytest.raises(hmem.InvalidInput, match=says.replace("(", r"\(")):
        read(given)


def test_a_text_beyond_the_limit_is_refused_with_the_limit() -> None:
    with pytest.raises(hmem.InvalidInput, match=f"{MAX_TEXT_BYTES:,}"):
        read("é" * (MAX_TEXT_BYTES // 2 + 1))


def test_index_text_names_the_speaker() -> None:
    assert read("hello", speaker="Ann")[0].index_text == "Ann: hello"
    assert read("hello")[0].index_text == "hello"
