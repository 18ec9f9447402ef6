"""Dates, months, years, seasons, quarters: times that are named rather than counted from now."""

from __future__ import annotations

import calendar as months
import datetime as dt

from hmem_core.retrieval.understanding import calendar
from hmem_core.retrieval.understanding.calendar import DAYS, LATEST, Period, clamped, shifted
from hmem_core.retrieval.understanding.lexicon import Item
from hmem_core.retrieval.understanding.reader import Point, Reader

__all__ = ["Absolute", "third"]

_COARSE = {"month", "season", "quarter", "year", "decade", "century", "week"}


class Absolute(Reader):
    """Rules for them; what lacks a year is the last such time that has begun."""

    def _date(self, at: int) -> Point:
        return self._items[at].value, at + 1

    def _month(self, at: int) -> Point:
        item = self._items[at]
        number = item.value
        after = at + 1
        counted = self._skip(after)
        if self._kind(counted) in ("number", "ordinal") and 0 < (first := self._items[counted]).digits < 3:
            if 1 <= first.value <= 31 and (item.kind == "month" or item.language == "en"):
                after = counted + 1
                if self._kind(after) == "unit" and self._items[after].value == "day":
                    after += 1
                return self._days(number, first.value, after)
            return None
        if dated := self._year_at(after):
            return calendar.month(dated[0], number), dated[1]
        if self._kind(after) == "number" and self._items[after].digits == 4:
            return None  # the year 0
        if item.kind == "month?" or not self._alone(at):
            return None
        return self._last(lambda year: calendar.month(year, number)), after

    def _days(self, month: int, day: int, after: int) -> Point:
        """A day of a month, or several ("3-5"), with the year that may follow."""
        until = day
        second = after + (self._kind(after) == "to")
        if self._kind(second) in ("number", "ordinal") and 0 < self._items[second].digits < 3:
            dash = self._words[self._items[second].first].gap.strip() in ("-", "–", "—")
            if (dash or second > after) and day < self._items[second].value <= 31:
                until, after = self._items[second].value, second + 1
        dated = self._year_at(after)
        if dated is None:
            found = self._last(lambda year: _day(year, month, day))
        else:
            found, after = _day(dated[0], month, day), dated[1]
        if until > day and found.unit == "day":
            found = found._replace(end=_day(found.start.year, month, until).end)
        return found, after

    def _number(self, at: int) -> Point:
        """A day before its month, a year, a decade, a quarter, or a count of units."""
        item = self._items[at]
        after = self._skip(at + 1)
        kind = self._kind(after)
        if kind == "month" or (kind == "month?" and self._items[after].language == "en"):
            if 1 <= item.value <= 31 and item.digits < 3:
                return self._days(self._items[after].value, item.value, after + 1)
        elif kind == "month?" and item.digits and (dated := self._year_at(after + 1)):
            return _day(dated[0], self._items[after].value, min(max(item.value, 1), 31)), dated[1]
        if item.kind == "ordinal" and kind == "unit":
            return self._nth(at, after)
        if item.digits == 2 and kind == "to" and self._kind(after + 1) in ("number", "ordinal"):
            return None
        return self._year(at)

    def _year(self, at: int) -> Point:
        item = self._items[at]
        spelled = self._kind(at + 1) == "unit" and self._items[at + 1].value == "year"
        spelled = spelled and item.digits == 4
        plural = at + 1 < len(self._items) and self._text(at + 1) == "s"
        if plural and self._words[self._items[at + 1].first].gap in ("", "'", "’"):
            decade = self._decade(item)
            return None if decade is None else (decade, at + 2)
        if item.digits != 4 or not 1 <= item.value <= 9999:
            return None
        if spelled:
            return self._of_year(item.value, at + 2)
        dashed = at + 1 < len(self._items) and self._words[self._items[at + 1].first].gap in ("-", "–", "—")
        ranged = dashed and self._items[at + 1].digits == 4
        if 1900 <= item.value < 2100 and (self._strong or ranged or len(self._items) == 1):
            return calendar.year(item.value), at + 1
        return None

    def _of_year(self, year: int, at: int) -> Point:
        """A month, day or season that follows its year, as in 2023年5月7日; else the year."""
        after = self._skip(at)
        if self._kind(after) == "month":
            month = self._items[after].value
            if self._kind(after + 1) == "number" and 1 <= self._items[after + 1].value <= 31:
                end = after + 2
                end += self._kind(end) == "unit" and self._items[end].value == "day"
                return _day(year, month, self._items[after + 1].value), end
            return calendar.month(year, month), after + 1
        if self._kind(after) == "season" and year < 9999:
            return calendar.season(year, self._items[after].value), after + 1
        return calendar.year(year), at

    def _decade(self, item: Item) -> Period | None:
        """The 1990s, the '90s."""
        if item.value % 10 or item.digits not in (2, 4) or (item.digits == 2 and not self._strong):
            return None
        number = item.value if item.digits == 4 else item.value + (1900 if item.value > 20 else 2000)
        if not 1 <= number <= 9999:
            return None
        start = dt.datetime(number, 1, 1)
        return Period(start, shifted(start, "decade", 1), "decade")

    def _nth(self, at: int, unit_at: int) -> Point:
        """The n-th day, week, weekend or quarter of something larger."""
        number, unit = self._items[at].value, self._items[unit_at].value
        after = self._skip(unit_at + 1, "the", "at")
        dated = self._year_at(after)
        if unit == "quarter" and 1 <= number <= 4:
            year, last = dated or (self._now.year, unit_at + 1)
            return self._quarter_of(number, year), last
        if unit in ("day", "week", "weekend") and (whole := self._point(after, strong=True)):
            start = whole[0].start
            if unit == "weekend":
                start = clamped((5 - start.weekday()) % 7, start)
            start = shifted(start, "week" if unit == "weekend" else unit, number - 1)
            if start < whole[0].end:
                return Period(start, clamped(DAYS[unit], start), unit), whole[1]
        return None

    def _quarter_of(self, number: int, year: int) -> Period:
        return calendar.period(dt.datetime(year, 3 * number - 2, 1), "quarter")

    def _quarter(self, at: int) -> Point:
        """第二季度."""
        if self._kind(at + 1) == "number" and self._kind(at + 2) == "unit":
            number, unit = self._items[at + 1].value, self._items[at + 2].value
            if unit == "quarter" and 1 <= number <= 4:
                return self._quarter_of(number, self._now.year), at + 3
        return None

    def _quarter_letter(self, at: int) -> Point:
        """Q2, Q2 2024."""
        if self._text(at) == "q" and self._kind(at + 1) == "number":
            number = self._items[at + 1]
            if not self._words[number.first].gap and 1 <= number.value <= 4 and number.digits == 1:
                year, after = self._year_at(at + 2) or (self._now.year, at + 2)
                return self._quarter_of(number.value, year), after
        return None

    def _holiday(self, at: int) -> Point:
        month, day = self._items[at].value
        if dated := self._year_at(at + 1):
            return _day(dated[0], month, day), dated[1]
        return self._last(lambda year: _day(year, month, day)), at + 1

    def _stage(self, at: int) -> Point:
        whole = self._point(self._skip(at + 1, "the", "at"), strong=True)
        if whole is None or whole[0].unit not in _COARSE:
            return None
        return third(whole[0], self._items[at].value), whole[1]


def _day(year: int, month: int, day: int) -> Period:
    """That day; the month, if it has no such day."""
    if day > months.monthrange(year, month)[1]:
        return calendar.month(year, month)
    return calendar.day(dt.datetime(year, month, day))


def third(whole: Period, stage: int) -> Period:
    """The first, middle or last third of a period, in whole days."""
    third = (whole.end - whole.start) / 3
    start = calendar.midnight(whole.start + stage * third)
    end = whole.end if stage == 2 else calendar.midnight(whole.start + (stage + 1) * third)
    return Period(start, max(end, clamped(1, start) if start < LATEST else LATEST), whole.unit)
