"""Text as words with their places: what times and names are found in.

Words are compared folded (NFKC, case, accents). Scripts written without spaces, and Hangul, give a word for
each character, so that what stands inside a sentence is found there as anywhere else.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import NamedTuple

import regex

__all__ = ["LIMIT", "UNSPACED", "Word", "fold", "split"]

LIMIT = 512
"""Characters of a text that are read; a question says early when and whom it means."""

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}々〆ー"
UNSPACED = regex.compile(rf"[{_UNSPACED}]")
_WORD = regex.compile(rf"\p{{Nd}}{{1,20}}|[{_UNSPACED}]\p{{M}}*|(?:(?![{_UNSPACED}])[\p{{L}}\p{{M}}])+")


class Word(NamedTuple):
    """A word, folded, and its place in the text."""

    text: str
    start: int
    end: int
    gap: str
    """What stands between the word before and this one."""
    capital: bool
    """Whether it begins with a capital letter."""


@functools.lru_cache(maxsize=1 << 14)
def fold(word: str) -> str:
    """`word` as it is compared: without case, width, and accents of alphabets."""
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFKC", word).casefold()
    if UNSPACED.search(folded):
        return folded
    decomposed = unicodedata.normalize("NFD", folded)
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if not unicodedata.combining(c)))


def split(text: str, limit: int = LIMIT) -> list[Word]:
    """The words of the first `limit` characters."""
    words = []
    end = 0
    for found in _WORD.finditer(text[:limit]):
        piece = found.group()
        folded = str(int(piece)).zfill(len(piece)) if piece.isdecimal() else fold(piece)
        words.append(Word(folded, found.start(), found.end(), text[end : found.start()], piece[0].isupper()))
        end = found.end()
    return words
