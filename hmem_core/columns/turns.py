"""The columns of the turns: one row a turn, row number = turn id."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from hmem_core.columns.blocks import BLOCK_ROWS, Strings, block_count
from hmem_core.columns.growable import Growable
from hmem_core.columns.keys import KeyIndex, key_hash

__all__ = ["NARROW", "TurnColumns", "TurnRow"]

NARROW: dict[str, type[np.generic]] = {
    "live": np.uint8,  # 0 once forgotten; the other columns of such a row are 0 or -1
    "at": np.int64,  # the turn's own time, UTC microseconds
    "recorded": np.int64,  # when it was written, UTC microseconds
    "seq": np.int64,  # its entry in the journal
    "role": np.int32,  # codes of the name tables; -1 for none
    "speaker": np.int32,
    "session": np.int32,
    "part": np.int32,  # place in the list that was added under one key
    "key_hash": np.uint64,
}
"""Fixed-width columns and their types."""

_ERASED = {name: -1 if name in ("role", "speaker", "session") else 0 for name in NARROW}
_WIDE = {"text": pa.large_string(), "key": pa.large_string(), "metadata": pa.large_binary()}


class TurnRow(msgspec.Struct, frozen=True, kw_only=True):
    """Values of one row; `metadata` is encoded as MessagePack, None where there is none."""

    at: int
    recorded: int
    seq: int
    role: int
    speaker: int
    session: int
    part: int
    text: str
    key: str | None
    metadata: bytes | None


class TurnColumns:
    """All turns. Append-only, but for `erase`, which blanks a row and keeps its number."""

    __slots__ = ("forgotten", "index", "narrow", "stamps", "wide")

    def __init__(self) -> None:
        self.narrow = {name: Growable(dtype) for name, dtype in NARROW.items()}
        self.wide = {name: Strings(kind) for name, kind in _WIDE.items()}
        self.index = KeyIndex(self.wide["key"], self.narrow["key_hash"])
        self.stamps: list[int] = []
        """For each block, the entry that changed it last."""
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self.narrow["live"])

    def append(self, row: TurnRow) -> None:
        hashed = key_hash(row.key)
        narrow, wide = self.narrow, self.wide
        number = len(self)
        for name in ("at", "recorded", "seq", "role", "speaker", "session", "part"):
            narrow[name].append(getattr(row, name))
        narrow["key_hash"].append(hashed)
        narrow["live"].append(1)
        for name in _WIDE:
            wide[name].append(getattr(row, name))
        self.index.added(number)
        self._stamp(number, row.seq)

    def append_erased(self, seq: int) -> None:
        """A row for a turn that the journal no longer holds."""
        number = len(self)
        for name, column in self.narrow.items():
            column.append(_ERASED[name])
        for text in self.wide.values():
            text.append(None)
        self.forgotten += 1
        self._stamp(number, seq)

    def erase(self, row: int, seq: int) -> None:
        """Blank a row: all that is left is its number. Does nothing if it is blank."""
        if not self.narrow["live"][row]:
            self._stamp(row, seq)
            return
        hashed = int(self.narrow["key_hash"][row])
        for name, column in self.narrow.items():
            column[row] = _ERASED[name]
        for text in self.wide.values():
            text.erase(row)
        self.index.erased(row, hashed)
        self.forgotten += 1
        self._stamp(row, seq)

    def parts(self, key: str) -> dict[int, int]:
        """Rows of the turns added under `key`, by their part number."""
        part = self.narrow["part"]
        return {int(part[row]): row for row in self.index.rows(key)}

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
        turns.forgotten = len(turns) - int(np.count_nonzero(turns.narrow["live"].view()))
        if len(stamps) != block_count(len(turns)):
            raise ValueError(f"{len(stamps)} stamps for {block_count(len(turns))} blocks")
        return turns

    def arrays(self) -> dict[str, Any]:
        """Every value, in a form that compares: NumPy arrays and lists."""
        wide = {
            name: [value for block in range(len(self.stamps)) for value in column.arrow(block).to_pylist()]
            for name, column in self.wide.items()
        }
        return {name: column.view() for name, column in self.narrow.items()} | wide | {"stamps": self.stamps}

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes of the fixed-width columns and of the texts: (held, mapped)."""
        texts = [column.nbytes for column in self.wide.values()]
        narrow = sum(column.nbytes for column in self.narrow.values())
        return narrow + sum(held for held, _ in texts), sum(mapped for _, mapped in texts)
