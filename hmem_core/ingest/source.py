"""What a reader gives to the pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

__all__ = ["Format", "Item", "Source"]

Format = Literal["jsonl", "json", "locomo"]


class Item(NamedTuple):
    """A message as `Memory.add` takes it, and where it came from."""

    where: str
    """Its place in the file, for errors: ``line 12 of chat.jsonl``."""
    message: Mapping[str, Any]


class Source(NamedTuple):
    """The messages of one file."""

    format: Format
    items: Iterator[Item]
    total: int | None
    """How many items there are at most; None if that is not known before they are read."""
