"""Where in the fact graph a rewrite or a question looked, and what it compared there."""

from __future__ import annotations

import msgspec

__all__ = ["Localisation", "LocalisedGraph", "LocalisedPath"]


class LocalisedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A MicroGraph that was looked into: the units of a subject and a category."""

    subject: str
    category: str | None
    score: float
    """How relevant it is, by subject and category."""


class LocalisedPath(msgspec.Struct, frozen=True, kw_only=True):
    """A chain of active units, each related to the next one."""

    units: tuple[int, ...]
    """Their ids, from the older end."""
    text: str
    score: float
    """φ, the sum of the parts below, each times its weight in `FactOptions`."""
    attributes: float
    """How well its units match the slots that are wanted, from 0 to 1."""
    dependency: float
    """The share of its steps that are dependencies; 1 for a single unit."""
    validity: float
    """The share of its units that are valid at the time in question."""
    context: float
    """How well its units' contexts fit, from 0 to 1."""


class Localisation(msgspec.Struct, frozen=True, kw_only=True):
    """Where in the fact graph a rewrite or a question looked."""

    paths: tuple[LocalisedPath, ...]
    """Those that were compared, the best first; that one is what was looked for."""
    graphs: tuple[LocalisedGraph, ...]
    region: tuple[int, ...]
    """Ids of the units that a rewrite with ``cascade="path"`` may match and change."""
    touched: int
    """Units, MicroGraphs and edges that were read, and steps of paths that were tried."""
