"""Times: what users write, and the UTC microseconds that are stored."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo

from hmem_core.errors import InvalidInput

__all__ = ["TimeLike", "datetime_of", "interval", "micros", "zone"]

TimeLike = dt.datetime | dt.date | str
"""An aware or naive datetime, a date (its midnight), or either as ISO 8601 text."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{8}|\d{4}-?W\d\d-?\d")
_MIN, _MAX = -(2**63), 2**63 - 1


def zone(tz: str | dt.tzinfo) -> dt.tzinfo:
    """The time zone of that name.

    Raises:
        InvalidInput: there is no such zone on this machine.
    """
    if isinstance(tz, dt.tzinfo):
        return tz
    if tz == "UTC":  # needs no zone files
        return dt.UTC
    try:
        return zoneinfo.ZoneInfo(tz)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError, TypeError) as error:
        raise InvalidInput(
            f"tz={tz!r} is not a time zone known here; give an IANA name such as 'Europe/Lisbon' "
            "(a machine without zone files needs `pip install tzdata`) or a datetime.tzinfo"
        ) from error


def _is_date(value: TimeLike) -> bool:
    if isinstance(value, str):
        return _DATE.fullmatch(value.strip()) is not None
    return not isinstance(value, dt.datetime)


def _aware(value: TimeLike, tz: dt.tzinfo, what: str) -> dt.datetime:
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise InvalidInput(
                f"{what}={value!r} is not an ISO 8601 time; write it like '2026-03-02T10:00Z' "
                "(years 0001 to 9999), or give a datetime"
            ) from error
    elif isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    elif not isinstance(value, dt.datetime):
        raise InvalidInput(
            f"{what}={value!r} is a {type(value).__name__}; give a datetime or ISO 8601 text "
            "(for seconds since 1970: datetime.fromtimestamp(seconds, timezone.utc))"
        )
    return value if value.tzinfo is not None else value.replace(tzinfo=tz)


def micros(value: TimeLike, tz: dt.tzinfo, what: str = "at") -> int:
    """UTC microseconds since 1970 of `value`; a naive time is read in `tz`.

    Raises:
        InvalidInput: `value` is no time, or outside the years 1 to 9999 in UTC.
    """
    aware = _aware(value, tz, what)
    try:
        utc = aware.astimezone(dt.UTC)  # also settles folds and gaps of local time
    except (OverflowError, ValueError) as error:
        raise InvalidInput(f"{what}={value!r} lies outside the years 1 to 9999 in UTC") from error
    return (utc - _EPOCH) // _MICROSECOND


def datetime_of(stored: int) -> dt.datetime:
    """The aware UTC datetime of stored microseconds."""
    return _EPOCH + dt.timedelta(microseconds=int(stored))


def interval(between: tuple[TimeLike | None, TimeLike | None], tz: dt.tzinfo) -> tuple[int, int]:
    """The half-open interval [start, end) in UTC microseconds.

    None leaves a side open. An end given as a bare date includes that whole day.

    Raises:
        InvalidInput: not a pair of times, or the end lies before the start.
    """
    if isinstance(between, str) or not hasattr(between, "__len__") or len(between) != 2:
        raise InvalidInput(f"between={between!r} is not a pair (start, end); None leaves a side open")
    start, end = between
    low = _MIN if start is None else micros(start, tz, "between[0]")
    high = _MAX
    if end is not None:
        aware = _aware(end, tz, "between[1]")
        if _is_date(end) and aware.date() != dt.date.max:
            aware = (aware.replace(tzinfo=None) + dt.timedelta(days=1)).replace(tzinfo=aware.tzinfo)
        high = micros(aware, tz, "between[1]")
    if high < low:
        raise InvalidInput(f"between={between!r} ends before it starts")
    return low, high
