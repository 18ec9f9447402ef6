"""Reading files into messages."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

import pytest

import hmem_core as hmem
from hmem_core.ingest.readers import read
from hmem_core.ingest.source import Item


def items(data: bytes | str, **options: Any) -> list[Item]:
    raw = data.encode() if isinstance(data, str) else data
    return list(read(io.BytesIO(raw), "chat.jsonl", **options).items)


def lines(messages: Iterable[Any]) -> str:
    return "".join(json.dumps(message) + "\n" for message in messages)


def test_json_lines_are_messages_with_their_place() -> None:
    text = '\n{"role": "user", "content": "one", "key": "k"}\n\n  \n"two"\n'
    one, two = items(text)
    assert one == ("line 2 of chat.jsonl", {"role": "user", "content": "one", "key": "k"})
    assert two.where == "line 5 of chat.jsonl"
    assert two.message["content"] == "two"


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b"", b"\n\n"])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n\r\n"])
def test_marks_and_blank_lines_around_are_nothing(start: bytes, end: bytes) -> None:
    assert [item.message["content"] for item in items(start + b'{"content": "one"}' + end)] == ["one"]


def test_an_empty_file_has_no_messages() -> None:
    assert items("") == items("\n \n") == items("[]") == []


def test_keys_follow_from_the_content_and_how_often_it_came() -> None:
    same = {"role": "user", "content": "ok"}
    keys = [item.message["key"] for item in items(lines([same, {"content": "no", "role": "user"}, same]))]
    assert len(set(keys)) == 3
    longer = items(lines([same, {"role": "user", "content": "no"}, same, same]))
    assert [item.message["key"] for item in longer[:3]] == keys
    assert longer[3].message["key"] not in keys


def test_the_session_given_is_for_messages_without_one_and_part_of_their_key() -> None:
    text = lines([{"content": "a", "session": "own"}, {"content": "a"}])
    own, given = items(text, session="s")
    assert (own.message["session"], given.message["session"]) == ("own", "s")
    other = items(text, session="t")
    assert own.message["key"] == other[0].message["key"]
    assert given.message["key"] != other[1].message["key"]


def test_an_array_of_messages_is_read_too() -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    source = read(io.BytesIO(json.dumps(messages, indent=1).encode()), "chat.json")
    assert (source.format, source.total) == ("json", 2)
    read_items = list(source.items)
    assert [item.where for item in read_items] == ["message 1 of chat.json", "message 2 of chat.json"]
    keys = [item.message["key"] for item in read_items]
    assert keys == [item.message["key"] for item in items(lines(messages))], (
        "the same content in another form"
    )


def test_the_total_counts_lines_where_the_stream_can_be_read_twice() -> None:
    text = lines([{"content": str(number)} for number in range(5)])
    source = read(io.BytesIO(text.encode()), "chat.jsonl")
    assert source.total is not None
    assert 5 <= source.total <= 6
    assert len(list(source.items)) == 5

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    assert read(Pipe(text.encode()), "stdin").total is None


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{", "line 2 of chat.jsonl is not valid JSON"),
        (b"[" * 100_000, "line 2 of chat.jsonl is not valid JSON"),
        (b"12", "line 2 of chat.jsonl is no message"),
        (b'["a"]', "line 2 of chat.jsonl is no message"),
        (b'{"content": "\xff"}', "line 2 of chat.jsonl is not UTF-8"),
        (b'\x00{"content": "a"}', "line 2 of chat.jsonl is not valid JSON"),
    ],
)
def test_a_bad_line_is_named_when_it_is_reached(line: bytes, complaint: str) -> None:
    source = read(io.BytesIO(b'{"content": "fine"}\n' + line + b"\n"), "chat.jsonl")
    assert next(source.items).message["content"] == "fine"
    with pytest.raises(hmem.InvalidInput, match=complaint):
        next(source.items)


def test_lone_surrogates_and_controls_are_let_through() -> None:
    (item,) = items(b'{"content": "a\\ud800\\u0000b"}')
    assert item.message["content"] == "a\ud800\0b"


def test_an_unknown_format_is_refused_with_those_there_are() -> None:
    with pytest.raises(hmem.InvalidInput, match="jsonl, json, locomo"):
        items("", format="csv")


def test_a_format_that_is_named_is_not_guessed() -> None:
    with pytest.raises(hmem.InvalidInput, match=r"line 1 of chat\.jsonl is no message"):
        items("[]", format="jsonl")
    with pytest.raises(hmem.InvalidInput, match="no array of messages"):
        items('{"content": "a"}', format="json")
    with pytest.raises(hmem.InvalidInput, match="no LoCoMo file"):
        items('{"content": "a"}', format="locomo")
