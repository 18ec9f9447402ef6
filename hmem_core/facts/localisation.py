"""Where in the fact graph a rewrite, or a question, looks: HiGram (arXiv 2608.05095).

What is wanted is given as temporary units. Their subjects and categories are anchors; MicroGraphs that share
one are ranked, and of the best the active units form a subgraph, with what directly rests on them or supports
them. In it chains of units are compared by φ (`hmem_kernels.bestpaths`), and the best one is what was looked
for. The paper gives no weights and no bounds: those are in `FactOptions`, and ours.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.facts import FactColumns
from hmem_core.facts.matching import Matcher, Named, context_matches
from hmem_core.facts.subgraph import support_graph, surroundings
from hmem_core.journal.entries import ACTIVE
from hmem_core.options import FactOptions
from hmem_kernels import frozen
from hmem_kernels.bestpaths import (
    ATTRIBUTES,
    CONFIDENCE,
    CONTEXT,
    DEPENDENCY,
    PARTS,
    SCORE,
    VALIDITY,
    Graph,
    Qualities,
    best_paths,
)

__all__ = ["Path", "Region", "Temporary", "localise"]

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]

_SLOTS = ("subject", "relation", "object", "category")
_WINDOW = 4
"""A MicroGraph is searched for active units among this many times as many of its latest ones."""


class Temporary(NamedTuple):
    """A unit that is only asked for; None for a slot of which nothing is known."""

    subject: Named | None = None
    relation: Named | None = None
    object: Named | None = None
    category: Named | None = None
    contexts: tuple[Named, ...] = ()


class Path(NamedTuple):
    """A chain of units, from its older end, with its φ and the parts of it."""

    units: tuple[int, ...]
    score: float
    attributes: float
    dependency: float
    validity: float
    context: float
    confidence: float


class Region(NamedTuple):
    """A part of the fact graph."""

    units: frozenset[int]
    """Those that a rewrite may match and change: those with a subject and relation that are wanted, whatever
    their status; those of the path; and what directly rests on any of them."""
    path: tuple[int, ...]
    """The units of the path that was chosen."""
    candidates: tuple[Path, ...] = ()
    """The paths that were compared, the best first."""
    graphs: tuple[tuple[int, float], ...] = ()
    """The MicroGraphs that were looked into, by their numbers, with their relevance."""
    touched: int = 0
    """Units, MicroGraphs and edges that were read, and steps of paths that were tried."""


def localise(facts: FactColumns, wanted: Sequence[Temporary], now: int, options: FactOptions) -> Region:
    """The region of the fact graph that belongs to the units `wanted`.

    Args:
        now: the time in question, UTC microseconds.
    """
    exact = _exact(facts, wanted)
    if not options.localisation:
        return Region(frozenset(exact.tolist()), (), touched=exact.size)
    graphs, members, touched = _graphs(facts, wanted, options)
    status = facts.units["status"]
    same = exact[status[exact] == ACTIVE][-options.members :]
    inside = np.unique(np.concatenate([same, *members]))
    around = surroundings(facts, inside, options.links, options.graphs * options.members)
    units = np.union1d(inside, around.outside)
    qualities = _qualities(facts, units, wanted, now)
    fit = _fit(qualities, options)
    graph = support_graph(facts, units, around, fit, options.neighbours)
    candidates, looked = _candidates(units, graph, qualities, fit, options)
    path = candidates[0].units if candidates else ()
    region = {*exact.tolist(), *path}
    rest = [facts.dependents(unit).tolist() for unit in region if facts.index.resting.count(unit)]
    touched += exact.size + units.size + graph.targets.size + looked + sum(map(len, rest))
    return Region(frozenset(region.union(*rest)), path, candidates, graphs, touched)


def _exact(facts: FactColumns, wanted: Iterable[Temporary]) -> IntArray:
    """The units of a subject and relation that are wanted, ascending, whatever their status."""
    found = [
        facts.rival_units(unit.subject.code, unit.relation.code)
        for unit in wanted
        if unit.subject is not None and unit.relation is not None
    ]
    return np.unique(np.concatenate([np.empty(0, np.int32), *found]))


# -- MicroGraphs -------------------------------------------------------------------------------------


def _graphs(
    facts: FactColumns, wanted: Sequence[Temporary], options: FactOptions
) -> tuple[tuple[tuple[int, float], ...], list[IntArray], int]:
    """The K_g best MicroGraphs with an active unit, their latest active units, and how many rows were read.

    Those that share a subject come first, and others only fill up what they leave: a category may have as
    many MicroGraphs as the memory has subjects. Of each kind `options.considered` are scored at most: of a
    subject's the newest, of a category's those to which a unit was added last.
    """
    index, units = facts.index, facts.units
    subjects = [unit.subject.code for unit in wanted if unit.subject is not None]
    categories = [unit.category.code for unit in wanted if unit.category is not None]
    touched = 0
    chosen: list[tuple[int, float]] = []
    members: list[IntArray] = []
    seen: set[int] = set()

    def choose(graphs: Iterable[int]) -> None:
        nonlocal touched
        new = [graph for graph in dict.fromkeys(graphs) if graph not in seen][: options.considered]
        seen.update(new)
        touched += len(new)
        for graph, relevance in _ranked(facts, new, wanted, options):
            if len(chosen) == options.graphs:
                break
            latest = index.micrographs.units.latest(graph, _WINDOW * options.members)
            touched += latest.size
            active = latest[units["status"][latest] == ACTIVE][: options.members]
            if active.size:
                chosen.append((graph, relevance))
                members.append(active)

    own = [facts.micrograph(subject, category) for subject in subjects for category in categories]
    of_subjects = [index.graphs_of_subject.latest(code, options.considered).tolist() for code in subjects]
    choose([*_in_turn([own]), *_in_turn(of_subjects)])
    if len(chosen) < options.graphs:
        latest = [index.slots["category"].latest(code, options.considered) for code in categories]
        touched += sum(rows.size for rows in latest)
        held = units["subject"], units["category"]
        groups = [
            [
                facts.micrograph(*pair)
                for pair in zip(*(column[rows].tolist() for column in held), strict=True)
            ]
            for rows in latest
        ]
        choose(_in_turn(groups))
    return tuple(chosen), members, touched


def _in_turn(lists: Sequence[Sequence[int | None]]) -> list[int]:
    """The first of each list, then the second of each, and so on, but for None."""
    turns = itertools.chain.from_iterable(itertools.zip_longest(*lists))
    return [one for one in turns if one is not None]


def _ranked(
    facts: FactColumns, graphs: Sequence[int], wanted: Iterable[Temporary], options: FactOptions
) -> list[tuple[int, float]]:
    """MicroGraphs with their relevance, the best first; of equals, the one to which a unit was added last.

    R is the weighted mean of the matches of the slots that are given, for the temporary unit it fits best.
    """
    pairs = facts.index.micrographs
    rows = np.array(graphs, np.int64)
    slots = {
        "subject": Matcher(facts.names.vectors, pairs.first.view()[rows]),
        "category": Matcher(facts.names.vectors, pairs.second.view()[rows]),
    }
    weights = {"subject": options.subject, "category": options.category}
    relevance = np.zeros(len(graphs))
    for unit in wanted:
        given = {slot: name for slot in slots if (name := getattr(unit, slot)) is not None}
        whole = sum(weights[slot] for slot in given)
        if whole:
            parts = [weights[slot] / whole * slots[slot].match(name) for slot, name in given.items()]
            relevance = np.maximum(relevance, np.float32(np.sum(parts, axis=0)))
    latest = [int(pairs.units.latest(graph, 1)[0]) for graph in graphs]
    order = sorted(range(len(graphs)), key=lambda place: (-relevance[place], -latest[place]))
    return [(graphs[place], float(relevance[place])) for place in order]


# -- paths -------------------------------------------------------------------------------------------


def _qualities(facts: FactColumns, units: IntArray, wanted: Sequence[Temporary], now: int) -> Qualities:
    """What paths are judged by.

    The match of a unit is the mean over the slots that are wanted; an empty slot says nothing.
    """
    columns = facts.units
    slots = {slot: Matcher(facts.names.vectors, columns[slot][units]) for slot in _SLOTS}
    match = np.zeros((len(wanted), units.size), np.float32)
    for row, unit in enumerate(wanted):
        given = {slot: name for slot in _SLOTS if (name := getattr(unit, slot)) is not None}
        for slot, name in given.items():
            match[row] += slots[slot].match(name)
        match[row] /= max(len(given), 1)
    begun, not_over = columns["valid_from"][units] <= now, now < columns["valid_to"][units]
    valid = begun & not_over & (columns["status"][units] == ACTIVE)
    found = (
        match,
        valid.astype(np.float32),
        context_matches(facts, units, [unit.contexts for unit in wanted]),
        columns["confidence"][units].astype(np.float32),
        units.astype(np.int64),  # those that were told later have higher numbers
    )
    return Qualities._make(map(frozen, found))


def _fit(qualities: Qualities, options: FactOptions) -> FloatArray:
    """φ of each unit as a path of its own, without what is the same for all."""
    attributes = qualities.match.sum(axis=0) / max(len(qualities.match), 1)
    others = options.validity * qualities.valid + options.context * qualities.context
    fit: FloatArray = (options.attributes * attributes + others).astype(np.float32)
    return fit


def _candidates(
    units: IntArray, graph: Graph, qualities: Qualities, fit: FloatArray, options: FactOptions
) -> tuple[tuple[Path, ...], int]:
    """The K_p best paths, and how many steps were tried."""
    if not len(qualities.match):
        return (), 0
    weights = [options.attributes, options.dependency, options.validity, options.context]
    paths = np.zeros((options.candidates, options.depth + 1), np.int32)
    sizes, parts = np.zeros(options.candidates, np.int32), np.zeros((options.candidates, PARTS))
    starts = frozen(np.lexsort((-units, -fit)).astype(np.int32))
    given = starts, graph, qualities, frozen(np.array(weights, float))
    kept, looked = best_paths(*given, paths, sizes, parts, options.steps)
    columns = (SCORE, ATTRIBUTES, DEPENDENCY, VALIDITY, CONTEXT, CONFIDENCE)
    found = tuple(
        Path(tuple(units[paths[row, : sizes[row]]].tolist()), *(float(parts[row, one]) for one in columns))
        for row in range(kept)
    )
    return found, looked
