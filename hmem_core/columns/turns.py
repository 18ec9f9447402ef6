"""The columns of the turns: one row a turn, row number = turn id."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from hmem_core.columns.blocks import BLOCK_ROWS, Strings, block_count
from hmem_core.columns.growable import Growable
from hmem_core.columns.keys import KeyIndex, key_hash

__all__ = ["NARROW", "TurnColumns", "TurnRow"]

NARROW: dict[str, type[np.generic]] = {
    "live": np.uint8,  # 0 once forgotten, before the other columns of the row become 0 or -1, but for height
    "height": np.int32,  # where it was attached to the segment tree
    "at": np.int64,  # the turn's own time, UTC microseconds
    "recorded": np.int64,  # when it was written, UTC microseconds
    "seq": np.int64,  # its entry in the journal
    "role": np.int32,  # codes of the name tables; -1 for none
    "speaker": np.int32,
    "session": np.int32,
    "part": np.int32,  # place in the list that was added under one key
    "previous": np.int32,  # the turn before it in its session; -1 for none
    "length": np.float32,  # of its text, in terms
    "asks": np.uint8,  # 1 if its text ends with a question
    "key_hash": np.uint64,
}
"""Fixed-width columns and their types."""

_ERASED = {name: -1 if name in ("role", "speaker", "session", "previous") else 0 for name in NARROW}
del _ERASED["height"]  # the place in the tree says nothing of what was said, and other turns hang on it
_WIDE = {"text": pa.large_string(), "key": pa.large_string(), "metadata": pa.large_binary()}


_ENDING = 64
"""Characters at the end of a text in which its last question mark is looked for."""
_ASKS = re.compile(r"[?\u037e\u055e\u061f\u1367\u2047\u2048\u203d\u2e2e\ufe56\uff1f]\W*\Z")


class TurnRow(msgspec.Struct, frozen=True, kw_only=True):
    """Values of one row; `metadata` is encoded as MessagePack, None where there is none."""

    at: int
    recorded: int
    seq: int
    role: int
    speaker: int
    session: int
    part: int
    length: int
    height: int
    text: str
    key: str | None
    metadata: bytes | None


class TurnColumns:
    """All turns. Append-only, but for `erase`, which blanks a row and keeps its number."""

    __slots__ = ("_last", "forgotten", "index", "narrow", "next", "stamps", "wide")

    def __init__(self) -> None:
        self.narrow = {name: Growable(dtype) for name, dtype in NARROW.items()}
        self.wide = {name: Strings(kind) for name, kind in _WIDE.items()}
        self.index = KeyIndex(self.wide["key"], self.narrow["key_hash"])
        self.stamps: list[int] = []
        """For each block, the entry that changed it last."""
        self.forgotten = 0
        self.next = Growable(np.int32)
        """For each turn, the one after it in its session; -1 for none. Follows from ``previous``."""
        self._last: dict[int, int] = {}  # of each session, the last turn

    def __len__(self) -> int:
        return len(self.narrow["live"])

    def append(self, row: TurnRow) -> None:
        hashed = key_hash(row.key)
        narrow, wide = self.narrow, self.wide
        number = len(self)
        for name in ("at", "recorded", "seq", "role", "speaker", "session", "part", "length", "height"):
            narrow[name].append(getattr(row, name))
        narrow["asks"].append(_ASKS.search(row.text[-_ENDING:]) is not None)
        self._link(number, row.session)
        narrow["key_hash"].append(hashed)
        narrow["live"].append(1)
        for name in _WIDE:
            wide[name].append(getattr(row, name))
        self.index.added(number)
        self._stamp(number, row.seq)

    def _link(self, row: int, session: int) -> None:
        before = self._last.get(session, -1) if session >= 0 else -1
        self.narrow["previous"].append(before)
        self.next.append(-1)
        if before >= 0:
            self.next[before] = row
        if session >= 0:
            self._last[session] = row

    def last_in(self, session: int) -> int:
        """The last turn of a session that is not forgotten; -1 for none."""
        return self._last.get(session, -1)

    def _unlink(self, row: int) -> None:
        """Make the turns before and after it in its session neighbours."""
        before, after = int(self.narrow["previous"][row]), int(self.next[row])
        if before >= 0:
            self.next[before] = after
        if after >= 0:
            self.narrow["previous"][after] = before
        elif (session := int(self.narrow["session"][row])) >= 0:
            self._last[session] = before
            if before < 0:
                del self._last[session]
        self.next[row] = -1

    def append_erased(self, seq: int, height: int) -> None:
        """A row for a turn that the journal no longer holds."""
        number = len(self)
        for name, column in self.narrow.items():
            column.append(_ERASED.get(name, height))
        self.next.append(-1)
        for text in self.wide.values():
            text.append(None)
        self.forgotten += 1
        self._stamp(number, seq)

    def erase(self, row: int) -> None:
        """Blank a row: all that is left is its number. Does nothing if it is blank."""
        if not self.narrow["live"][row]:
            return
        hashed = int(self.narrow["key_hash"][row])
        self._unlink(row)
        for name, value in _ERASED.items():
            self.narrow[name][row] = value
        for text in self.wide.values():
            text.erase(row)
        self.index.erased(row, hashed)
        self.forgotten += 1

    def parts(self, key: str) -> dict[int, int]:
        """Rows of the turns added under `key`, by their part number."""
        part = self.narrow["part"]
        return {int(part[row]): row for row in self.index.rows(key)}

    def stamp_all(self, seq: int) -> None:
        """Say that entry number `seq` changed every block. Forgetting drops all checkpoints, so that it costs
        nothing not to know which blocks it changed; and a replay, where it changes nothing, says the same."""
        self.stamps = [seq] * len(self.stamps)

    def _stamp(self, row: int, seq: int) -> None:
        block = row // BLOCK_ROWS
        if block == len(self.stamps):
            self.stamps.append(seq)
        else:
            self.stamps[block] = seq

    def batch(self, block: int) -> pa.RecordBatch:
        """One block of every column, for a checkpoint. Narrow columns are copied, texts shared."""
        rows = slice(block * BLOCK_ROWS, (block + 1) * BLOCK_ROWS)
        arrays: dict[str, pa.Array] = {
            name: pa.array(column.view()[rows].copy()) for name, column in self.narrow.items()
        }
        arrays |= {name: column.arrow(block) for name, column in self.wide.items()}
        return pa.RecordBatch.from_pydict(arrays)

    @classmethod
    def restore(cls, batches: list[pa.RecordBatch], stamps: list[int]) -> TurnColumns:
        """The columns that `batch` wrote. Narrow columns are copied into the process, texts stay mapped."""
        turns = cls()
        for name, dtype in NARROW.items():
            parts = [batch.column(name).to_numpy(zero_copy_only=True) for batch in batches]
            turns.narrow[name] = Growable(dtype, np.concatenate(parts) if parts else ())
        for name, kind in _WIDE.items():
            turns.wide[name] = Strings(kind, [batch.column(name) for batch in batches])
        turns.index = KeyIndex(turns.wide["key"], turns.narrow["key_hash"])
        turns.stamps = list(stamps)
        turns._relink()
        turns.forgotten = len(turns) - int(np.count_nonzero(turns.narrow["live"].view()))
        if len(stamps) != block_count(len(turns)):
            raise ValueError(f"{len(stamps)} stamps for {block_count(len(turns))} blocks")
        return turns

    def _relink(self) -> None:
        previous, session = self.narrow["previous"].view(), self.narrow["session"].view()
        after = np.full(previous.size, -1, np.int32)
        linked = np.flatnonzero(previous >= 0)
        after[previous[linked]] = linked
        self.next = Growable(np.int32, after)
        last = np.flatnonzero((after < 0) & (session >= 0))
        self._last = dict(zip(session[last].tolist(), last.tolist(), strict=True))

    def arrays(self) -> dict[str, Any]:
        """Every value, in a form that compares: NumPy arrays and lists."""
        wide = {
            name: [value for block in range(len(self.stamps)) for value in column.arrow(block).to_pylist()]
            for name, column in self.wide.items()
        }
        return (
            {name: column.view() for name, column in self.narrow.items()}
            | wide
            | {"next": self.next.view(), "stamps": self.stamps}
        )

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes of the fixed-width columns and of the texts: (held, mapped)."""
        texts = [column.nbytes for column in self.wide.values()]
        narrow = sum(column.nbytes for column in self.narrow.values())
        return narrow + sum(held for held, _ in texts), sum(mapped for _, mapped in texts)
