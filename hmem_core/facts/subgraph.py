"""The support subgraph: units, the dependencies between them, and what else relates them.

Units that share a subject, a category or a context are related through that upper node, all n of them to one
another: n² edges, and n⁴ paths of three steps. So a step through an upper node leads only to those of its
units that fit best (ours), and one that fits less is reached by a dependency, or begins a path. Dependencies
are followed in both directions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.facts import FactColumns
from hmem_kernels import frozen
from hmem_kernels.bestpaths import Graph
from hmem_kernels.cascade import related

__all__ = ["Surroundings", "support_graph", "surroundings"]

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]


class Surroundings(NamedTuple):
    """What directly rests on some units, or supports them."""

    units: IntArray
    """Of each dependency, the one"""
    others: IntArray
    """and the other unit."""
    outside: IntArray
    """Those that are not among the units themselves, ascending."""


def surroundings(facts: FactColumns, inside: IntArray, links: int, most: int) -> Surroundings:
    """The active units that directly rest on units, or support them.

    Args:
        inside: the units, ascending.
        links: so many of each kind are looked at for each unit, those that were told last.
        most: so many are taken in all, those that were told last.
    """
    rows, found = (np.empty(2 * links * inside.size, np.int32) for _ in range(2))
    status = frozen(facts.units["status"])
    count = related(frozen(inside), status, facts.support(), links, rows, found)
    units, others = inside[rows[:count]], found[:count]
    outside = np.setdiff1d(others, inside)[-most:]
    known = np.isin(others, inside) | np.isin(others, outside)
    return Surroundings(units[known], others[known], outside)


def support_graph(
    facts: FactColumns, units: IntArray, around: Surroundings, fit: FloatArray, neighbours: int
) -> Graph:
    """The edges between the units of a subgraph, which are numbered from 0.

    Args:
        units: ascending.
        around: the dependencies.
        fit: float32 (units,), how well each fits what is wanted.
        neighbours: to so many units a step through an upper node can lead.
    """
    size = units.size
    a, b = np.searchsorted(units, around.units), np.searchsorted(units, around.others)
    keys = [a * size + b, b * size + a]
    order = _by_fit(facts, units, fit)
    for members, nodes in _upper(facts, units):
        keys.append(_through(members, nodes, order, neighbours, size))
    edges, first = np.unique(np.concatenate(keys), return_index=True)  # the first is a dependency, if one is
    heads, targets = np.divmod(edges, max(size, 1))
    kept = heads != targets
    kinds = (first[kept] < 2 * a.size).astype(np.uint8)
    offsets = np.searchsorted(heads[kept], np.arange(size + 1))
    return Graph(frozen(offsets), frozen(targets[kept].astype(np.int32)), frozen(kinds))


def _by_fit(facts: FactColumns, units: IntArray, fit: FloatArray) -> LongArray:
    """Of each unit its place in the order of fit; of equals, the surer, then the newer one is first."""
    place = np.empty(units.size, np.int64)
    place[np.lexsort((-units, -facts.units["confidence"][units], -fit))] = np.arange(units.size)
    return place


def _upper(facts: FactColumns, units: IntArray) -> list[tuple[LongArray, IntArray]]:
    """Units and the upper nodes they hang on: subjects, categories and contexts."""
    found = []
    for slot in ("subject", "category"):
        nodes = facts.units[slot][units]
        members = np.flatnonzero(nodes >= 0)
        found.append((members, nodes[members]))
    held = [facts.contexts[unit] for unit in units.tolist()]
    contexts = [np.unique(codes) if codes.size > 1 else codes for codes in held]  # aliases make equals
    members = np.repeat(np.arange(units.size), [codes.size for codes in contexts])
    found.append((members, np.concatenate([np.empty(0, np.int32), *contexts])))
    return found


def _through(members: LongArray, nodes: IntArray, order: LongArray, most: int, size: int) -> LongArray:
    """Edges from members of upper nodes to the `most` first of each node's, as row · size + column."""
    if not members.size:
        return np.empty(0, np.int64)
    ranked = np.lexsort((order[members], nodes))
    members, nodes = members[ranked], nodes[ranked]
    begins = np.flatnonzero(np.diff(nodes, prepend=nodes[0] - 1))
    counts = np.diff(begins, append=nodes.size)
    starts = np.repeat(begins, counts)
    steps = np.arange(most)
    targets = starts[:, None] + steps
    there = steps < np.repeat(counts, counts)[:, None]
    rows = np.broadcast_to(members[:, None], targets.shape)[there]
    keys: LongArray = rows * size + members[targets[there]]
    return keys
