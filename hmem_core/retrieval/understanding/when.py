"""When: the times that a text names, absolute or relative, as intervals on the line of time."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterable
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from hmem_core.errors import InvalidInput
from hmem_core.retrieval.understanding import calendar
from hmem_core.retrieval.understanding.calendar import DAYS, LATEST, Period, utc
from hmem_core.retrieval.understanding.grammar import Found, Parser
from hmem_core.retrieval.understanding.lexicon import Item, lexicon
from hmem_core.retrieval.understanding.words import LIMIT, Word, split
from hmem_core.times import TimeLike, datetime_of, micros

__all__ = ["Order", "When", "prior", "resolve"]

FloatArray = npt.NDArray[np.float32]
Order = Literal["mdy", "dmy"]
"""What 03/04/2023 means: March 4 (``mdy``, the default, as in the United States) or 3 April (``dmy``)."""

_DAY = 86_400_000_000
_OPEN = utc(dt.datetime.min, dt.UTC)
_EDGE, _AFTER = r"(?<![\w.+/:$-])", r"(?![\w/-]|[.:]\d)"
_ISO = re.compile(
    rf"{_EDGE}(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}})"
    rf"(?:(?:T|\s{{1,2}})(\d\d):(\d\d)(?::\d\d(?:[.,]\d{{1,9}})?)?(Z|[+-]\d\d:?\d\d)?)?{_AFTER}"
)
_NUMERIC = re.compile(rf"{_EDGE}(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){_AFTER}")
_MONTH = re.compile(rf"{_EDGE}(?:(\d{{4}})[-/](\d\d)|(\d{{1,2}})/(\d{{4}})){_AFTER}")
_MARK = "\1"


class When(msgspec.Struct, frozen=True, kw_only=True):
    """A time that a text names."""

    start: int
    """[start, end) in UTC microseconds; start < end."""
    end: int
    precision: str
    """The unit it was named by: ``minute`` to ``century``, ``part`` (of a day), ``weekend``, ``season``."""
    bound: str
    """``in``; or ``since``, ``after``, ``before``, ``until``, ``between``: an explicit range."""
    vague: bool
    """Counted in round numbers, as "three weeks ago": it may be off by its precision."""
    span: tuple[int, int]
    """Its place in the text: first character, and one past the last."""
    text: str

    @property
    def hard(self) -> bool:
        """Whether a range was said in so many words, so that what lies outside is not meant."""
        return self.bound != "in"

    @property
    def width(self) -> int:
        """Microseconds within which a time outside is still near: the interval's length, and at least its
        unit's if it is vague; of an open range the unit's."""
        unit = int(DAYS[self.precision] * _DAY)
        if self.hard and self.bound != "between":
            return unit
        return max(self.end - self.start, unit if self.vague else 0)

    @property
    def between(self) -> tuple[dt.datetime | None, dt.datetime | None]:
        """The interval as `search` takes it; a vague one with half its unit more on either side."""
        slack = int(DAYS[self.precision] * _DAY / 2) if self.vague else 0
        low, high = max(self.start - slack, _OPEN), min(self.end + slack, utc(LATEST, dt.UTC))
        return (None if low == _OPEN else datetime_of(low)), datetime_of(high)


def resolve(
    text: str,
    reference: TimeLike | int,
    tz: dt.tzinfo = dt.UTC,
    *,
    order: Order = "mdy",
    language: str = "en",
    names: Collection[str] = (),
) -> tuple[When, ...]:
    """The times that the beginning of `text` names, in order, seen from `reference`.

    Args:
        reference: what "last week" counts from: the clock for a query, the turn's own time for a turn; UTC
            microseconds, or as `times.micros` takes it.
        tz: the zone whose days and weeks are meant.
        order: see `Order`. 25/12/2023 is understood in either; with dots the day is always first.
        language: code or stemmer's name of the language that is looked up first.
        names: folded words that name somebody here, so that "April" alone is no month.

    Raises:
        InvalidInput: `reference` is no time, or `order` none of the two.
    """
    if order not in ("mdy", "dmy"):
        raise InvalidInput(f"order={order!r} is neither 'mdy' nor 'dmy'")
    stored = reference if isinstance(reference, int) else micros(reference, tz, "reference")
    now = _local(stored, tz)
    head = text[:LIMIT]
    words, dates = _dated(head, order, tz)
    if not words:
        return ()
    items = [
        Item("date", dates[words[item.first].text], item.first, item.last)
        if item.kind == "word" and words[item.first].text in dates
        else item
        for item in lexicon(language).items(words)
    ]
    parser = Parser(words, items, head[words[-1].end :], now, frozenset(names))
    found = (_when(one, items, words, head, tz) for one in parser.all())
    return tuple(one for one in found if one.start < one.end)


def prior(when: Iterable[When], at: npt.NDArray[np.int64]) -> FloatArray:
    """How well turns fit the times: float32 of the shape of `at`, their times in UTC microseconds.

    1 inside an interval; outside, exp(-d / w), with d the distance to it and w its `When.width`. The best of
    several; 0 without any.
    """
    total = np.zeros(at.shape, np.float32)
    for one in when:
        before = (one.start - at).astype(np.float64)
        after = (at - (one.end - 1)).astype(np.float64)
        distance = np.maximum(np.maximum(before, after), 0.0)
        np.maximum(total, np.exp(-distance / max(one.width, 1)).astype(np.float32), out=total)
    return total


def _local(stored: int, tz: dt.tzinfo) -> dt.datetime:
    """Wall-clock time of stored microseconds; the nearest there is, beyond the years 1 to 9999."""
    try:
        return datetime_of(stored).astimezone(tz).replace(tzinfo=None)
    except (OverflowError, ValueError):
        return dt.datetime.min if stored < 0 else dt.datetime.max.replace(microsecond=0)


def _when(found: Found, items: list[Item], words: list[Word], text: str, tz: dt.tzinfo) -> When:
    period = found.period
    start, end = words[items[found.first].first].start, words[items[found.last - 1].last - 1].end
    return When(
        start=utc(period.start, tz),
        end=utc(period.end, tz),
        precision=period.unit,
        bound=found.bound,
        vague=period.vague,
        span=(start, end),
        text=text[start:end],
    )


# -- dates in figures --------------------------------------------------------------------------------


def _dated(text: str, order: Order, tz: dt.tzinfo) -> tuple[list[Word], dict[str, Period]]:
    """The words of `text`, with one word for each date in figures, and what these mean."""
    spans: list[tuple[int, int, Period]] = []
    for pattern, read in ((_ISO, _iso), (_NUMERIC, _numeric), (_MONTH, _year_month)):
        for match in pattern.finditer(text):
            if any(first < match.end() and match.start() < last for first, last, _ in spans):
                continue
            period = read(match, order, tz)
            if period is not None:
                spans.append((*match.span(), period))
    words = split(text)
    if not spans:
        return words, {}
    spans.sort(key=lambda one: one[0])
    dates: dict[str, Period] = {}
    merged: list[Word] = []
    for word in words:
        inside = next((one for one in spans if one[0] <= word.start < one[1]), None)
        if inside is None:
            merged.append(word)
        elif word.start == inside[0]:
            name = f"{_MARK}{len(dates)}"
            dates[name] = inside[2]
            merged.append(Word(name, inside[0], inside[1], word.gap, False))
    return merged, dates


def _iso(match: re.Match[str], order: Order, tz: dt.tzinfo) -> Period | None:
    year, _, month, day, hour, minute, offset = match.groups()
    date = _date(int(year), int(month), int(day))
    if date is None or hour is None:
        return date
    try:
        moment = date.start.replace(hour=int(hour), minute=int(minute))
        if offset:
            sign = "+00:00" if offset == "Z" else offset
            moment = (
                dt.datetime.fromisoformat(f"{moment.isoformat()}{sign}").astimezone(tz).replace(tzinfo=None)
            )
    except (ValueError, OverflowError):
        return date
    return calendar.period(moment, "minute")


def _numeric(match: re.Match[str], order: Order, tz: dt.tzinfo) -> Period | None:
    first, mark, second, year = match.groups()
    if len(year) == 2 and mark != "/":
        return None
    number = int(year) if len(year) == 4 else int(year) + (2000 if int(year) < 70 else 1900)
    day_first = mark == "." or order == "dmy"
    month, day = (int(second), int(first)) if day_first else (int(first), int(second))
    return _date(number, month, day) or (None if mark == "." else _date(number, day, month))


def _year_month(match: re.Match[str], order: Order, tz: dt.tzinfo) -> Period | None:
    year, month = (match[1], match[2]) if match[1] else (match[4], match[3])
    return calendar.month(int(year), int(month)) if int(year) > 0 and 1 <= int(month) <= 12 else None


def _date(year: int, month: int, day: int) -> Period | None:
    try:
        return calendar.day(dt.datetime(year, month, day))
    except ValueError:
        return None
