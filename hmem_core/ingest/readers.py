"""Readers of files: JSON Lines of messages, JSON arrays of them, and LoCoMo conversations.

Every message comes with a key that depends on the file's content alone, so that importing a file a second
time, or a longer export of the same conversation, adds only what is new.
"""

from __future__ import annotations

import codecs
import itertools
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple, get_args

import xxhash

from hmem_core.errors import InvalidInput
from hmem_core.ingest import locomo
from hmem_core.ingest.source import Format, Item, Source

__all__ = ["keyed", "read", "samples"]


def read(
    stream: BinaryIO,
    name: str,
    *,
    format: Format | None = None,
    sample: str | None = None,
    session: str | None = None,
) -> Source:
    """The messages in `stream`; those of JSON Lines are read as they are asked for.

    Args:
        stream: bytes of UTF-8, a byte order mark allowed.
        name: what errors call the stream.
        format: None to tell by the content.
        sample: which conversation of a LoCoMo file; needed where it holds several.
        session: for messages that name none.

    Raises:
        InvalidInput: the stream holds something else, or not that sample. Of JSON Lines, a bad line raises
            when it is reached.
    """
    begun = _begin(stream, name, format)
    if begun.format == "locomo":
        return locomo.conversation(begun.document, name, sample)
    if sample is not None:
        raise InvalidInput(f"{name} is no LoCoMo file, so it has no sample {sample!r}; leave that out")
    if begun.format == "json":
        return _array(begun.document, name, session)
    total = _remaining_lines(stream)
    lines = enumerate(itertools.chain([begun.line] if begun.line else [], stream), begun.number)
    return Source("jsonl", keyed(_messages(lines, name, session)), None if total is None else total + 1)


def samples(stream: BinaryIO, name: str, *, format: Format | None = None) -> list[str]:
    """The names of the conversations in `stream`, as far as they have names: the samples of a LoCoMo file.

    Raises:
        InvalidInput: as `read`, without reading the lines of JSON Lines.
    """
    begun = _begin(stream, name, format)
    return locomo.samples(begun.document, name) if begun.format == "locomo" else []


class _Begun(NamedTuple):
    """A stream whose format is known."""

    format: Format
    document: Any
    """All of it, where it is one document."""
    number: int
    line: bytes
    """The first line that is not blank, and its number."""


def _begin(stream: BinaryIO, name: str, format: Format | None) -> _Begun:
    if format not in (None, *get_args(Format)):
        raise InvalidInput(f"format={format!r} is not known; the formats are {', '.join(get_args(Format))}")
    number, line = _first_line(stream)
    if format is None:
        is_document = line.lstrip().startswith(b"[") or locomo.fits(_lenient(line))
    else:
        is_document = format != "jsonl"
    document = _decode(line + stream.read(), name) if is_document else None
    if format is None:
        format = "locomo" if locomo.fits(document) else "json" if is_document else "jsonl"
    return _Begun(format, document, number, line)


def _first_line(stream: BinaryIO) -> tuple[int, bytes]:
    """The first line that is not blank, without byte order mark, and its number."""
    number = 1
    line = stream.readline().removeprefix(codecs.BOM_UTF8)
    while line and not line.strip():
        number += 1
        line = stream.readline()
    return number, line


def _remaining_lines(stream: BinaryIO) -> int | None:
    """Lines from here to the end; None if the stream cannot be read twice."""
    if not stream.seekable():
        return None
    here = stream.tell()
    lines = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
    stream.seek(here, os.SEEK_SET)
    return lines


def _messages(lines: Iterable[tuple[int, bytes]], name: str, session: str | None) -> Iterator[Item]:
    for number, line in lines:
        if line.strip():
            where = f"line {number} of {name}"
            yield _item(_decode(line, where), where, session)


def _array(document: Any, name: str, session: str | None) -> Source:
    if not isinstance(document, list):
        raise InvalidInput(f"{name} is no array of messages; JSON Lines are read with format 'jsonl'")
    items = [
        _item(message, f"message {number} of {name}", session) for number, message in enumerate(document, 1)
    ]
    return Source("json", keyed(items), len(items))


def _item(value: Any, where: str, session: str | None) -> Item:
    message = {"content": value} if isinstance(value, str) else value
    if not isinstance(message, dict):
        raise InvalidInput(
            f'{where} is no message; write it like {{"role": "user", "content": "…"}}, or as a string'
        )
    if session is not None and not message.get("session"):
        message = {**message, "session": session}
    return Item(where, message)


def keyed(items: Iterable[Item]) -> Iterator[Item]:
    """Items that all have a key: their own, or one made of what they say and how often it was said before."""
    seen: Counter[str] = Counter()
    for item in items:
        if item.message.get("key"):
            yield item
            continue
        canonical = json.dumps(item.message, sort_keys=True, separators=(",", ":"), default=str)
        digest = xxhash.xxh3_128_hexdigest(canonical.encode())
        seen[digest] += 1
        key = f"import:{digest}:{seen[digest]}"
        yield Item(item.where, {**item.message, "key": key})


def _decode(data: bytes, where: str) -> Any:
    try:
        return json.loads(data.decode())
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{where} is not UTF-8 (byte {error.start}); convert it, for example with iconv"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where} is not valid JSON: {error}") from error


def _lenient(line: bytes) -> Any:
    """The value of a line if it is JSON, else None."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
