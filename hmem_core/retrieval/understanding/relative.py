"""Times that are counted from now: "last week", "three days ago", "Friday", "the week of May 3"."""

from __future__ import annotations

import datetime as dt

from hmem_core.retrieval.understanding import calendar
from hmem_core.retrieval.understanding.absolute import Absolute, third
from hmem_core.retrieval.understanding.calendar import DAYS, Period, clamped, shifted
from hmem_core.retrieval.understanding.lexicon import Item
from hmem_core.retrieval.understanding.reader import Point
from hmem_core.retrieval.understanding.words import UNSPACED

__all__ = ["Relative"]

_PART_HOURS = ((5, 12), (11, 14), (12, 18), (17, 23), (18, 30))


class Relative(Absolute):
    """Rules for them."""

    def _amount(self, at: int) -> tuple[float, float, str, int] | None:
        """(least, most, unit, one past it) of "two weeks", "a few days", "half a year"."""
        half = self._kind(at) == "half" or (at < len(self._items) and self._items[at].kind == "half")
        at += half
        if at >= len(self._items):
            return None
        item = self._items[at]
        low = high = 1.0
        if item.kind == "vague":
            low, high = item.value
        elif item.kind == "number":
            low = high = item.value
        elif not half:
            return None
        at += item.kind in ("vague", "number")
        if self._kind(at) not in ("unit", "short"):
            return None
        low, high = (low / 2, high / 2) if half else (low, high)
        return low, high, self._items[at].value, at + 1

    def _moved(self, amount: tuple[float, float, str, int], sign: int, base: dt.datetime) -> Period:
        low, high, unit, _ = amount
        if low == high and low == int(low):
            moment = shifted(base, unit, sign * int(low))
            return calendar.period(moment, unit if unit in ("minute", "hour") else "day")._replace(
                unit=unit, vague=DAYS[unit] > 1
            )
        near, far = (clamped(sign * DAYS[unit] * count, base) for count in (low, high))
        start, end = min(near, far), max(near, far)
        return Period(calendar.midnight(start), calendar.day(end).end, unit, vague=True)

    def _counted(self, at: int) -> Point:
        """ "two weeks ago", "3 days before Christmas Eve, 2023", "two months later"."""
        amount = self._amount(at)
        if amount is None:
            return None
        after = amount[3]
        kind = self._kind(after)
        if kind == "ago":
            sign = self._items[after].value
            return self._moved(amount, sign, self._now), after + 1
        if kind == "bound" and (bound := self._items[after].value) in ("before", "after"):
            other = self._point(self._skip(after + 1, "the", "at"), strong=True)
            if other is not None:
                return self._moved(amount, -1 if bound == "before" else 1, other[0].start), other[1]
        if kind == "mod" and self._items[after].value < 0 and self._items[after].language != "en":
            return self._recent_of(amount), after + 1  # "los 3 meses pasados"
        return None

    def _head(self, at: int) -> Point:
        """ "hace dos días", "vor einer Woche"; else a word such as "vor" is a bound."""
        amount = self._amount(at + 1) if self._kind(at + 1) else None
        if amount is not None:
            return self._moved(amount, self._items[at].value, self._now), amount[3]
        return None

    def _ahead(self, at: int) -> Point:
        """ "in two weeks"."""
        amount = self._amount(at) if self._kind(at) in ("number", "vague", "half") else None
        if amount is None or amount[2] == "quarter" or self._kind(amount[3]) in ("ago", "bound", "mod"):
            return None
        return self._moved(amount, 1, self._now), amount[3]

    def _recent_of(self, amount: tuple[float, float, str, int]) -> Period:
        _, high, unit, _ = amount
        if unit in ("minute", "hour"):
            return Period(clamped(-high * DAYS[unit], self._now), clamped(DAYS[unit], self._now), unit)
        back = (
            shifted(self._now, unit, -int(high))
            if high == int(high)
            else clamped(-high * DAYS[unit], self._now)
        )
        return Period(calendar.midnight(back), calendar.day(self._now).end, unit)

    def _recent(self, at: int) -> Point:
        """最近三天, 最近一周."""
        amount = self._amount(at + 1) if self._kind(at + 1) else None
        return None if amount is None else (self._recent_of(amount), amount[3])

    def _mod(self, at: int) -> Point:
        """ "last week", "next Friday", "last May", "this morning", "the past three days"."""
        item = self._items[at]
        sign, after = item.value, at + 1
        kind = self._kind(after)
        if kind in ("number", "vague") and (amount := self._amount(after)):
            if sign < 0:
                return self._recent_of(amount), amount[3]
            if sign > 0:
                _, high, unit, last = amount
                start = calendar.day(self._now).start
                return Period(start, clamped(DAYS[unit] * high + 1, start), unit), last
        if kind == "unit" and sign < 0 and (ending := self._last_of(after)):
            return ending
        if item.language == "en" and kind and self._items[after].language != "en":
            return None
        if kind in ("unit", "weekday", "weekday?", "month", "month?", "season", "part"):
            found = self._modified(sign, self._items[after], item.language == "en")
            last = after + 1
            if found is not None and kind == "weekday" and self._kind(last) == "part":
                found, last = _part(found, self._items[last].value), last + 1
            return None if found is None else (found, last)
        return None

    def _last_of(self, at: int) -> Point:
        """ "the last week of May": the last that begins in it."""
        unit, of = self._items[at].value, self._skip(at + 1)
        whole = self._point(of, strong=True) if of > at + 1 and unit in ("day", "week", "weekend") else None
        if whole is None or DAYS[whole[0].unit] < 28:
            return None
        found = calendar.period(clamped(-1, whole[0].end), unit)
        if found.start >= whole[0].end:
            found = calendar.period(clamped(-7, found.start), unit)
        return found, whole[1]

    def _modified(self, sign: int, item: Item, english: bool = True) -> Period | None:
        now = self._now
        if item.kind == "unit":
            unit = item.value
            if unit == "weekend" and sign < 0 and now.weekday() >= 5:
                return calendar.period(shifted(now, "week", -1), "weekend")
            if unit == "weekend" and sign < 0:
                return calendar.period(clamped(-now.weekday() - 1, now), "weekend")
            if unit in ("minute", "hour"):
                return None
            return calendar.period(shifted(calendar.period(now, unit).start, unit, sign), unit)
        if item.kind.startswith("weekday"):
            offset = item.value - now.weekday()
            if sign < 0:
                offset = offset % 7 - 7
            elif sign > 0:
                offset = (offset - 1) % 7 + 1
            return calendar.day(clamped(offset, now))
        if item.kind.startswith("month"):
            if sign < 0:
                found = self._last(lambda year: calendar.month(year, item.value))
                if found.end <= now:
                    return found
                return calendar.month(max(found.start.year - 1, 1), item.value)
            later = now.year + (sign > 0 and item.value <= now.month)
            return calendar.month(min(later, 9999), item.value)
        if item.kind == "season":
            year = now.year
            of = [
                calendar.season(max(year + step, 1), item.value)
                for step in (-2, -1, 0, 1)
                if year + step < 10**4
            ]
            if sign < 0:
                return next((one for one in reversed(of) if one.end <= now), of[0])
            if sign > 0:
                return next((one for one in of if one.start > now), of[-1])
            return min(of, key=lambda one: abs((one.start - now).total_seconds() + 4e6))
        base = calendar.day(clamped(-1 if sign < 0 else int(sign), now))
        return _part(base, item.value)

    def _unit(self, at: int) -> Point:
        """ "semana pasada", "week before last", "the week of May 3", "the week before" at the end."""
        item, after = self._items[at], at + 1
        kind = self._kind(after)
        if item.value == "year" and kind == "number" and (dated := self._year_at(after)):
            return calendar.year(dated[0]), dated[1]
        if kind == "before last":
            back = shifted(self._now, item.value, -2)
            return calendar.period(back, item.value), after + 1
        if kind == "mod" and self._items[after].language != "en" and not UNSPACED.search(self._text(after)):
            found = self._modified(self._items[after].value, item)
            return None if found is None else (found, after + 1)
        if kind == "bound" and self._items[after].value in ("before", "after"):
            sign = -1 if self._items[after].value == "before" else 1
            other = self._point(self._skip(after + 1, "the", "at"), strong=True)
            if other is not None:
                base = other[0].start if sign < 0 else clamped(-1, other[0].end)
                return calendar.period(shifted(base, item.value, sign), item.value), other[1]
            if self._ends(after + 1) and item.language == "en" and sign < 0:
                return calendar.period(shifted(self._now, item.value, -1), item.value), after + 1
        of = self._skip(after, "the", "at")
        if of > after and item.value in ("week", "weekend", "month", "day"):
            other = self._point(of, strong=False)
            if other is not None and DAYS[other[0].unit] <= 1:
                return calendar.period(other[0].start, item.value), other[1]
        return None

    def _weekday(self, at: int) -> Point:
        item, after = self._items[at], at + 1
        if self._kind(after) == "mod" and self._items[after].language != "en":
            found = self._modified(self._items[after].value, item)
            return None if found is None else (found, after + 1)
        dated = self._skip(after, "the", "at")
        other = (
            self._point(dated)
            if self._kind(dated) in ("date", "month", "month?", "number", "ordinal")
            else None
        )
        if other is not None and other[0].unit == "day":
            return other
        if item.kind == "weekday?":
            return None
        if (
            self._kind(dated) in ("mod", "relative")
            and (week := self._point(dated))
            and week[0].unit == "week"
        ):
            return calendar.day(clamped(item.value, week[0].start)), week[1]
        found = calendar.day(clamped(-((self._now.weekday() - item.value) % 7), self._now))
        if self._kind(after) == "part":
            return _part(found, self._items[after].value), after + 1
        return found, after

    def _season(self, at: int) -> Point:
        item, after = self._items[at], at + 1
        if dated := self._year_at(after):
            return calendar.season(dated[0], item.value), dated[1]
        kind = self._kind(after)
        if kind == "mod" and self._items[after].language != "en":
            found = self._modified(self._items[after].value, item)
            return None if found is None else (found, after + 1)
        if not self._alone(at):
            return None
        return self._last(lambda year: calendar.season(year, item.value)), after

    def _relative(self, at: int) -> Point:
        unit, count = self._items[at].value
        after = at + 1
        if unit == "year" and UNSPACED.search(self._words[self._items[at].first].text):
            return self._of_year(min(max(self._now.year + count, 1), 9999), after)
        if unit == "part":
            return _part(calendar.day(self._now), count), after
        if unit == "weekend":
            weekend = self._modified(count, Item("unit", unit, 0, 0))
            return None if weekend is None else (weekend, after)
        found = calendar.period(shifted(calendar.period(self._now, unit).start, unit, count), unit)
        if self._kind(after) == "part" and unit == "day":
            return _part(found, self._items[after].value), after + 1
        if self._kind(after) == "stage after":
            return third(found, self._items[after].value), after + 1
        named = self._skip(after)
        if unit == "week" and self._kind(named) == "weekday":
            return calendar.day(clamped(self._items[named].value, found.start)), named + 1
        return found, after

    def _weekday_of(self, at: int) -> Point:
        """上周三: that day of last week."""
        week, day = self._items[at].value
        monday = calendar.period(shifted(self._now, "week", week), "week").start
        return calendar.day(clamped(day, monday)), at + 1


def _part(day: Period, part: int) -> Period:
    """Morning, noon, afternoon, evening or night of a day; the night ends in the next morning."""
    first, last = _PART_HOURS[part]
    return Period(clamped(first / 24, day.start), clamped(last / 24, day.start), "part")
