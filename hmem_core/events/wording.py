"""Texts of a model on their way into the journal: on one line, without repetitions, bounded."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["sentence", "words"]

WORDS = 10
"""Keywords, tags or entities that are kept of one reply, at most."""
WORD = 60
"""Characters of one of them; what is longer is not a keyword, and is left out."""


def sentence(text: str, longest: int) -> str:
    """`text` on one line, cut to `longest` characters."""
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def words(given: Iterable[str], most: int = WORDS) -> tuple[str, ...]:
    """Those of `given` that are something, each once, whatever its case; the first `most`."""
    found: dict[str, str] = {}
    for one in given:
        word = sentence(one, WORD + 1)
        if 0 < len(word) <= WORD and any(map(str.isalnum, word)):
            found.setdefault(word.casefold(), word)
    return tuple(found.values())[:most]
