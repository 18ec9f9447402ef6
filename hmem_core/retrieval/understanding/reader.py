"""Reading items of time one after the other: what all rules of the grammar need."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

from hmem_core.retrieval.understanding.calendar import Period
from hmem_core.retrieval.understanding.lexicon import Item
from hmem_core.retrieval.understanding.words import UNSPACED, Word

__all__ = ["Point", "Reader"]

_NEAR = re.compile(r"[\s,.'’()–—\-、，]{0,3}")
_END = re.compile(r"\s*[?!.,;:)\"”。？！]|\s*$")
_VERBS = {"may", "march", "spring", "fall"}

_POINTED = {"month?", "weekday?", "number", "month"}
"""Kinds after which a full stop need not end a sentence: "Jan. 5", "5. März"."""

Point = tuple[Period, int] | None
"""A period, and one past the last item it was read from."""


class Reader:
    """Items of one text, read one after the other.

    Args:
        words, items: of the text; `tail` is what follows the last word.
        now: the moment that times are relative to, wall-clock.
        names: folded words that name somebody, so that "April" may be one of them.
    """

    def __init__(
        self, words: list[Word], items: list[Item], tail: str, now: dt.datetime, names: frozenset[str]
    ) -> None:
        self._words, self._items, self._tail = words, items, tail
        self._now, self._names = now, names
        self._strong = self._led = False  # a word that says that a time comes; a preposition
        self._rules: dict[str, Callable[[int], Point]] = {}

    def _kind(self, at: int) -> str:
        """Kind of the item at `at`, if it follows closely on the one before; else ``""``."""
        return self._items[at].kind if at < len(self._items) and self._near(at) else ""

    def _near(self, at: int) -> bool:
        """Whether no sentence ends before the item at `at`."""
        gap = self._words[self._items[at].first].gap
        if _NEAR.fullmatch(gap) is None or "\n" in gap:
            return False
        return "." not in gap or (at > 0 and self._items[at - 1].kind in _POINTED)

    def _skip(self, at: int, *kinds: str) -> int:
        while self._kind(at) in (kinds or ("the",)):
            at += 1
        return at

    def _text(self, at: int) -> str:
        item = self._items[at]
        return self._words[item.first].text if item.last == item.first + 1 else ""

    def _ends(self, at: int) -> bool:
        """Whether the text, or its clause, ends before the item at `at`."""
        rest = self._words[self._items[at].first].gap if at < len(self._items) else self._tail
        return _END.match(rest) is not None

    def _point(self, at: int, strong: bool = False) -> Point:
        """The period named at `at`. `strong`: a word before it says that a time comes."""
        if at >= len(self._items):
            return None
        self._strong = strong
        rule = self._rules.get(self._items[at].kind)
        found = rule(at) if rule else None
        if found is None and self._items[at].kind == "number":
            found = self._rules["vague"](at)
        return found

    def _dated(self, last: int) -> bool:
        """Whether a point that ends before item `last` ends in a year."""
        item = self._items[last - 1]
        return item.kind == "date" or (item.kind == "number" and item.digits == 4)

    def _year_at(self, at: int) -> tuple[int, int] | None:
        """A year of four digits (or '23) at `at`, prepositions skipped: (year, one past it)."""
        at = self._skip(at, "the", "at")
        if (relative := self._year_from_now(at)) is not None:
            return relative
        if self._kind(at) != "number":
            return None
        item = self._items[at]
        if item.digits == 2 and self._words[item.first].gap.endswith(("'", "’")):
            return (2000 if item.value < 70 else 1900) + item.value, at + 1
        if item.digits == 4 and 1 <= item.value <= 9999:
            return item.value, self._year_end(at + 1)
        return None

    def _year_from_now(self, at: int) -> tuple[int, int] | None:
        """The year of "last year"."""
        kind = self._kind(at)
        if kind == "relative" and self._items[at].value[0] == "year":
            count, after = self._items[at].value[1], at + 1
        elif kind == "mod" and self._kind(at + 1) == "unit" and self._items[at + 1].value == "year":
            count, after = self._items[at].value, at + 2
        else:
            return None
        return min(max(self._now.year + count, 1), 9999), after

    def _year_end(self, at: int) -> int:
        """Past the word for year, where one follows: "2024年", "2024 года"."""
        if self._kind(at) == "unit" and self._items[at].value == "year":
            return at + 1
        return at

    def _last(self, of: Callable[[int], Period]) -> Period:
        """The latest of the yearly periods that has begun."""
        this = of(self._now.year)
        return this if this.start <= self._now or self._now.year == 1 else of(self._now.year - 1)

    def _alone(self, at: int) -> bool:
        """Whether a bare month or season is one: names and verbs need a word that says so."""
        item, text = self._items[at], self._text(at)
        latin = not UNSPACED.search(text)
        if item.language != "en" and latin and len(self._items) > 1:
            # Outside English and German, months are not capitalised, but names such as Marco are.
            owner = at + 1 < len(self._items) and self._text(at + 1) == "s"
            if owner or (self._words[item.first].capital and not self._strong):
                return False
        if self._strong or len(self._items) == 1:
            return True
        if at and self._text(at - 1) in ("the", "this", "every") and self._near(at):
            return self._items[at].kind == "month" or self._led  # names have no article
        if text in self._names:
            return False
        if text in _VERBS or self._items[at].kind == "season":
            return (self._led and text not in _VERBS) or not latin
        return item.language == "en" or len(text) > 4 or not latin
