"""Which turns belong to which events, and the sum that stands for each event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hmem_core.columns.contexts import TurnsSoFar
from hmem_core.columns.growable import Growable
from hmem_kernels import frozen
from hmem_kernels.affiliation import add_contexts

__all__ = ["NO_NORMS", "LinkColumns", "LinkView"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

NO_NORMS = frozen(np.empty(0, np.float32))

_FIRST_ROOM = 16
_TAIL = 512
"""Links beyond the index that are searched one by one; more if the index is large."""
_CHUNK = 4096
"""Links that are added up at a time."""


class _Index(NamedTuple):
    """Links in order of one of their ends (CSR); number n has `other[offsets[n] : offsets[n + 1]]`."""

    offsets: npt.NDArray[np.int64]
    other: IntArray

    @classmethod
    def of(cls, keys: IntArray, other: IntArray) -> _Index:
        offsets = np.zeros(int(keys.max(initial=-1)) + 2, np.int64)
        np.cumsum(np.bincount(keys, minlength=offsets.size - 1), out=offsets[1:])
        return cls(offsets, other[np.argsort(keys, kind="stable")])

    def at(self, number: int) -> IntArray:
        if number + 1 >= self.offsets.size:
            return self.other[:0]
        return self.other[self.offsets[number] : self.offsets[number + 1]]


_EMPTY = _Index(np.zeros(1, np.int64), np.empty(0, np.int32))


class LinkView(NamedTuple):
    """Links as one reader sees them."""

    events: int
    """How many events there are, those without a turn that is left included."""
    turn: IntArray
    """The turn of each link, in the order they were made: int32 of shape (links,). Forgotten turns too."""
    event: IntArray
    """The event of each link."""
    length: FloatArray
    """Of each link, what the context of its turn was divided by."""
    by_turn: _Index
    by_event: _Index
    indexed: int
    """The indices hold so many links, the first ones."""
    norm: FloatArray
    """Length of the sum of each event's contexts; float32 of shape (events,). Empty unless asked for."""

    def turns_of(self, event: int) -> IntArray:
        """The turns of an event, in the order they were linked, forgotten ones included."""
        tail = self.turn[self.indexed :][self.event[self.indexed :] == event]
        return np.concatenate([self.by_event.at(event), tail])

    def events_of(self, turn: int) -> IntArray:
        """The events of a turn, in the order they were linked."""
        tail = self.event[self.indexed :][self.turn[self.indexed :] == turn]
        return np.concatenate([self.by_turn.at(turn), tail])


class LinkColumns:
    """Links between turns and events in the order they were made, and what is added up over them."""

    FILES = ("event-links", "events")
    """Names of the files of a checkpoint."""

    __slots__ = (
        "_by_event",
        "_by_turn",
        "_earlier",
        "_indexed",
        "_latest",
        "_newer",
        "_newest",
        "_norm",
        "_older",
        "_sums",
        "count",
        "event",
        "last",
        "length",
        "turn",
        "unlinked",
    )

    def __init__(self, dimension: int) -> None:
        self.count = 0
        self.turn = Growable(np.int32)
        self.event = Growable(np.int32)
        self.length = Growable(np.float32)
        """Of each link, what the context of its turn was divided by; 0 once the turn is forgotten."""
        self.last = Growable(np.int32)
        """The number of each event's last link."""
        self.unlinked: set[int] = set()
        """Turns that are not forgotten and belong to no event yet."""
        self._latest = Growable(np.int32)  # the last link of each turn, -1 for none; derived, as what follows
        self._earlier = Growable(np.int32)  # for each link, the one before it of the same turn
        self._newest = -1  # of events by their last link, a list linked both ways
        self._newer = Growable(np.int32)
        self._older = Growable(np.int32)
        self._sums = np.zeros((_FIRST_ROOM, dimension), np.float32)
        self._norm = np.zeros(_FIRST_ROOM, np.float32)
        self._by_turn = self._by_event = _EMPTY
        self._indexed = 0

    def __len__(self) -> int:
        """Number of links."""
        return len(self.turn)

    @property
    def dimension(self) -> int:
        return int(self._sums.shape[1])

    def sums(self) -> FloatArray:
        """The sum of each event's contexts, without copying: float32 of shape (events, d)."""
        return self._sums[: self.count]

    def norms(self) -> FloatArray:
        """The lengths of these sums."""
        return self._norm[: self.count]

    def added(self, live: bool) -> None:
        """A turn was added to the memory; if not `live`, one that is forgotten."""
        if live:
            self.unlinked.add(len(self._latest))
        self._latest.append(-1)

    def problem(self, links: Sequence[tuple[int, Sequence[int]]]) -> str | None:
        """What keeps these links from being made."""
        count, turns = self.count, len(self._latest)
        made: set[tuple[int, int]] = set()
        for turn, events in links:
            if not 0 <= turn < turns:
                return f"links turn {turn}, which was never added"
            known = set(self.events_of(turn))
            for event in events:
                if not 0 <= event <= count:
                    return f"links turn {turn} to event {event}; the numbers are 0 to {count}"
                if event in known or (turn, event) in made:
                    return f"links turn {turn} to event {event} a second time"
                made.add((turn, event))
                count += event == count
        return None

    def link(self, links: Sequence[tuple[int, Sequence[int]]], turns: TurnsSoFar) -> None:
        """Make links that have no `problem`."""
        which = np.repeat(np.arange(len(links), dtype=np.int32), [len(events) for _, events in links])
        linked = np.array([turn for turn, _ in links], np.int32)
        events = np.array([event for _, some in links for event in some], np.int32)
        self._make_room(int(events.max(initial=-1)) + 1)
        for turn, event in zip(linked[which].tolist(), events.tolist(), strict=True):
            if event == self.count:
                self.count += 1
                self.last.append(0)
            self.last[event] = len(self.turn)
            self._touch(event)
            self._chain(turn)
            self.turn.append(turn)
            self.event.append(event)
            self.unlinked.discard(turn)
        made = turns.contexts(linked)
        for length in made.length[which].tolist():
            self.length.append(length)
        add_contexts(frozen(made.rows), frozen(which), frozen(events), self._sums, self._norm)
        if len(self) - self._indexed > max(_TAIL, self._indexed // 8):
            self._index()

    def forget(self, gone: Iterable[int], turns: TurnsSoFar) -> None:
        """Make the sums anew from what is left, in the order of the links: O(links · d)."""
        self.unlinked.difference_update(gone)
        self._sums[:] = 0.0
        self._norm[:] = 0.0
        linked, events = self.turn.view(), self.event.view()
        for start in range(0, len(self), _CHUNK):
            part = slice(start, start + _CHUNK)
            made = turns.contexts(linked[part])
            self.length.view()[part] = made.length
            which = np.arange(len(made.rows), dtype=np.int32)
            add_contexts(frozen(made.rows), frozen(which), frozen(events[part]), self._sums, self._norm)

    def events_of(self, turn: int) -> list[int]:
        """The events of a turn, the last one linked first."""
        found = []
        link = int(self._latest[turn])
        while link >= 0:
            found.append(int(self.event[link]))
            link = int(self._earlier[link])
        return found

    def recent(self, count: int) -> list[int]:
        """At most so many events, those that got turns last, the latest first."""
        found: list[int] = []
        event = self._newest
        while event >= 0 and len(found) < count:
            found.append(event)
            event = int(self._older[event])
        return found

    def _touch(self, event: int) -> None:
        """Make `event` the newest."""
        if event == self._newest:
            return
        if event == len(self._older):
            self._older.append(-1)
            self._newer.append(-1)
        else:
            newer, older = int(self._newer[event]), int(self._older[event])
            self._older[newer] = older  # there is a newer one, as it is not the newest
            if older >= 0:
                self._newer[older] = newer
        self._older[event], self._newer[event] = self._newest, -1
        if self._newest >= 0:
            self._newer[self._newest] = event
        self._newest = event

    def _chain(self, turn: int) -> None:
        self._earlier.append(self._latest[turn])
        self._latest[turn] = len(self._earlier) - 1

    def view(self, norm: FloatArray) -> LinkView:
        """What a reader may use while links are made."""
        return LinkView(
            self.count,
            self.turn.view(),
            self.event.view(),
            self.length.view(),
            self._by_turn,
            self._by_event,
            self._indexed,
            norm,
        )

    def _index(self) -> None:
        turns, events = self.turn.view(), self.event.view()
        self._by_turn, self._by_event = _Index.of(turns, events), _Index.of(events, turns)
        self._indexed = len(self)

    def _make_room(self, events: int) -> None:
        if events > len(self._sums):
            sums = np.zeros((max(events, 2 * len(self._sums)), self.dimension), np.float32)
            norm = np.zeros(len(sums), np.float32)
            sums[: self.count], norm[: self.count] = self.sums(), self.norms()
            self._sums, self._norm = sums, norm

    # -- checkpoints ---------------------------------------------------------------------------------

    def batches(self) -> dict[str, pa.RecordBatch]:
        """The links and the events, copied, for a checkpoint."""
        sums = pa.FixedSizeListArray.from_arrays(
            pa.array(self.sums().reshape(-1).copy()), max(self.dimension, 1)
        )
        links = {
            name: pa.array(column.view().copy())
            for name, column in (("turn", self.turn), ("event", self.event), ("length", self.length))
        }
        events = {
            "last": pa.array(self.last.view().copy()),
            "norm": pa.array(self.norms().copy()),
            "sums": sums,
        }
        return {
            name: pa.RecordBatch.from_pydict(columns)
            for name, columns in zip(self.FILES, (links, events), strict=True)
        }

    @classmethod
    def restore(
        cls, dimension: int, batches: dict[str, pa.RecordBatch], live: npt.NDArray[np.uint8]
    ) -> LinkColumns:
        """The columns that `batches` wrote, copied into the process.

        Args:
            live: of every turn, 0 if it is forgotten.
        """
        links, events = (batches[name] for name in cls.FILES)
        columns = cls(dimension)
        columns._make_room(events.num_rows)
        columns.count = events.num_rows
        columns.turn = Growable(np.int32, links.column("turn").to_numpy())
        columns.event = Growable(np.int32, links.column("event").to_numpy())
        columns.length = Growable(np.float32, links.column("length").to_numpy())
        columns.last = Growable(np.int32, events.column("last").to_numpy())
        columns._norm[: columns.count] = events.column("norm").to_numpy()
        columns.sums()[:] = events.column("sums").flatten().to_numpy().reshape(-1, dimension)
        if columns.event.view().max(initial=-1) + 1 != columns.count:
            raise ValueError("the links and events of the checkpoint do not fit together")
        turns = columns.turn.view()
        columns._latest = Growable(np.int32, np.full(live.size, -1, np.int32))
        for turn in turns.tolist():
            columns._chain(turn)
        by_age = np.argsort(columns.last.view())
        columns._older = Growable(np.int32, np.full(columns.count, -1))
        columns._newer = Growable(np.int32, np.full(columns.count, -1))
        if columns.count:
            columns._older.view()[by_age[1:]] = by_age[:-1]
            columns._newer.view()[by_age[:-1]] = by_age[1:]
            columns._newest = int(by_age[-1])
        columns.unlinked = set(np.flatnonzero((columns._latest.view() < 0) & (live == 1)).tolist())
        columns._index()
        return columns

    def arrays(self) -> dict[str, Any]:
        """Every value, in a form that compares bit for bit."""
        return {
            "link turn": self.turn.view(),
            "link event": self.event.view(),
            "link length": self.length.view(),
            "event last": self.last.view(),
            "event sums": self.sums(),
            "event norm": self.norms(),
            "unlinked": sorted(self.unlinked),
            "newest": self._newest,
            "older events": self._older.view(),
            "newer events": self._newer.view(),
            "latest links": self._latest.view(),
            "earlier links": self._earlier.view(),
        }

    @property
    def nbytes(self) -> int:
        columns = (self.turn, self.event, self.last, self._sums, self._norm, self._latest, self._earlier)
        indices = (self._by_turn, self._by_event)
        return sum(column.nbytes for column in columns) + sum(
            one.nbytes for index in indices for one in index
        )
