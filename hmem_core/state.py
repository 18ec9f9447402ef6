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

from hmem_core.columns.blocks import BLOCK_ROWS, Strings, Vectors, block_count
from hmem_core.columns.checkpoint import Loaded, Piece
from hmem_core.columns.fields import FieldCache
from hmem_core.columns.names import NamePlan, Names
from hmem_core.columns.turns import TurnColumns, TurnRow
from hmem_core.errors import Damaged
from hmem_core.journal.entries import (
    Entry,
    MemoryCreated,
    Reembedded,
    TurnAdded,
    TurnErased,
    TurnsForgotten,
)
from hmem_core.records import EncoderIdentity

__all__ = ["NamePlans", "Outdated", "State", "View", "pack_vector", "unpack_vector"]

FloatArray = npt.NDArray[np.float32]


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

    `narrow` holds the fixed-width columns (`columns.turns.NARROW`), each of shape (rows,).
    """

    rows: int
    seq: int
    narrow: dict[str, npt.NDArray[Any]]
    text: Strings
    key: Strings
    metadata: Strings
    vectors: list[FloatArray]
    roles: Names
    speakers: Names
    sessions: Names
    fields: FieldCache


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
        self.vectors = Vectors(0)
        self.roles = Names()
        self.speakers = Names()
        self.sessions = Names()
        self.fields = FieldCache()

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
                self.turns.append_erased(seq)
                self.vectors.append(np.zeros(self.vectors.dimension, dtype=np.float32))
            case TurnsForgotten():
                self._forget(seq, entry)
            case Reembedded():
                if seq > self._settled:
                    raise Outdated
            case MemoryCreated():
                if seq != 1:
                    raise Damaged(f"entry {seq} creates a memory that exists")
                self.memory = entry.memory
                self.encoder = entry.encoder
                self.vectors = Vectors(entry.encoder.dimension)
        self.seq = seq

    def _expect(self, seq: int, turn: int) -> None:
        if turn != len(self.turns):
            raise Damaged(f"entry {seq} adds turn {turn}, but {len(self.turns)} turns were added before it")

    def _add(self, seq: int, entry: TurnAdded) -> None:
        self._expect(seq, entry.id)
        vector = unpack_vector(entry.vector)
        if vector.size != self.vectors.dimension:
            raise Damaged(
                f"entry {seq} holds a vector of {vector.size} numbers, not of {self.vectors.dimension}"
            )
        self.turns.append(
            TurnRow(
                at=entry.at,
                recorded=entry.recorded,
                seq=seq,
                role=self.roles.use(entry.role),
                speaker=-1 if entry.speaker is None else self.speakers.use(entry.speaker),
                session=-1 if entry.session is None else self.sessions.use(entry.session),
                part=entry.part,
                text=entry.text,
                key=entry.key,
                metadata=msgspec.msgpack.encode(entry.metadata) if entry.metadata else None,
            )
        )
        self.vectors.append(vector)

    def _forget(self, seq: int, entry: TurnsForgotten) -> None:
        if not all(0 <= turn < len(self.turns) for turn in entry.ids):
            raise Damaged(f"entry {seq} forgets turns that were never added")
        narrow = self.turns.narrow
        for turn in entry.ids:
            for names, column in (
                (self.roles, "role"),
                (self.speakers, "speaker"),
                (self.sessions, "session"),
            ):
                names.release(int(narrow[column][turn]))
            self.turns.erase(turn, seq)
            self.vectors.erase(turn)
        self.fields = FieldCache()

    # -- reading -------------------------------------------------------------------------------------

    def view(self) -> View:
        """What a reader may use while entries are applied: nothing in it moves."""
        return View(
            rows=len(self.turns),
            seq=self.seq,
            narrow={name: column.view() for name, column in self.turns.narrow.items()},
            text=self.turns.wide["text"],
            key=self.turns.wide["key"],
            metadata=self.turns.wide["metadata"],
            vectors=self.vectors.view(),
            roles=self.roles,
            speakers=self.speakers,
            sessions=self.sessions,
            fields=self.fields,
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
            "roles": self.roles.table(),
            "speakers": self.speakers.table(),
            "sessions": self.sessions.table(),
            "vectors": np.concatenate(vectors) if vectors else np.empty((0, 0), np.float32),
            **self.turns.arrays(),
        }

    # -- checkpoints ---------------------------------------------------------------------------------

    def pieces(self) -> list[Piece]:
        """The files of a checkpoint. Their content is fixed when this returns, but for rows that are
        forgotten afterwards."""
        pieces = []
        for block, stamp in enumerate(self.turns.stamps):
            for name, batch in (("turns", self.turns.batch), ("vectors", self.vectors.batch)):
                # Full blocks do not move, so they are only read if they must be written; the last block
                # goes on growing, so its rows are taken now.
                full = (block + 1) * BLOCK_ROWS <= len(self.turns)
                content = partial(batch, block) if full else _constant(batch(block))
                pieces.append(Piece(f"{name}-{block:05d}.arrow", stamp, content))
        pieces.append(Piece("names.arrow", self.seq, _constant(self._names_batch())))
        return pieces

    def extra(self) -> dict[str, Any]:
        """Small values of a checkpoint that are not columns."""
        return {"encoder": msgspec.to_builtins(self.encoder)}

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
        state = cls(settled=loaded.manifest.seq)
        state.seq = loaded.manifest.seq
        state.memory = loaded.manifest.memory
        state.encoder = encoder = msgspec.convert(loaded.manifest.extra["encoder"], EncoderIdentity)
        count = sum(name.startswith("turns-") for name in loaded.batches)
        names = [f"turns-{block:05d}.arrow" for block in range(count)]
        state.turns = TurnColumns.restore(
            [loaded.batches[name] for name in names], [loaded.stamps[name] for name in names]
        )
        blocks = []
        for block in range(count):
            column = loaded.batches[f"vectors-{block:05d}.arrow"].column("vector")
            flat = column.flatten().to_numpy(zero_copy_only=True)
            blocks.append(flat.reshape(-1, encoder.dimension))
        state.vectors = Vectors(encoder.dimension, blocks)
        if len(state.vectors) != len(state.turns) or count != block_count(len(state.turns)):
            raise ValueError("the files of the checkpoint have different numbers of rows")
        table = loaded.batches["names.arrow"].to_pydict()
        for kind in ("roles", "speakers", "sessions"):
            rows = [row for row, name in enumerate(table["table"]) if name == kind]
            names_of_kind = Names([table["text"][row] for row in rows], [table["uses"][row] for row in rows])
            setattr(state, kind, names_of_kind)
        return state

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes of vectors, texts and columns: (held in the process, mapped from a checkpoint)."""
        (held, mapped), (turns_held, turns_mapped) = self.vectors.nbytes, self.turns.nbytes
        return held + turns_held, mapped + turns_mapped


def _constant(batch: pa.RecordBatch) -> Callable[[], pa.RecordBatch]:
    return lambda: batch
