"""Texts cut to a bound."""

from __future__ import annotations

import re

__all__ = ["shorten", "whole_characters"]

_SURROGATES = re.compile("[\ud800-\udfff]")


def shorten(text: str, limit: int, tail: int = 0) -> str:
    """`text` in at most `limit` characters; "…" stands where some were left out, before the last `tail`."""
    if len(text) <= limit:
        return text
    head = max(limit - tail - 1, 0)
    return f"{text[:head]}…{text[len(text) - tail :]}"


def whole_characters(text: str) -> str:
    """`text` with each lone surrogate, which no encoding can carry, replaced by U+FFFD."""
    return _SURROGATES.sub("\ufffd", text)
