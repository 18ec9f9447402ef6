"""All columns of the event view: links, and what a model wrote of events and of turns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hmem_core.columns.contexts import TurnsSoFar
from hmem_core.columns.links import NO_NORMS, LinkColumns, LinkView
from hmem_core.columns.notes import NoteColumns, NoteView
from hmem_core.errors import Damaged
from hmem_core.journal.entries import (
    AnalysisErased,
    DescriptionErased,
    EventDescribed,
    TurnAnalysed,
    TurnsLinked,
    decode,
    encode,
    rests_on,
)
from hmem_kernels import frozen

__all__ = ["EventColumns", "EventEntry", "EventView"]

FloatArray = npt.NDArray[np.float32]

EventEntry = TurnsLinked | TurnAnalysed | AnalysisErased | EventDescribed | DescriptionErased


class EventView(NamedTuple):
    """Events as one reader sees them."""

    links: LinkView
    descriptions: NoteView
    """Of events; a body is an `EventDescribed` in MessagePack, without its vector."""
    analyses: NoteView
    """Of turns; a body is a `TurnAnalysed` in MessagePack."""

    def descriptions_of(self, event: int) -> list[EventDescribed]:
        """All that a model wrote of an event and that rests on no forgotten turn, the oldest first."""
        found = [decode(body) for body in self.descriptions.of(event)]
        return [entry for entry in found if isinstance(entry, EventDescribed)]

    def analysis_of(self, turn: int) -> TurnAnalysed | None:
        """What a model wrote last of a turn."""
        found = [decode(body) for body in self.analyses.of(turn)[-1:]]
        return next((entry for entry in found if isinstance(entry, TurnAnalysed)), None)


class EventColumns:
    """Events of one memory.

    Args:
        dimension: numbers of a vector.
    """

    __slots__ = ("_norm_copy", "analyses", "descriptions", "links")

    def __init__(self, dimension: int) -> None:
        self.links = LinkColumns(dimension)
        self.descriptions = NoteColumns(dimension)
        self.analyses = NoteColumns(0)
        self._norm_copy: tuple[int, FloatArray] = (-1, NO_NORMS)

    def apply(self, seq: int, entry: EventEntry, turns: TurnsSoFar) -> None:
        """Make the change that entry number `seq` describes.

        Raises:
            Damaged: the entry does not fit; nothing was changed.
        """
        match entry:
            case TurnsLinked():
                if (problem := self.links.problem(entry.links)) is not None:
                    raise Damaged(f"entry {seq} {problem}")
                self.links.link(entry.links, turns)
            case TurnAnalysed():
                self._check_read(seq, entry, turns)
                self.analyses.append(seq, entry.turn, encode(entry), rests_on(entry), None)
            case AnalysisErased():
                self.analyses.append_erased(seq, vector=False)
            case EventDescribed():
                self._check_read(seq, entry, turns)
                self._describe(seq, entry)
            case DescriptionErased():
                self.descriptions.append_erased(seq, entry.vector)

    def _check_read(self, seq: int, entry: TurnAnalysed | EventDescribed, turns: TurnsSoFar) -> None:
        if not all(0 <= turn < turns.live.size for turn in rests_on(entry)):
            raise Damaged(f"entry {seq} rests on turns that were never added")

    def _describe(self, seq: int, entry: EventDescribed) -> None:
        if not 0 <= entry.event < self.links.count:
            raise Damaged(f"entry {seq} describes event {entry.event}, and there are {self.links.count}")
        if (entry.summary is None) != (entry.vector is None):
            raise Damaged(f"entry {seq} has a summary or a vector, not both")
        vector = None
        if entry.vector is not None:
            vector = np.frombuffer(entry.vector, "<f2").astype(np.float32)
            if vector.size != self.links.dimension:
                raise Damaged(f"entry {seq} holds a vector of {vector.size} numbers")
        body = encode(msgspec.structs.replace(entry, vector=None))
        self.descriptions.append(seq, entry.event, body, rests_on(entry), vector)

    def forget(self, seq: int, gone: Collection[int], turns: TurnsSoFar) -> None:
        """Entry number `seq` forgot these turns."""
        for notes in (self.descriptions, self.analyses):
            notes.erase(notes.resting_on(gone))
            notes.stamp_all(seq)
        if gone:
            self.links.forget(gone, turns)

    def view(self, seq: int, norms: bool) -> EventView:
        """What a reader may use while entries are applied.

        Args:
            seq: the last entry that was applied to the memory.
            norms: copy the norms of events, unless that was done since.
        """
        if norms and self._norm_copy[0] != seq:
            self._norm_copy = (seq, frozen(self.links.norms().copy()))
        links = self.links.view(self._norm_copy[1] if norms else NO_NORMS)
        return EventView(links, self.descriptions.view(), self.analyses.view())

    def embedded(self) -> Iterator[tuple[int, str]]:
        """The entries that hold a vector, and what it is of."""
        narrow = self.descriptions.narrow
        seqs = narrow["seq"].view()
        for row in np.flatnonzero((seqs > 0) & (narrow["vector"].view() >= 0)).tolist():
            entry = decode(self.descriptions.body[row])
            assert isinstance(entry, EventDescribed)
            yield int(seqs[row]), entry.index_text

    # -- checkpoints ---------------------------------------------------------------------------------

    @property
    def notes(self) -> dict[str, NoteColumns]:
        """The columns that checkpoints keep in blocks, by the names of their files."""
        return {"descriptions": self.descriptions, "analyses": self.analyses}

    @classmethod
    def restore(
        cls,
        dimension: int,
        batches: Mapping[str, pa.RecordBatch],
        stamps: Mapping[str, int],
        live: npt.NDArray[np.uint8],
    ) -> EventColumns:
        """The columns whose files these are.

        Args:
            live: of every turn, 0 if it is forgotten.
        """
        columns = cls(dimension)
        columns.links = LinkColumns.restore(
            dimension, {name: batches[f"{name}.arrow"] for name in LinkColumns.FILES}, live
        )

        def notes(kind: str, dimension: int) -> NoteColumns:
            names = sorted(name for name in batches if name.startswith(f"{kind}-"))
            return NoteColumns.restore(
                dimension, [batches[name] for name in names], [stamps[name] for name in names]
            )

        columns.descriptions, columns.analyses = notes("descriptions", dimension), notes("analyses", 0)
        return columns

    def arrays(self) -> dict[str, Any]:
        """Every value, in a form that compares bit for bit."""
        return {
            **self.links.arrays(),
            **self.descriptions.arrays("description"),
            **self.analyses.arrays("analysis"),
        }

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes: (held, mapped)."""
        parts = ((self.links.nbytes, 0), self.descriptions.nbytes, self.analyses.nbytes)
        return sum(held for held, _ in parts), sum(mapped for _, mapped in parts)
