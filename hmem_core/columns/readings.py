"""What a model has read for facts: which turns, and which contradictions it was asked about.

One row a `TurnsRead`, in their order. A row ends when something that was shown for it is forgotten: its turns
are unread again. What stands in it are numbers, which stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hmem_core.columns.facttables import Members
from hmem_core.columns.growable import Growable
from hmem_core.journal.entries import TurnsRead

__all__ = ["Readings"]

_LISTS = ("turns", "read", "taken", "tellings", "compared")


class Readings:
    """The readings of one memory."""

    __slots__ = ("_pairs", "_times", "compared", "live", "read", "taken", "tellings", "turns")

    def __init__(self) -> None:
        self.live = Growable(np.uint8)
        """0 once a reading has ended."""
        self.turns = Members()
        self.read = Members()
        self.taken = Members()
        self.tellings = Members()
        self.compared = Members()
        """Of each reading, the units of the pairs that it compared, one after the other."""
        self._times = Growable(np.int32)
        self._pairs: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.live)

    def append(self, entry: TurnsRead) -> None:
        """The next reading."""
        self.live.append(1)
        self.turns.append(entry.turns)
        self.read.append(sorted({*entry.turns, *entry.read}))
        self.taken.append(entry.taken)
        self.tellings.append(entry.tellings)
        self.compared.append([unit for pair in entry.compared for unit in pair])
        self._count(len(self) - 1, 1)

    def _count(self, row: int, change: int) -> None:
        turns = self.turns[row]
        if turns.size:
            short = int(turns.max()) + 1 - len(self._times)
            if short > 0:
                self._times.extend(np.zeros(short, np.int32))
            self._times.view()[turns] += change
        for pair in self._compared_in(row):
            self._pairs[pair] = self._pairs.get(pair, 0) + change
            if not self._pairs[pair]:
                del self._pairs[pair]

    def _compared_in(self, row: int) -> set[tuple[int, int]]:
        units = self.compared[row].tolist()
        return set(zip(units[::2], units[1::2], strict=True))

    def end(self, rows: Iterable[int]) -> None:
        """These readings count no longer."""
        for row in sorted(set(rows)):
            if self.live[row]:
                self.live.view()[row] = 0
                self._count(row, -1)

    def done(self, first: int, last: int) -> npt.NDArray[np.bool_]:
        """Whether each of the turns [first, last) has been read; bool of shape (last - first,)."""
        found = np.zeros(last - first, np.bool_)
        known = self._times.view()[first:last] > 0
        found[: known.size] = known
        return found

    def was_compared(self, unit: int, other: int) -> bool:
        """Whether a model was asked about a pending unit and the one that it contradicts."""
        return (unit, other) in self._pairs

    def resting_on(self, turns: Collection[int]) -> list[int]:
        """The readings that were shown one of these turns, ascending."""
        return self._naming(self.read, turns)

    def holding(self, units: Collection[int]) -> list[int]:
        """The readings that hold something of one of these units, ascending."""
        return self._naming(self.taken, units)

    def of_tellings(self, tellings: Collection[int]) -> list[int]:
        """The readings that told one of these, ascending."""
        return self._naming(self.tellings, tellings)

    def told(self) -> npt.NDArray[np.int32]:
        """All that was told by readings that count."""
        found: npt.NDArray[np.int32] = self.tellings.members[self.live.view()[self.tellings.rows()] == 1]
        return found

    def _naming(self, lists: Members, numbers: Collection[int]) -> list[int]:
        if not numbers or not len(self):
            return []
        hit = np.isin(lists.members, np.fromiter(numbers, np.int32, len(numbers)))
        rows = np.unique(np.searchsorted(lists.ends, np.flatnonzero(hit), side="right"))
        return [row for row in rows.tolist() if self.live[row]]

    # -- checkpoints ---------------------------------------------------------------------------------

    def batches(self) -> dict[str, pa.RecordBatch]:
        """The columns for a checkpoint, copied, by the names of their files."""
        live = pa.RecordBatch.from_pydict({"live": pa.array(self.live.view().copy())})
        return {"live": live, **{name: getattr(self, name).batch() for name in _LISTS}}

    @classmethod
    def restore(cls, batches: Mapping[str, pa.RecordBatch]) -> Readings:
        """The columns that `batches` described.

        Raises:
            ValueError: they do not fit together.
        """
        found = cls()
        found.live = Growable(np.uint8, batches["live"].column("live").to_numpy())
        for name in _LISTS:
            members = Members.restore(batches[name])
            if len(members) != len(found):
                raise ValueError("the readings of the checkpoint are not whole")
            setattr(found, name, members)
        for row in np.flatnonzero(found.live.view()).tolist():
            found._count(row, 1)
        return found

    def arrays(self) -> dict[str, Any]:
        """Every value, in a form that compares bit for bit."""
        lists = {name: getattr(self, name) for name in _LISTS}
        return {
            "reading live": self.live.view(),
            **{f"reading {name} ends": some.ends for name, some in lists.items()},
            **{f"reading {name}": some.members for name, some in lists.items()},
            "reading times": np.trim_zeros(self._times.view(), "b"),
            "reading pairs": dict(sorted(self._pairs.items())),
        }

    @property
    def nbytes(self) -> int:
        lists: list[Members] = [getattr(self, name) for name in _LISTS]
        return self.live.nbytes + self._times.nbytes + sum(members.nbytes for members in lists)
