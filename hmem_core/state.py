"""All arrays of one memory. `State.apply` is the only thing that changes them.

Applying is pure and deterministic: an entry says what to do, so replaying a journal gives the arrays that
were built live, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hmem_core.columns import factpieces
from hmem_core.columns.annotations import AnnotationColumns, AnnotationView
from hmem_core.columns.blocks import BLOCK_ROWS, Strings, Vectors, block_count
from hmem_core.columns.checkpoint import Loaded, Piece
from hmem_core.columns.contexts import TurnsSoFar
from hmem_core.columns.events import EventColumns, EventView
from hmem_core.columns.facts import FactColumns
from hmem_core.columns.fields import FieldCache
from hmem_core.columns.names import NamePlan, Names
from hmem_core.columns.postings import PostingColumns, PostingView
from hmem_core.columns.states import StateColumns, StateView, words_of
from hmem_core.columns.terms import ANALYSIS, Analyzer
from hmem_core.columns.tree import TreeColumns
from hmem_core.columns.turns import TurnColumns, TurnRow
from hmem_core.errors import Damaged
from hmem_core.journal.entries import (
    AnalysisErased,
    AnnotationErased,
    DescriptionErased,
    Entry,
    EventDescribed,
    FactsRewritten,
    MemoryCreated,
    Reembedded,
    SegmentAnnotated,
    TurnAdded,
    TurnAnalysed,
    TurnErased,
    TurnsForgotten,
    TurnsLinked,
    TurnsRead,
)
from hmem_core.records import EncoderIdentity
from hmem_kernels.frontier import Tree

__all__ = ["NamePlans", "Outdated", "State", "View", "pack_vector", "unpack_vector"]

FloatArray = npt.NDArray[np.float32]

NO_TREE = TreeColumns(0).snapshot()
"""A tree without nodes."""


class Outdated(Exception):
    """An entry changed what was applied before it; build the state anew from the whole journal."""


def pack_vector(vector: FloatArray) -> bytes:
    """A vector as the journal holds it: little-endian float16."""
    return vector.astype("<f2").tobytes()


def unpack_vector(packed: bytes) -> FloatArray:
    """The float32 vector that `pack_vector` rounded."""
    return np.frombuffer(packed, dtype="<f2").astype(np.float32)


class NamePlans(NamedTuple):
    """Codes for the names in entries that are being planned."""

    role: NamePlan
    speaker: NamePlan
    session: NamePlan


class View(NamedTuple):
    """A memory as one reader sees it: the rows up to one journal entry. Later adds do not show in it.

    `narrow` holds the fixed-width columns (`columns.turns.NARROW`), each of shape (rows,); `next` the turn
    after each in its session, or -1.
    """

    rows: int
    seq: int
    narrow: dict[str, npt.NDArray[Any]]
    text: Strings
    key: Strings
    metadata: Strings
    vectors: list[FloatArray]
    states: StateView
    next: npt.NDArray[np.int32]
    roles: Names
    speakers: Names
    sessions: Names
    fields: FieldCache
    analyzer: Analyzer
    postings: PostingView
    annotations: AnnotationView
    tree: Tree
    """Empty unless it was asked for."""
    events: EventView


class State:
    """The arrays, and the number of the last journal entry they include.

    Args:
        settled: rewrites of the journal up to this entry had been made before its first entry was read, so
            that what is applied includes them.
    """

    def __init__(self, settled: int = 0) -> None:
        self.seq = 0
        self._settled = settled
        self.memory = ""
        self.encoder: EncoderIdentity | None = None
        self.turns = TurnColumns()
        self.language = ""
        self.analyzer = Analyzer()
        self.vectors = Vectors(0)
        self.states = StateColumns(0)
        self.postings = PostingColumns()
        self.tree = TreeColumns(0)
        self.annotations = AnnotationColumns(0)
        self.events = EventColumns(0)
        self.facts = FactColumns(0)
        self.roles = Names()
        self.speakers = Names()
        self.sessions = Names()
        self.fields = FieldCache()
        self._tree_copy: tuple[int, Tree] = (-1, NO_TREE)

    # -- changing ------------------------------------------------------------------------------------

    def apply(self, seq: int, entry: Entry) -> None:
        """Make the change that entry number `seq` describes.

        Raises:
            Damaged: the entry does not fit the state; nothing was changed.
            Outdated: see `Outdated`; nothing was changed.
        """
        if seq != self.seq + 1:
            raise Damaged(f"entry {seq} cannot follow entry {self.seq}")
        match entry:
            case TurnAdded():
                self._add(seq, entry)
            case TurnErased():
                self._expect(seq, entry.id)
                self._check_height(seq, entry.height)
                self.turns.append_erased(seq, entry.height)
                nothing = np.zeros(self.vectors.dimension, dtype=np.float32)
                self.vectors.append(nothing)
                self.states.append(None)
                self.postings.append(entry.id, np.empty(0, np.uint64), np.empty(0, np.float32))
                self._attach(nothing, entry.height)
                self.events.links.added(live=False)
            case TurnsForgotten():
                self._forget(seq, entry)
            case SegmentAnnotated():
                self._annotate(seq, entry)
            case AnnotationErased():
                self.annotations.append_erased(seq)
            case TurnsLinked() | TurnAnalysed() | AnalysisErased() | EventDescribed() | DescriptionErased():
                self.events.apply(seq, entry, self._turns_so_far())
            case FactsRewritten():
                self.facts.apply(seq, entry, unpack_vector)
            case TurnsRead():
                self.facts.read(seq, entry, len(self.turns))
            case Reembedded():
                if seq > self._settled:
                    raise Outdated
            case MemoryCreated():
                if seq != 1:
                    raise Damaged(f"entry {seq} creates a memory that exists")
                self.memory = entry.memory
                self.encoder = entry.encoder
                self.language = entry.language
                self.analyzer = Analyzer(entry.language)
                self.vectors = Vectors(entry.encoder.dimension)
                self.states = StateColumns(words_of(entry.encoder.dimension))
                self.tree = TreeColumns(entry.encoder.dimension)
                self.annotations = AnnotationColumns(entry.encoder.dimension)
                self.events = EventColumns(entry.encoder.dimension)
                self.facts = FactColumns(entry.encoder.dimension)
        self.seq = seq

    def _expect(self, seq: int, turn: int) -> None:
        if turn != len(self.turns):
            raise Damaged(f"entry {seq} adds turn {turn}, but {len(self.turns)} turns were added before it")

    def _check_height(self, seq: int, height: int) -> None:
        limit = self.tree.root_height + 1 if self.tree.turns else 0
        if not min(limit, 1) <= height <= limit:
            raise Damaged(f"entry {seq} attaches a turn at height {height}; the heights are 1 to {limit}")

    def _add(self, seq: int, entry: TurnAdded) -> None:
        self._expect(seq, entry.id)
        vector = unpack_vector(entry.vector)
        if vector.size != self.vectors.dimension:
            raise Damaged(
                f"entry {seq} holds a vector of {vector.size} numbers, not of {self.vectors.dimension}"
            )
        if not self.states.fits(entry.states):
            raise Damaged(f"entry {seq} holds token states that do not fit the memory")
        self._check_height(seq, entry.height)
        hashes, counts, length = self.analyzer.count(entry.index_text)
        self.turns.append(
            TurnRow(
                at=entry.at,
                recorded=entry.recorded,
                seq=seq,
                role=self.roles.use(entry.role),
                speaker=-1 if entry.speaker is None else self.speakers.use(entry.speaker),
                session=-1 if entry.session is None else self.sessions.use(entry.session),
                part=entry.part,
                length=length,
                height=entry.height,
                text=entry.text,
                key=entry.key,
                metadata=msgspec.msgpack.encode(entry.metadata) if entry.metadata else None,
            )
        )
        self.vectors.append(vector)
        self.states.append(entry.states)
        self.postings.append(entry.id, hashes, counts)
        self._attach(vector, entry.height)
        self.events.links.added(live=True)

    def _attach(self, vector: FloatArray, height: int) -> None:
        self.tree.attach(vector[np.newaxis], np.array([height], np.int32))

    def _annotate(self, seq: int, entry: SegmentAnnotated) -> None:
        vector = unpack_vector(entry.vector)
        if vector.size != self.vectors.dimension or not 0 <= entry.node < len(self.tree):
            raise Damaged(f"entry {seq} annotates node {entry.node}, and does not fit the memory")
        self.annotations.append(seq, entry.node, entry.first, entry.last, entry.text, vector)

    def _turns_so_far(self) -> TurnsSoFar:
        narrow = self.turns.narrow
        return TurnsSoFar(self.vectors.view(), narrow["live"].view(), narrow["previous"].view())

    def _forget(self, seq: int, entry: TurnsForgotten) -> None:
        if not all(0 <= turn < len(self.turns) for turn in entry.ids):
            raise Damaged(f"entry {seq} forgets turns that were never added")
        self.facts.forget(seq, entry)
        narrow = self.turns.narrow
        gone = [turn for turn in entry.ids if narrow["live"][turn]]
        for turn in gone:
            tables = (self.roles, "role"), (self.speakers, "speaker"), (self.sessions, "session")
            used = [(names, int(narrow[column][turn])) for names, column in tables]
            self.turns.erase(turn)  # before its names go: a reader trusts what it read of a row that is live
            for names, code in used:
                names.release(code)
            self.vectors.erase(turn)
        self.states.erase(gone)
        self.annotations.erase(self.annotations.resting_on(gone))
        self.annotations.stamp_all(seq)
        self.events.forget(seq, gone, self._turns_so_far())
        self.turns.stamp_all(seq)
        self.fields = FieldCache()
        if gone:  # else the entries were read without what they said, and nothing of it is in the arrays
            self.postings.erase(gone)
            self._regrow()

    def _regrow(self) -> None:
        """The tree anew, from the vectors that are left: turns keep their places, sums lose what is gone."""
        heights = self.turns.narrow["height"].view()
        self.tree = TreeColumns(self.vectors.dimension)
        first = 0
        for block in self.vectors.view():
            self.tree.attach(block, heights[first : first + len(block)])
            first += len(block)

    # -- reading -------------------------------------------------------------------------------------

    def view(self, *, tree: bool = False, events: bool = False) -> View:
        """What a reader may use while entries are applied: nothing in it moves.

        Args:
            tree: copy the segment tree too, unless that was done since the last entry.
            events: likewise the norms of events.
        """
        if tree and self._tree_copy[0] != self.seq:
            self._tree_copy = (self.seq, self.tree.snapshot())
        return View(
            rows=len(self.turns),
            seq=self.seq,
            narrow={name: column.view() for name, column in self.turns.narrow.items()},
            text=self.turns.wide["text"],
            key=self.turns.wide["key"],
            metadata=self.turns.wide["metadata"],
            vectors=self.vectors.view(),
            states=self.states.view(),
            next=self.turns.next.view().copy(),
            roles=self.roles,
            speakers=self.speakers,
            sessions=self.sessions,
            fields=self.fields,
            analyzer=self.analyzer,
            postings=self.postings.view(),
            annotations=self.annotations.view(),
            tree=self._tree_copy[1] if tree else NO_TREE,
            events=self.events.view(self.seq, norms=events),
        )

    def name_plans(self) -> NamePlans:
        """Codes for the names of turns that are about to be added."""
        return NamePlans(NamePlan(self.roles), NamePlan(self.speakers), NamePlan(self.sessions))

    def arrays(self) -> dict[str, Any]:
        """Every value of the state, in a form that compares bit for bit."""
        vectors = self.vectors.view()
        return {
            "seq": self.seq,
            "memory": self.memory,
            "encoder": self.encoder,
            "language": self.language,
            "roles": self.roles.table(),
            "speakers": self.speakers.table(),
            "sessions": self.sessions.table(),
            "vectors": np.concatenate(vectors) if vectors else np.empty((0, 0), np.float32),
            **self.turns.arrays(),
            **self.states.arrays(),
            **self.postings.arrays(),
            **self.tree.arrays(),
            **self.annotations.arrays(),
            **self.events.arrays(),
            **self.facts.arrays(),
        }

    # -- checkpoints ---------------------------------------------------------------------------------

    def pieces(self) -> list[Piece]:
        """The files of a checkpoint. Their content is fixed when this returns, but for rows that are
        forgotten afterwards."""
        pieces = []
        for block, stamp in enumerate(self.turns.stamps):
            # Full blocks do not move, so they are only read if they must be written; the last block goes on
            # growing, so its rows are taken now.
            full = (block + 1) * BLOCK_ROWS <= len(self.turns)
            for name, batch in self._batches(block).items():
                content = batch if full else _constant(batch())
                pieces.append(Piece(f"{name}-{block:05d}.arrow", stamp, content))
        for block, stamp in enumerate(self.annotations.stamps):
            batch = self.annotations.batch(block)
            pieces.append(Piece(f"annotations-{block:05d}.arrow", stamp, _constant(batch)))
        for kind, notes in self.events.notes.items():
            for block, stamp in enumerate(notes.stamps):
                pieces.append(Piece(f"{kind}-{block:05d}.arrow", stamp, _constant(notes.batch(block))))
        pieces += factpieces.pieces(self.facts)
        whole = {"names": self._names_batch(), **self.tree.batches(), **self.events.links.batches()}
        pieces += [Piece(f"{name}.arrow", self.seq, _constant(batch)) for name, batch in whole.items()]
        return pieces

    def _batches(self, block: int) -> dict[str, Callable[[], pa.RecordBatch]]:
        return {
            "turns": partial(self.turns.batch, block),
            "vectors": partial(self.vectors.batch, block),
            "states": partial(self.states.batch, block),
            "terms": partial(self.postings.terms_batch, block),
            "postings": partial(self.postings.postings_batch, block),
        }

    def extra(self) -> dict[str, Any]:
        """Small values of a checkpoint that are not columns."""
        return {
            "encoder": msgspec.to_builtins(self.encoder),
            "language": self.language,
            "analysis": ANALYSIS,
        }

    def _names_batch(self) -> pa.RecordBatch:
        tables: list[str] = []
        texts: list[str | None] = []
        uses: list[int] = []
        for table in ("roles", "speakers", "sessions"):
            names: Names = getattr(self, table)
            some_texts, some_uses = names.table()
            tables += [table] * len(names)
            texts += some_texts
            uses += some_uses
        return pa.RecordBatch.from_pydict(
            {
                "table": pa.array(tables, pa.string()),
                "text": pa.array(texts, pa.string()),
                "uses": pa.array(uses, pa.int64()),
            }
        )

    @classmethod
    def restore(cls, loaded: Loaded) -> State:
        """The state that `pieces` described, over mapped memory.

        Raises:
            ValueError: the pieces do not fit together.
        """
        extra, batches = loaded.manifest.extra, loaded.batches
        if extra["analysis"] != ANALYSIS:
            raise ValueError(f"its terms were made by analysis {extra['analysis']}, this is {ANALYSIS}")
        state = cls(settled=loaded.manifest.seq)
        state.seq = loaded.manifest.seq
        state.memory = loaded.manifest.memory
        state.encoder = encoder = msgspec.convert(extra["encoder"], EncoderIdentity)
        state.language = extra["language"]
        state.analyzer = Analyzer(state.language)
        count = sum(name.startswith("turns-") for name in batches)

        def blocks(name: str) -> list[pa.RecordBatch]:
            return [batches[f"{name}-{block:05d}.arrow"] for block in range(count)]

        stamps = [loaded.stamps[f"turns-{block:05d}.arrow"] for block in range(count)]
        state.turns = TurnColumns.restore(blocks("turns"), stamps)
        flat = [batch.column("vector").flatten().to_numpy(zero_copy_only=True) for batch in blocks("vectors")]
        state.vectors = Vectors(encoder.dimension, [block.reshape(-1, encoder.dimension) for block in flat])
        state.states = StateColumns.restore(words_of(encoder.dimension), blocks("states"))
        state.postings = PostingColumns.restore(list(zip(blocks("terms"), blocks("postings"), strict=True)))
        tree = {name: batches[f"{name}.arrow"] for name in TreeColumns.FILES}
        state.tree = TreeColumns.restore(encoder.dimension, tree)
        sizes = {len(state.turns), len(state.vectors), len(state.states), state.tree.turns}
        if len(sizes) > 1 or count != block_count(len(state.turns)):
            raise ValueError("the files of the checkpoint have different numbers of rows")
        written = sorted(name for name in batches if name.startswith("annotations-"))
        state.annotations = AnnotationColumns.restore(
            encoder.dimension, [batches[name] for name in written], [loaded.stamps[name] for name in written]
        )
        live = state.turns.narrow["live"].view()
        state.events = EventColumns.restore(encoder.dimension, batches, loaded.stamps, live)
        state.facts = factpieces.restore(encoder.dimension, loaded)
        table = loaded.batches["names.arrow"].to_pydict()
        for kind in ("roles", "speakers", "sessions"):
            rows = [row for row, name in enumerate(table["table"]) if name == kind]
            names_of_kind = Names([table["text"][row] for row in rows], [table["uses"][row] for row in rows])
            setattr(state, kind, names_of_kind)
        return state

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes of all arrays and texts: (held in the process, mapped from a checkpoint)."""
        parts = (
            self.vectors.nbytes,
            self.states.nbytes,
            self.turns.nbytes,
            self.postings.nbytes,
            (self.tree.nbytes, 0),
            self.annotations.nbytes,
            self.events.nbytes,
            self.facts.nbytes,
        )
        return sum(held for held, _ in parts), sum(mapped for _, mapped in parts)


def _constant(batch: pa.RecordBatch) -> Callable[[], pa.RecordBatch]:
    return lambda: batch
