"""Arithmetic of local calendar time. Everything stays within the years 1 to 9999.

Periods are half-open and naive: wall-clock time of one zone. `utc` places them on the line of time.
"""

from __future__ import annotations

import calendar
import datetime as dt
from typing import NamedTuple

from hmem_core.times import micros

__all__ = [
    "EARLIEST",
    "LATEST",
    "Period",
    "clamped",
    "day",
    "month",
    "period",
    "season",
    "shifted",
    "utc",
    "year",
]

EARLIEST, LATEST = dt.datetime.min, dt.datetime.max
DAYS = {
    "minute": 1 / 1440,
    "hour": 1 / 24,
    "part": 0.25,
    "day": 1,
    "weekend": 2,
    "week": 7,
    "fortnight": 14,
    "month": 30,
    "quarter": 91,
    "season": 91,
    "year": 365,
    "decade": 3652,
    "century": 36524,
}
"""About how many days a unit has."""

_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}
_MICROSECOND = dt.timedelta(microseconds=1)
_EPOCH_UTC_MIN = micros(dt.datetime.min.replace(tzinfo=dt.UTC), dt.UTC)
_EPOCH_UTC_MAX = micros(dt.datetime.max.replace(tzinfo=dt.UTC), dt.UTC)


class Period(NamedTuple):
    """[start, end) and what it was named by."""

    start: dt.datetime
    end: dt.datetime
    unit: str
    vague: bool = False
    """Counted back from now in round numbers, as "three weeks ago": the unit says how far it may be off."""


def clamped(ordinal_days: float, base: dt.datetime) -> dt.datetime:
    """`base` moved by so many days, or the first or last moment there is."""
    try:
        return base + dt.timedelta(days=ordinal_days)
    except OverflowError:
        return EARLIEST if ordinal_days < 0 else LATEST


def _months(base: dt.datetime, count: int) -> dt.datetime:
    """The same day `count` months later, or the last of a month that is shorter."""
    index = base.year * 12 + base.month - 1 + count
    if index < 12:
        return EARLIEST
    if index >= 120_000:
        return LATEST
    to_year, to_month = index // 12, index % 12 + 1
    last = calendar.monthrange(to_year, to_month)[1]
    return base.replace(year=to_year, month=to_month, day=min(base.day, last))


def shifted(base: dt.datetime, unit: str, count: int) -> dt.datetime:
    """`base` moved by `count` units of the calendar."""
    count = max(-(10**6), min(10**6, count))
    if unit in _MONTHS:
        return _months(base, count * _MONTHS[unit])
    if unit == "season":
        return _months(base, 3 * count)
    return clamped(count * (7 if unit == "weekend" else DAYS[unit]), base)


def midnight(moment: dt.datetime) -> dt.datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def day(moment: dt.datetime) -> Period:
    start = midnight(moment)
    return Period(start, clamped(1, start), "day")


def month(in_year: int, number: int) -> Period:
    start = dt.datetime(in_year, number, 1)
    return Period(start, _months(start, 1), "month")


def year(number: int) -> Period:
    start = dt.datetime(number, 1, 1)
    return Period(start, _months(start, 12), "year")


def season(in_year: int, number: int) -> Period:
    """Meteorological seasons of the northern half: 0 is spring, from March; 3 winter, from December."""
    start = dt.datetime(in_year, 3 + 3 * number, 1)
    return Period(start, _months(start, 3), "season")


def period(moment: dt.datetime, unit: str) -> Period:
    """The calendar's unit that `moment` lies in. Weeks begin on Monday; a weekend is the week's last."""
    start = midnight(moment)
    if unit in ("minute", "hour"):
        start = moment.replace(second=0, microsecond=0)
        if unit == "hour":
            start = start.replace(minute=0)
        return Period(start, clamped(DAYS[unit], start), unit)
    if unit in ("week", "weekend", "fortnight"):
        start = clamped(-start.weekday(), start)
        if unit == "weekend":
            return Period(clamped(5, start), clamped(7, start), unit)
        return Period(start, clamped(DAYS[unit], start), unit)
    if unit == "day":
        return day(start)
    if unit == "season":
        index = (start.month - 3) % 12 // 3
        return season(start.year - (start.month < 3 and start.year > 1), index)
    first = start.replace(day=1)
    if unit == "quarter":
        first = first.replace(month=first.month - (first.month - 1) % 3)
    elif unit != "month":
        span = _MONTHS[unit] // 12
        first = dt.datetime(max(first.year - first.year % span, 1), 1, 1)
    return Period(first, _months(first, _MONTHS[unit]), unit)


def utc(moment: dt.datetime, tz: dt.tzinfo) -> int:
    """UTC microseconds of a wall-clock time; of one that a clock shows twice, the earlier."""
    if moment <= EARLIEST:
        return _EPOCH_UTC_MIN
    if moment >= LATEST:
        return _EPOCH_UTC_MAX
    try:
        offset = tz.utcoffset(moment.replace(tzinfo=None)) or dt.timedelta()
        shifted_ = (moment - dt.datetime(1970, 1, 1) - offset) // _MICROSECOND
    except (OverflowError, ValueError):
        return _EPOCH_UTC_MIN if moment.year < 5000 else _EPOCH_UTC_MAX
    return min(max(shifted_, _EPOCH_UTC_MIN), _EPOCH_UTC_MAX)
