"""Facts as short sentences."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from hmem_core.records import Unit

__all__ = ["chain", "conflict", "sentence", "when"]

Times = Mapping[int, dt.datetime]
"""The times of turns, by their ids."""


def when(moment: dt.datetime, tz: dt.tzinfo) -> str:
    """A day, or a day and a time of day where it is not midnight."""
    local = moment.astimezone(tz)
    return (
        f"{local:%Y-%m-%d}"
        if (local.hour, local.minute, local.second) == (0, 0, 0)
        else f"{local:%Y-%m-%d %H:%M}"
    )


def sentence(unit: Unit, tz: dt.tzinfo, now: dt.datetime, after: str | None = None) -> str:
    """One fact: ``Ann lives in Porto (since 2026-03-02; told in [12])``.

    Args:
        now: the time in question; what ended before it is past.
        after: what took its place, where that is known.
    """
    notes = [*_conditions(unit), *_interval(unit, tz, now)]
    if after is not None and unit.status == "superseded":
        notes.append(f"then {_line(after)}")
    if unit.status == "pending":
        notes.append("contradicted, and not newer")
    elif unit.status == "outdated":
        notes.append("what it rested on no longer holds")
    elif unit.status == "retracted":
        notes.append("withdrawn")
    notes += _sources(unit)
    return f"{_line(str(unit))} ({'; '.join(notes)})" if notes else _line(str(unit))


def conflict(held: Unit, others: Sequence[Unit], tz: dt.tzinfo, times: Times) -> str:
    """A fact and those that contradict it: ``Ann was born in: said 1988 on 2026-01-02 in [3], but 1990 on
    2026-05-01 in [9]; nothing says which is newer, the first one holds``."""
    said = [
        f"{_line(unit.object)} on {when(_told(unit, times), tz)}"
        + (f" in {_ids(unit)}" if unit.sources else "")
        for unit in (held, *others)
    ]
    conditions = f" ({'; '.join(_conditions(held))})" if held.contexts else ""
    holds = "the first one holds" if held.status == "active" else "none of them holds"
    slot = _line(f"{held.subject} {held.relation}")
    return f"{slot}{conditions}: said {', but '.join(said)}; nothing says which is newer, {holds}"


def chain(sentences: Sequence[str]) -> str:
    """A fact and what it rests on."""
    return ", because ".join(sentences)


def _told(unit: Unit, times: Times) -> dt.datetime:
    """When a unit was first said."""
    return min((times[turn] for turn in unit.sources if turn in times), default=unit.recorded)


def _conditions(unit: Unit) -> list[str]:
    return [f"when: {', '.join(map(_line, unit.contexts))}"] if unit.contexts else []


def _interval(unit: Unit, tz: dt.tzinfo, now: dt.datetime) -> list[str]:
    start, end = unit.valid_from, unit.valid_to
    if end is not None and start is not None:
        return [f"from {when(start, tz)} until {when(end, tz)}"]
    if end is not None:
        return [f"until {when(end, tz)}"]
    if start is None:
        return ["until another took its place"] if unit.status == "superseded" else []
    return [f"{'since' if start <= now else 'from'} {when(start, tz)}"]


def _ids(unit: Unit) -> str:
    return ", ".join(f"[{turn}]" for turn in unit.sources)


def _sources(unit: Unit) -> list[str]:
    return [f"told in {_ids(unit)}"] if unit.sources else []


def _line(text: str) -> str:
    """Stored text on one line."""
    return " ".join(text.split())
