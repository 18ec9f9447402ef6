"""Events as a user reads them: `memory.events`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hmem_core.effects import Embed, Priority, Program
from hmem_core.errors import EventNotFound, InvalidInput
from hmem_core.events import description
from hmem_core.events.description import Said
from hmem_core.events.scoring import Asked, event_scores
from hmem_core.messages import clean
from hmem_core.methods import Run, program
from hmem_core.options import ReadingOptions
from hmem_core.records import Event, TimelineItem
from hmem_core.retrieval import filters, reading, signals
from hmem_core.segments.annotation import shortened
from hmem_core.state import View
from hmem_core.times import datetime_of

__all__ = ["Events"]

IntArray = npt.NDArray[np.int32]


class Events:
    """The events of a memory. Each call reads the memory as it is then.

    Args:
        read: gives the memory, with the norms of events.
        run: runs programs.
        tz: the memory's time zone.
        options: how scores come about.
    """

    def __init__(self, read: Callable[[], View], run: Run, tz: dt.tzinfo, options: ReadingOptions) -> None:
        self._read = read
        self._run = run
        self._tz = tz
        self._options = options

    def get(self, id: int) -> Event:
        """The event of that number.

        Raises:
            EventNotFound: there is none, or its turns were forgotten.
            InvalidInput: `id` is not a whole number.
        """
        if isinstance(id, bool) or not isinstance(id, (int, np.integer)):
            raise InvalidInput(f"id={id!r} is not an event's number; numbers are whole")
        view = self._read()
        count = view.events.links.events
        if not 0 <= id < count:
            given = f"their numbers are 0 to {count - 1}" if count else "there are no events yet"
            raise EventNotFound(f"there is no event {id}; {given}")
        found = event(view, int(id))
        if found is None:
            raise EventNotFound(f"all turns of event {id} were forgotten")
        return found

    def of_turn(self, id: int) -> list[Event]:
        """The events that the turn belongs to, in the order it came to them; none if it waits for one.

        Raises:
            TurnNotFound, TurnForgotten: it was never stored, or is gone.
            InvalidInput: `id` is not a turn id.
        """
        view = self._read()
        numbers = view.events.links.events_of(reading.row(view, id)).tolist()
        return [found for number in numbers if (found := event(view, number)) is not None]

    def all(self, limit: int | None = None, *, min_turns: int = 1) -> Iterator[Event]:
        """Events, those that got a turn last first.

        Made one by one as they are asked for, from the memory as it was when this was called.

        Args:
            limit: so many at most; None for all.
            min_turns: leave out events of fewer turns.

        Raises:
            InvalidInput: an argument is not a whole number from 1.
        """
        for name, value in (("limit", limit), ("min_turns", min_turns)):
            _check_count(name, value)
        return _newest(self._read(), limit, min_turns)

    def __iter__(self) -> Iterator[Event]:
        """All events, as `all` gives them."""
        return self.all()

    @program(Priority.SEARCH)
    def search(self, query: str, k: int = 8) -> Program[list[Event]]:
        """The events nearest to `query`, best first, with their scores.

        By the scores of their turns, their centroid or description, and how much of the query's words they
        have, as in searches (`ReadingOptions.event`).

        Raises:
            InvalidInput: an empty query, or `k` is not a whole number from 1.
            EncoderError: the encoder failed.
        """
        if not isinstance(query, str) or not query.strip():
            raise InvalidInput(f"query={query!r} has no text; ask in words, or list events with all()")
        _check_count("k", None if k is None else k, wanted=True)
        text = clean(query)
        vectors = yield Embed((text,))
        view = self._read()
        if not view.events.links.events:
            return []
        allowed = filters.mask(view, self._tz, between=None, where=None, as_of=None)
        cosines = signals.cosines(view, vectors[0])
        own = signals.standardised(cosines, allowed, self._options.dense)
        own = own + signals.lexical(view, text, allowed, self._options)
        asked = Asked(own, cosines, vectors[0], view.analyzer.query(text))
        scores, shown = event_scores(view, asked, allowed, self._options)
        ranked = np.argsort(-scores, kind="stable")
        found = (event(view, number, float(scores[number])) for number in ranked[shown[ranked]][:k].tolist())
        return [one for one in found if one is not None]


def event(view: View, number: int, score: float | None = None) -> Event | None:
    """An event as a user sees it; None if all its turns were forgotten.

    Args:
        score: what it scored in a search.
    """
    said = turns_of(view, number)
    if not said:
        return None
    entries = view.events.descriptions_of(number)
    full = next((entry for entry in reversed(entries) if entry.summary is not None), None)
    times = {one.row: datetime_of(one.at) for one in said}
    facts = [
        TimelineItem(at=times[item.turn], fact=item.fact, turn=item.turn, time=item.time)
        for entry in entries
        for item in entry.timeline
        if item.turn in times
    ]
    if not facts:
        facts = [
            TimelineItem(
                at=times[one.row],
                fact=f"{one.speaker}: {shortened(one.text, description.LONGEST)}",
                turn=one.row,
            )
            for one in description.timeline(view, said)
        ]
    return Event(
        id=number,
        summary=description.summary(view, said) if full is None else str(full.summary),
        keywords=description.keywords(view, said) if full is None else full.keywords,
        tags=() if full is None else full.tags,
        entities=description.entities(view, said) if full is None else full.entities,
        timeline=tuple(sorted(facts, key=lambda fact: fact.at)),
        turns=tuple(sorted(one.row for one in said)),
        sessions=tuple(dict.fromkeys(one.session for one in said if one.session is not None)),
        speakers=tuple(dict.fromkeys(one.speaker for one in said)),
        start=datetime_of(said[0].at),
        end=datetime_of(said[-1].at),
        score=score,
    )


def turns_of(view: View, number: int) -> list[Said]:
    """The turns of an event that are not forgotten, in the order of their times."""
    found = []
    for row in np.unique(view.events.links.turns_of(number)).tolist():
        if row < view.rows and (turn := reading.turn(view, row)) is not None:
            at = int(view.narrow["at"][row])
            found.append(Said(row, turn.text, turn.speaker or turn.role, turn.session, at))
    return sorted(found, key=lambda one: one.at)


def _newest(view: View, limit: int | None, min_turns: int) -> Iterator[Event]:
    links = view.events.links
    live = view.narrow["live"][links.turn] == 1
    size = np.bincount(links.event[live], minlength=links.events)
    last = np.full(links.events, -1, np.int64)
    last[links.event] = np.arange(links.event.size)  # of equal indices the last one stays
    order = np.argsort(-last, kind="stable")
    given = 0
    for number in order[size[order] >= min_turns].tolist():
        if given == limit:
            return
        if (found := event(view, number)) is not None:
            given += 1
            yield found


def _check_count(name: str, value: Any, wanted: bool = False) -> None:
    if value is None and not wanted:
        return
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidInput(f"{name}={value!r} must be a whole number from 1")
