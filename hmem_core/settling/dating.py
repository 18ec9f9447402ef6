"""When a fact began or stopped to be true, from what a model wrote."""

from __future__ import annotations

import datetime as dt
import re

from hmem_core import times
from hmem_core.errors import InvalidInput

__all__ = ["interval"]

_PART = re.compile(r"(\d{4})(?:-(\d{1,2}))?")
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")


def interval(
    since: str, until: str, said: int, tz: dt.tzinfo
) -> tuple[dt.datetime | None, dt.datetime | None]:
    """The start and end that these words mean; None for one that they leave open.

    Args:
        since: an ISO date or time, a year or a month, or "now"; anything else says nothing.
        until: likewise, or "past".
        said: when they were said, UTC microseconds.
    """
    start, end = _moment(since, "now", said, tz), _moment(until, "past", said, tz)
    if start is not None and end is not None and start >= end:
        end = None
    return start, end


def _moment(text: str, word: str, said: int, tz: dt.tzinfo) -> dt.datetime | None:
    text = text.strip().strip("\"'").strip()
    if text.casefold() in (word, "now"):
        return times.datetime_of(said)
    if match := _DAY.fullmatch(text):
        text = f"{match[1]}-{int(match[2]):02}-{int(match[3]):02}"
    elif match := _PART.fullmatch(text):
        text = f"{match[1]}-{int(match[2] or 1):02}-01"
    try:
        return times.datetime_of(times.micros(text, tz, "time"))
    except InvalidInput:
        return None
