"""The fact graph in columns: units, what told them, how they changed, and the lists that connect them.

Row number = id of the unit, number of the telling, place of the change. Rows are only appended, or blanked
when something is forgotten. Whatever is not a plain column follows from the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from hmem_core.columns.factforgetting import blank, gone
from hmem_core.columns.factindex import SLOTS, FactIndex
from hmem_core.columns.factnames import FactNames
from hmem_core.columns.facttables import CHANGES, TELLINGS, UNITS, Members, Table
from hmem_core.columns.readings import Readings
from hmem_core.errors import Damaged
from hmem_core.journal.entries import (
    ACTIVE,
    FORGOTTEN,
    OPEN_END,
    OPEN_START,
    FactsRewritten,
    Telling,
    TurnsForgotten,
    TurnsRead,
    UnitAdded,
    UnitChange,
)
from hmem_kernels import frozen
from hmem_kernels.cascade import Support

__all__ = ["FactColumns", "Note"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]


class Note(msgspec.Struct, frozen=True, array_like=True):
    """What a rewrite says of itself."""

    key: str | None = None
    part: int = 0
    reason: str | None = None
    undoes: int = 0


class FactColumns:
    """The fact graph of one memory.

    Args:
        dimension: of the names' vectors.
    """

    def __init__(self, dimension: int) -> None:
        self.names = FactNames(dimension)
        self.units = Table(UNITS)
        self.contexts = Members()
        """Of each unit, the codes of its contexts."""
        self.tellings = Table(TELLINGS)
        self.sources = Members()
        """Of each telling, the turns that it names; -1 for one that is forgotten."""
        self.because = Members()
        """Of each telling, the units on all of which it rests."""
        self.changes = Table(CHANGES)
        self.notes: dict[int, Note] = {}
        """By rewrite, of those that say something of themselves."""
        self.keys: dict[str, dict[int, int]] = {}
        """The rewrites under each key, by their part."""
        self.undoing: dict[int, int] = {}
        """Of rewrites that were taken back, the last one that did it (and may itself be taken back)."""
        self.readings = Readings()
        self.stamp = 0
        """The entry that changed anything here last."""
        self.reindex()
        self._tried: list[Callable[[], None]] | None = None

    def reindex(self) -> None:
        self.index = FactIndex(self.units, self.contexts, self.tellings, self.sources, self.because)

    def __len__(self) -> int:
        """Number of units, forgotten ones included."""
        return len(self.units)

    # -- reading -------------------------------------------------------------------------------------

    def units_of(self, slot: str, code: int) -> IntArray:
        """The units that hold a name in a slot (``subject``, ``relation``, ``object``, ``category`` or
        ``context``), ascending, whatever their status."""
        return self.index.slots[slot][code]

    def rival_units(self, subject: int, relation: int) -> IntArray:
        """The units of a subject and a relation, ascending, whatever their status and contexts."""
        return self.index.assertions.of(subject, relation)

    def micrograph(self, subject: int, category: int) -> int | None:
        """Number of the MicroGraph of a subject and a category (-1 for none), or None."""
        return self.index.micrographs.find(subject, category)

    def graph_units(self, graph: int) -> IntArray:
        """The units of a MicroGraph, ascending, whatever their status."""
        return self.index.micrographs.units[graph]

    def dependents(self, unit: int) -> IntArray:
        """The units of which a telling that counts rests on `unit`, ascending, each once."""
        tellings = self.index.resting[unit]
        live = self.tellings["live"][tellings] == 1
        return np.unique(self.tellings["unit"][tellings[live]])

    def justifications(self, unit: int) -> Iterator[IntArray]:
        """For each telling of `unit` that counts, the units on all of which it rests: none for one that
        stands by itself."""
        live = self.tellings["live"]
        for telling in self.index.tellings[unit].tolist():
            if live[telling]:
                yield self.because[telling]

    def support(self) -> Support:
        """What told the units and what that rests on, for a kernel, without copying."""
        columns = (self.tellings["unit"], self.tellings["live"], self.because.ends, self.because.members)
        lists = (*self.index.tellings.links(), *self.index.resting.links())
        return Support._make(map(frozen, (*columns, *lists)))

    def supported(self, unit: int) -> bool:
        """Whether some telling of `unit` stands by itself, or rests on active units alone."""
        status = self.units["status"]
        return any(bool((status[needed] == ACTIVE).all()) for needed in self.justifications(unit))

    def history(self, unit: int) -> list[int]:
        """The changes of a unit, the first one first."""
        found = []
        change = int(self.units["change"][unit])
        previous = self.changes["previous"]
        while change >= 0:
            found.append(change)
            change = int(previous[change])
        return found[::-1]

    def change_at(self, unit: int, limit: int, column: str = "seq") -> int:
        """The latest change of a unit of which `column` (``seq`` or ``recorded``) is not beyond `limit`;
        -1 if there is none."""
        change = int(self.units["change"][unit])
        previous, moment = self.changes["previous"], self.changes[column]
        while change >= 0 and moment[change] > limit:
            change = int(previous[change])
        return change

    def changes_of(self, seq: int) -> range:
        """The changes that an entry made."""
        column = self.changes["seq"]
        return range(int(np.searchsorted(column, seq)), int(np.searchsorted(column, seq, side="right")))

    def undoes(self, seq: int) -> int | None:
        """The rewrite that a rewrite took back, or None."""
        return self.notes.get(seq, Note()).undoes or None

    def undone(self, seq: int) -> bool:
        """Whether a rewrite is taken back."""
        found = False
        while seq in self.undoing:
            seq, found = self.undoing[seq], not found
        return found

    def tellings_of(self, seq: int) -> range:
        """The tellings that an entry brought."""
        column = self.tellings["seq"]
        return range(int(np.searchsorted(column, seq)), int(np.searchsorted(column, seq, side="right")))

    # -- changing ------------------------------------------------------------------------------------

    def apply(self, seq: int, entry: FactsRewritten, unpack: Callable[[bytes], FloatArray]) -> None:
        """Make the changes of a rewrite.

        Raises:
            Damaged: the entry does not fit; nothing was changed.
        """
        self.begin_rewrite(seq, entry, unpack)
        self.end_rewrite(seq, entry)

    def begin_rewrite(self, seq: int, entry: FactsRewritten, unpack: Callable[[bytes], FloatArray]) -> None:
        """The first half of `apply`: all but what becomes of the units."""
        vectors = [unpack(name.vector) if name.text is not None else None for name in entry.names]
        self._check(seq, entry, vectors)
        for name, vector in zip(entry.names, vectors, strict=True):
            blank = np.zeros(self.names.vectors.dimension, np.float32)
            self.names.append(seq, name.text, blank if vector is None else vector)
        for code, other in entry.aliases:
            self._alias(code, other)
        for code, policy in entry.policies:
            if self.names[code] is not None:
                self._set_name("policy", code, policy)
        for unit in entry.units:
            self._add(seq, entry.recorded, unit)
        for told in entry.tellings:
            self._tell(seq, told)
        for telling in entry.withdrawn:
            if self.tellings["unit"][telling] >= 0:
                self.tellings.set(telling, live=0, withdrawn=seq)
        for telling in entry.revived:
            if self.tellings["unit"][telling] >= 0:
                self.tellings.set(telling, live=1, withdrawn=0)

    def end_rewrite(self, seq: int, entry: FactsRewritten) -> None:
        """The second half."""
        self._change(seq, entry.recorded, entry.changes)
        self.note(seq, Note(entry.key, entry.part, entry.reason, entry.undoes))
        self.stamp = seq

    def _check(self, seq: int, entry: FactsRewritten, vectors: Sequence[FloatArray | None]) -> None:
        codes, units = len(self.names) + len(entry.names), len(self) + len(entry.units)
        tellings = len(self.tellings) + len(entry.tellings)
        slots = [code for unit in entry.units for code in (*_codes(unit).values(), *unit.contexts)]
        named = [code for pair in entry.aliases for code in pair] + [code for code, _ in entry.policies]
        held = [telling.unit for telling in entry.tellings]
        needed = [unit for telling in entry.tellings for unit in telling.because]
        fits = (
            [name.code for name in entry.names] == list(range(len(self.names), codes))
            and [unit.id for unit in entry.units] == list(range(len(self), units))
            and [told.id for told in entry.tellings] == list(range(len(self.tellings), tellings))
            and all(-1 <= code < codes for code in slots)
            and all(0 <= code < codes for code in named)
            and all(-1 <= unit < units for unit in (*held, *needed))
            and all(0 <= telling < tellings for telling in (*entry.withdrawn, *entry.revived))
            and all(0 <= change.unit < units and -1 <= change.by < units for change in entry.changes)
            and len({change.unit for change in entry.changes}) == len(entry.changes)
            and all(vector is None or vector.size == self.names.vectors.dimension for vector in vectors)
        )
        if not fits:
            raise Damaged(f"entry {seq} rewrites facts, and does not fit those before it")

    def _alias(self, code: int, other: int) -> None:
        """From here on, `other` stands for `code`, in units that are there already too."""
        if self.names[code] is None or self.names[other] is None:
            return  # forgotten since
        for name in (code, *self.names.aliases(code)):
            self._set_name("alias", name, other)
        moved = False
        for slot in SLOTS:
            for unit in self.units_of(slot, code).tolist():
                self.units.set(unit, **{slot: other})
                self.use(code, -1)
                self.use(other, 1)
                moved = True
        for unit in self.units_of("context", code).tolist():
            if self._tried is not None:
                self._tried.append(partial(self._put_contexts, unit, self.contexts[unit].copy()))
            self.contexts.replace(unit, code, other)
            self.use(code, -1)
            self.use(other, 1)
            moved = True
        if moved:
            self.reindex()

    def _put_contexts(self, unit: int, codes: IntArray) -> None:
        self.contexts[unit][:] = codes

    def use(self, code: int, times: int) -> None:
        if code >= 0:
            self._set_name("uses", code, self.names.narrow["uses"][code] + times)

    def _set_name(self, column: str, code: int, value: int) -> None:
        values = self.names.narrow[column]
        if self._tried is not None:
            before = values[code]
            self._tried.append(lambda: values.__setitem__(code, before))
        values[code] = value

    def _add(self, seq: int, recorded: int, unit: UnitAdded) -> None:
        codes = _codes(unit)
        self.units.append(
            {
                **codes,
                "seq": seq,
                "recorded": recorded,
                "status": FORGOTTEN,
                "valid_from": OPEN_START,
                "valid_to": OPEN_END,
                "confidence": 0.0,
                "by": -1,
                "change": -1,
            }
        )
        self.contexts.append(unit.contexts)
        if unit.subject >= 0:
            self.index.add_unit(unit.id, codes, self.contexts[unit.id])
            for code in (*codes.values(), *unit.contexts):
                self.use(code, 1)

    def _tell(self, seq: int, told: Telling) -> None:
        self.tellings.append(
            {
                "unit": told.unit,
                "live": told.unit >= 0,
                "seq": seq,
                "withdrawn": 0,
                "confidence": told.confidence,
                "valid_from": told.valid_from,
                "valid_to": told.valid_to,
            }
        )
        self.sources.append(told.sources)
        self.because.append(told.because)
        if told.unit >= 0:
            self.index.add_telling(told.id, told.unit, self.sources[told.id], self.because[told.id])

    def _change(self, seq: int, recorded: int, changes: Sequence[UnitChange]) -> None:
        if not changes:
            return
        columns = zip(*map(msgspec.structs.astuple, changes), strict=True)
        values = dict(zip(UnitChange.__struct_fields__, columns, strict=True))
        units = np.array(values.pop("unit"), np.int64)
        why = values.pop("why")
        rows = np.arange(len(self.changes), len(self.changes) + units.size)
        moment = {"seq": np.full(units.size, seq), "recorded": np.full(units.size, recorded)}
        previous = self.units["change"][units]
        self.changes.extend({**values, **moment, "unit": units, "why": why, "previous": previous})
        self.units.set(units, **values, change=rows)

    def note(self, seq: int, note: Note) -> None:
        if note == Note():
            return
        if self._tried is not None:
            self._tried.append(partial(self._take_note_back, seq, self.undoing.get(note.undoes)))
        self.notes[seq] = note
        if note.key is not None:
            self.keys.setdefault(note.key, {})[note.part] = seq
        if note.undoes:
            self.undoing[note.undoes] = seq

    def _take_note_back(self, seq: int, undone_by: int | None) -> None:
        undone = self.notes[seq].undoes
        self.blank_note(seq)
        self.notes.pop(seq, None)
        if undone_by is not None:
            self.undoing[undone] = undone_by
        else:
            self.undoing.pop(undone, None)

    def blank_note(self, seq: int) -> None:
        """Forget the words of a rewrite; that it took back another stays."""
        note = self.notes.pop(seq)
        if note.key is not None:
            parts = self.keys[note.key]
            del parts[note.part]
            if not parts:
                del self.keys[note.key]
        if note.undoes:
            self.notes[seq] = Note(undoes=note.undoes)

    def read(self, seq: int, entry: TurnsRead, turns: int) -> None:
        """A model read some of so many turns.

        Raises:
            Damaged: the entry does not fit; nothing was changed.
        """
        pairs = [unit for pair in entry.compared for unit in pair]
        fits = (
            all(0 <= turn < turns for turn in (*entry.turns, *entry.read))
            and all(0 <= unit < len(self) for unit in (*entry.taken, *pairs))
            and all(0 <= telling < len(self.tellings) for telling in entry.tellings)
        )
        if not fits:
            raise Damaged(f"entry {seq} read turns or facts that were never added")
        self.readings.append(entry)
        self.stamp = seq

    # -- trying out ----------------------------------------------------------------------------------

    def begin(self) -> Callable[[], None]:
        """Remember this moment. What is applied from now on is taken back by the function that is returned,
        so that several rewrites can be planned one on the other before any is written.
        """
        sizes = [(table, table.begin()) for table in (self.units, self.tellings, self.changes)]
        rows = [(members, len(members)) for members in (self.contexts, self.sources, self.because)]
        self.names.begin()
        index = self.index
        index.begin()
        self._tried = []
        stamp = self.stamp

        def rollback() -> None:
            for undo in reversed(self._tried or []):
                undo()
            self._tried = None
            for table, size in sizes:
                table.rollback(size)
            for members, count in rows:
                members.truncate(count)
            self.names.rollback()
            self.index = index
            index.rollback()
            self.stamp = stamp

        return rollback

    # -- forgetting ----------------------------------------------------------------------------------

    def forget(self, seq: int, entry: TurnsForgotten) -> None:
        """Blank what goes with the turns and units that an entry forgets, and change what is left.

        Raises:
            Damaged: the entry does not fit; nothing was changed.
        """
        changed = [change.unit for change in entry.changes]
        fits = all(0 <= unit < len(self) for unit in (*entry.units, *changed))
        if not fits or not all(0 <= reading < len(self.readings) for reading in entry.readings):
            raise Damaged(f"entry {seq} forgets facts that were never added")
        blank(self, gone(self, entry.ids, entry.units, entry.readings), entry.ids)
        self.readings.end(entry.readings)
        self._change(seq, entry.recorded, entry.changes)
        if len(self.names) or entry.readings:
            self.stamp = seq
            self.names.stamp_all(seq)

    def arrays(self) -> dict[str, Any]:
        """Every value, in a form that compares bit for bit."""
        tables = {"unit": self.units, "telling": self.tellings, "change": self.changes}
        members = {"contexts": self.contexts, "sources": self.sources, "because": self.because}
        return {
            **{
                f"fact {name} {column}": table[column]
                for name, table in tables.items()
                for column in table.columns
            },
            **{f"fact {name} ends": some.ends for name, some in members.items()},
            **{f"fact {name}": some.members for name, some in members.items()},
            **self.names.arrays(),
            **self.index.arrays(),
            **self.readings.arrays(),
            "fact notes": self.notes,
            "fact keys": self.keys,
            "fact undoing": self.undoing,
            "fact stamp": self.stamp,
        }

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes: (held, mapped)."""
        held, mapped = self.names.nbytes
        tables = sum(table.nbytes for table in (self.units, self.tellings, self.changes))
        members = sum(some.nbytes for some in (self.contexts, self.sources, self.because))
        return held + tables + members + self.index.nbytes + self.readings.nbytes, mapped


def _codes(unit: UnitAdded) -> dict[str, int]:
    return {
        "subject": unit.subject,
        "relation": unit.relation,
        "object": unit.object,
        "category": unit.category,
    }
