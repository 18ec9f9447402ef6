"""A small grammar of time: from items to periods and ranges. Ours; English in full, others by its patterns.

What has no year, or says only "May" or "Friday", is the last such time that has begun, as memories are of
the past. "N weeks ago" is that day, "a couple of" one to three, "a few" two to five; early, mid and late are
thirds.
"""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from hmem_core.retrieval.understanding import calendar
from hmem_core.retrieval.understanding.calendar import DAYS, EARLIEST, Period, clamped, shifted
from hmem_core.retrieval.understanding.lexicon import Item
from hmem_core.retrieval.understanding.relative import Relative
from hmem_core.retrieval.understanding.words import Word

__all__ = ["Found", "Parser"]


class Found(NamedTuple):
    """A time that a text names: a period or a range of it, and the items it was read from."""

    period: Period
    bound: str
    """``in``, ``since``, ``after``, ``before``, ``until`` or ``between``."""
    first: int
    last: int


class Parser(Relative):
    """Finds the times in the items of one text; arguments as of `Reader`."""

    def __init__(
        self, words: list[Word], items: list[Item], tail: str, now: dt.datetime, names: frozenset[str]
    ) -> None:
        super().__init__(words, items, tail, now, names)
        self._rules = {
            "date": self._date,
            "month": self._month,
            "month?": self._month,
            "number": self._number,
            "ordinal": self._number,
            "vague": self._counted,
            "half": self._counted,
            "mod": self._mod,
            "unit": self._unit,
            "weekday": self._weekday,
            "weekday?": self._weekday,
            "relative": self._relative,
            "weekday of": self._weekday_of,
            "head": self._head,
            "recent": self._recent,
            "season": self._season,
            "stage": self._stage,
            "holiday": self._holiday,
            "ordinalmark": self._quarter,
            "word": self._quarter_letter,
        }

    def all(self) -> list[Found]:
        """The times in the text, in order, none inside another."""
        found = []
        at = 0
        while at < len(self._items):
            one = self._range(at)
            if one is not None:
                found.append(one)
            at = one.last if one is not None else at + 1
        return found

    def _range(self, at: int) -> Found | None:
        kind = self._items[at].kind
        if kind == "head" and self._head(at) is None:  # "vor Mai", "em maio"
            kind = "bound" if self._items[at].value < 0 else "at"
        if kind == "bound":
            bound = self._items[at].value if self._items[at].kind == "bound" else "before"
            after = self._skip(at + 1, "the", "at")
            if bound in ("between", "from") and (several := self._first_days(at, after)):
                return several
            first = self._point(after, strong=True)
            if first is not None and bound in ("between", "from"):
                joined = ("and", "to") if bound == "between" else ("to", "bound", "and")
                pair = self._pair(at, first, joined)
                if pair is not None or bound == "between":
                    return pair
                bound = "since" if self._kind(first[1]) == "onwards" else "in"
                first = (first[0], first[1] + (bound == "since"))
            return None if first is None else self._bounded(bound, first[0], at, first[1])
        start = self._skip(at + 1, "at", "the") if kind in ("at", "the") else at
        strong = any(
            item.kind == "head" or (item.kind == "at" and (item.value or item.language != "en"))
            for item in self._items[at:start]
        )
        self._led = any(item.kind in ("at", "head") for item in self._items[at:start])
        if strong and (ahead := self._ahead(start)):
            return Found(ahead[0], "in", at, ahead[1])
        if start >= len(self._items) or (start > at and not self._near(start)):
            return None
        first = self._point(start, strong=strong)
        if first is None:
            return None
        language = self._items[start].language
        while at < start and self._items[at].language not in ("en", language):
            at += 1  # a preposition of another language is a word of this one
        while at + 1 < start and self._items[at].kind == self._items[at + 1].kind == "at":
            at += 1  # of "for on Friday", the first belongs to something else
        if (pair := self._pair(at, first, ("to",))) is not None:
            return pair
        if self._kind(first[1]) == "onwards":
            return self._bounded("since", first[0], at, first[1] + 1)
        if self._kind(first[1]) == "after bound":
            return self._bounded("since", first[0], at, first[1] + 1)
        return Found(first[0], "in", at, first[1])

    def _first_days(self, at: int, number_at: int) -> Found | None:
        """ "between 3 and 5 May": the month is that of the second day."""
        if self._kind(number_at) not in ("number", "ordinal") or self._kind(number_at + 1) not in (
            "to",
            "and",
        ):
            return None
        day = self._items[number_at].value
        last = self._point(self._skip(number_at + 2), strong=True)
        if last is None or last[0].unit != "day" or not 1 <= day < last[0].start.day:
            return None
        return Found(last[0]._replace(start=last[0].start.replace(day=day)), "between", at, last[1])

    def _bounded(self, bound: str, period: Period, first: int, last: int) -> Found:
        today = calendar.day(self._now).end
        if bound == "before":
            start, end = EARLIEST, period.start
        elif bound == "until":
            start, end = EARLIEST, period.end
        elif bound in ("since", "after"):
            start = period.start if bound == "since" else period.end
            end = max(today, period.end) if start < today else clamped(DAYS[period.unit], start)
        else:
            start, end = period.start, period.end
        return Found(Period(start, end, period.unit), bound, first, last)

    def _pair(self, at: int, first: tuple[Period, int], joins: tuple[str, ...]) -> Found | None:
        """Two points with one of `joins`, or a dash, between them."""
        low, after = first
        kind = self._kind(after)
        if kind in joins and (kind != "bound" or self._items[after].value == "until"):
            second = self._point(self._skip(after + 1, "the", "at"), strong=True)
        elif after < len(self._items) and self._words[self._items[after].first].gap.strip() in (
            "-",
            "–",
            "—",
        ):
            second = self._point(after, strong=True)
        else:
            return None
        if second is None:
            return None
        high, last = second
        if low.unit in ("month", "day", "season") and not self._dated(first[1]) and self._dated(last):
            low = _in_year(
                low, high.end.year if high.end.month > 1 or high.end.day > 1 else high.end.year - 1
            )
        if low.start >= high.end:  # the second is the last such time before now: so the first is one earlier
            low = _in_year(low, high.start.year)
            if low.start >= high.end:
                low = _in_year(low, high.start.year - 1)
        if low.start >= high.end:
            low, high = high, low
        unit = low.unit if DAYS[low.unit] > DAYS[high.unit] else high.unit
        return Found(Period(low.start, max(high.end, low.end), unit), "between", at, last)


def _in_year(period: Period, year: int) -> Period:
    """The same time of another year."""
    moved = shifted(period.start, "year", max(1, min(9999, year)) - period.start.year)
    if period.unit == "month":
        return calendar.month(moved.year, moved.month)
    return period._replace(start=moved, end=clamped((period.end - period.start).days, moved))
