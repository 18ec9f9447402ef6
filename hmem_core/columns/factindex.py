"""The lists of the fact graph: from names, turns and units to the units and tellings that hold them.

All of it follows from the columns, and is built from them when a memory is opened or something is forgotten.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hmem_core.columns.adjacency import Adjacency
from hmem_core.columns.facttables import Members, Table
from hmem_core.columns.growable import Growable

__all__ = ["FactIndex", "Pairs"]

IntArray = npt.NDArray[np.int32]

SLOTS = ("subject", "relation", "object", "category")


def _key(first: int, second: int) -> int:
    """Two codes, of which the second may be -1, as one number."""
    return (first << 32) | (second + 1)


class Pairs:
    """Groups of units that have the same two codes, numbered in the order in which they came to be.

    Args:
        first, second: the codes of the units, int32 of shape (n,).
        units: their numbers, ascending.
    """

    __slots__ = ("_base", "_later", "_mark", "_order", "first", "second", "units")

    def __init__(self, first: IntArray, second: IntArray, units: IntArray) -> None:
        keys = (first.astype(np.int64) << 32) | (second.astype(np.int64) + 1)
        distinct, begun, place = np.unique(keys, return_index=True, return_inverse=True)
        number = np.empty(distinct.size, np.int32)
        number[np.argsort(begun, kind="stable")] = np.arange(distinct.size, dtype=np.int32)
        self._base, self._order = distinct, number
        begun = np.sort(begun)
        self.first = Growable(np.int32, first[begun])
        """Of each group, its first code"""
        self.second = Growable(np.int32, second[begun])
        """and its second, or -1."""
        self.units = Adjacency(number[place], units)
        """Of each group, its units."""
        self._later: dict[int, int] = {}
        self._mark: tuple[int, tuple[int, int]] | None = None

    def __len__(self) -> int:
        return len(self.first)

    def find(self, first: int, second: int) -> int | None:
        """The number of the group of two codes, or None."""
        key = _key(first, second)
        place = int(np.searchsorted(self._base, key))
        if place < self._base.size and self._base[place] == key:
            return int(self._order[place])
        return self._later.get(key)

    def add(self, first: int, second: int, unit: int) -> tuple[int, bool]:
        """Enter a unit; returns its group, and whether that is new."""
        found = self.find(first, second)
        group = len(self) if found is None else found
        if found is None:
            self._later[_key(first, second)] = group
            self.first.append(first)
            self.second.append(second)
        self.units.append(group, unit)
        return group, found is None

    def of(self, first: int, second: int) -> IntArray:
        """The units of two codes, ascending."""
        group = self.find(first, second)
        return np.empty(0, np.int32) if group is None else self.units[group]

    def begin(self) -> None:
        """Remember this moment for `rollback`."""
        self._mark = len(self), self.units.begin()

    def rollback(self) -> None:
        """Take back what was entered since `begin`."""
        assert self._mark is not None
        size, units = self._mark
        for group in range(size, len(self)):
            del self._later[_key(int(self.first[group]), int(self.second[group]))]
        self.first.truncate(size)
        self.second.truncate(size)
        self.units.rollback(units)
        self._mark = None

    @property
    def nbytes(self) -> int:
        """Bytes, an estimate of the dict's included."""
        arrays = self._base.nbytes + self._order.nbytes + self.first.nbytes + self.second.nbytes
        return int(arrays) + self.units.nbytes + 100 * len(self._later)


class FactIndex:
    """All lists.

    Args:
        units, contexts: the units and their contexts.
        tellings, sources, because: the tellings, the turns and the units they name.
    """

    def __init__(
        self, units: Table, contexts: Members, tellings: Table, sources: Members, because: Members
    ) -> None:
        live = np.flatnonzero(units["subject"] >= 0).astype(np.int32)
        codes = {name: units[name][live] for name in SLOTS}
        self.slots: dict[str, Adjacency] = {
            name: Adjacency(column[column >= 0], live[column >= 0]) for name, column in codes.items()
        }
        """By slot: of each name, the units that hold it there; ``context`` is one of the slots."""
        self.slots["context"] = _inverse(contexts)
        self.assertions = Pairs(codes["subject"], codes["relation"], live)
        """Units by subject and relation: what can contradict one another."""
        self.micrographs = Pairs(codes["subject"], codes["category"], live)
        """Units by subject and category (-1 for none): the MicroGraphs."""
        graphs = np.arange(len(self.micrographs), dtype=np.int32)
        subjects, categories = self.micrographs.first.view(), self.micrographs.second.view()
        self.graphs_of_subject = Adjacency(subjects, graphs)
        """Of each name, the MicroGraphs of which it is the subject"""
        self.graphs_of_category = Adjacency(categories[categories >= 0], graphs[categories >= 0])
        """and of which it is the category."""
        told = np.flatnonzero(tellings["unit"] >= 0).astype(np.int32)
        self.tellings = Adjacency(tellings["unit"][told], told)
        """Of each unit, its tellings, withdrawn ones included."""
        self.resting = _inverse(because)
        """Of each unit, the tellings that rest on it."""
        self.citing = _inverse(sources)
        """Of each turn, the tellings that name it."""
        self._marks: list[tuple[Adjacency, tuple[int, int]]] = []
        self._distinct: dict[str, tuple[int, IntArray]] = {}

    def distinct(self, slot: str, units: Table) -> IntArray:
        """The names that stand, or stood, in a slot of the `units`, ascending. Each unit is looked at once,
        by the first reader after it came."""
        seen, known = self._distinct.get(slot, (0, np.empty(0, np.int32)))
        if seen < len(units):
            fresh = np.unique(units[slot][seen:])
            known = np.union1d(known, fresh[fresh >= 0]).astype(np.int32)
            self._distinct[slot] = len(units), known
        return known

    def _lists(self) -> list[Adjacency]:
        graphs = [self.graphs_of_subject, self.graphs_of_category]
        return [*self.slots.values(), *graphs, self.tellings, self.resting, self.citing]

    def add_unit(self, unit: int, codes: dict[str, int], contexts: IntArray) -> None:
        """Enter a unit with its slots."""
        for name in SLOTS:
            if codes[name] >= 0:
                self.slots[name].append(codes[name], unit)
        for context in contexts.tolist():
            self.slots["context"].append(context, unit)
        self.assertions.add(codes["subject"], codes["relation"], unit)
        graph, new = self.micrographs.add(codes["subject"], codes["category"], unit)
        if new:
            self.graphs_of_subject.append(codes["subject"], graph)
            if codes["category"] >= 0:
                self.graphs_of_category.append(codes["category"], graph)

    def add_telling(self, telling: int, unit: int, sources: IntArray, because: IntArray) -> None:
        """Enter a telling of a unit."""
        self.tellings.append(unit, telling)
        for turn in sources.tolist():
            if turn >= 0:
                self.citing.append(turn, telling)
        for support in because.tolist():
            self.resting.append(support, telling)

    def begin(self) -> None:
        """Remember this moment for `rollback`."""
        self._marks = [(lists, lists.begin()) for lists in self._lists()]
        self.assertions.begin()
        self.micrographs.begin()

    def rollback(self) -> None:
        """Take back what was entered since `begin`."""
        for lists, mark in self._marks:
            lists.rollback(mark)
        self.assertions.rollback()
        self.micrographs.rollback()
        self._marks = []

    def arrays(self) -> dict[str, npt.NDArray[np.int64] | IntArray]:
        """Every list, in a form that compares; of groups, without their numbers."""
        found: dict[str, npt.NDArray[np.int64] | IntArray] = {}
        named = {**self.slots, "tellings": self.tellings, "resting": self.resting, "citing": self.citing}
        for name, lists in named.items():
            found[f"fact list {name}"], found[f"fact list {name} of"] = lists.entries()
        for name, pairs in (("assertion", self.assertions), ("micrograph", self.micrographs)):
            found[f"fact {name} first"], found[f"fact {name} second"] = (
                pairs.first.view(),
                pairs.second.view(),
            )
            found[f"fact {name} units"], found[f"fact {name} groups"] = pairs.units.entries()
        for name, lists in (("subject", self.graphs_of_subject), ("category", self.graphs_of_category)):
            found[f"fact graphs {name}"], found[f"fact graphs of {name}"] = lists.entries()
        return found

    @property
    def nbytes(self) -> int:
        pairs = self.assertions.nbytes + self.micrographs.nbytes
        return pairs + sum(lists.nbytes for lists in self._lists())


def _inverse(members: Members) -> Adjacency:
    """From members to the rows that hold them; -1 is no member."""
    held = members.members >= 0
    return Adjacency(members.members[held], members.rows()[held].astype(np.int32))
