"""Where in the fact graph a rewrite, or a question, looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hmem_core.columns.facts import FactColumns
from hmem_core.options import FactOptions

__all__ = ["Region", "Temporary", "localise"]


class Temporary(NamedTuple):
    """A unit that is only asked for: codes of names, -1 for a slot that is not known."""

    subject: int = -1
    relation: int = -1
    object: int = -1
    category: int = -1
    contexts: tuple[int, ...] = ()


class Region(NamedTuple):
    """A part of the fact graph."""

    units: frozenset[int]
    """Those that a rewrite may match and change."""
    path: tuple[int, ...]
    """The units of the path that was chosen, in its order."""
    candidates: tuple[Any, ...] = ()
    """The paths that were compared, the best first, with the parts of their scores."""


def localise(facts: FactColumns, wanted: Sequence[Temporary], now: int, options: FactOptions) -> Region:
    """The units around the MicroGraphs of the units `wanted`: those in them, and their direct dependents.

    Args:
        now: the time in question, UTC microseconds.
    """
    matched: list[int] = []
    for unit in wanted:
        graph = facts.micrograph(unit.subject, unit.category)
        if graph is not None:
            matched += facts.graph_units(graph).tolist()
    around = [np.empty(0, np.int32), *(facts.dependents(unit) for unit in matched)]
    return Region(frozenset(matched).union(np.concatenate(around).tolist()), tuple(matched))
