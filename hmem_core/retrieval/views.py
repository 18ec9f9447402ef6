"""Views: ways to rank. `VIEWS` is where they are plugged in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.scanning import best_rows, top_k
from hmem_core.options import ReadingOptions
from hmem_core.retrieval import signals
from hmem_core.retrieval.told import Lent
from hmem_core.segments.scoring import covered, node_scores, propagated
from hmem_core.state import View
from hmem_kernels import frozen
from hmem_kernels.select import select_nodes

__all__ = ["VIEWS", "Hit", "Query", "Ranker"]

FloatArray = npt.NDArray[np.float32]
Mask = npt.NDArray[np.uint8]


class Query(NamedTuple):
    """What is asked, its unit vector, and what is known beforehand."""

    text: str
    vector: FloatArray
    told: Lent | None = None
    """What facts say for turns, and against them."""


class Hit(NamedTuple):
    """Successive turns that a view found: one, or those of a segment that may be shown."""

    span: tuple[int, int]
    rows: tuple[int, ...]
    score: float
    signals: dict[str, float]
    """The parts that add up to the score."""


class Ranker(NamedTuple):
    """A view: how it ranks, and whether it reads the segment tree."""

    rank: Callable[[View, Query, int, Mask, ReadingOptions], list[Hit]]
    """(memory, query, k, allowed turns, options) -> hits of k turns at most together, best first."""
    tree: bool = False
    facts: bool = False
    """Whether it heeds what facts say for turns."""


def dense(view: View, query: Query, k: int, allowed: Mask, options: ReadingOptions) -> list[Hit]:
    """Turns by the cosine of their embedding with the query's. Ties: the earlier turn first."""
    best = top_k(view.vectors, query.vector, k, allowed)
    return [
        _turn(int(row), {"dense": float(score)}) for score, row in zip(best.scores, best.rows, strict=True)
    ]


def lexical(view: View, query: Query, k: int, allowed: Mask, options: ReadingOptions) -> list[Hit]:
    """Turns by BM25; only those that share a term with the query."""
    scores = signals.words(view, query.text, allowed, options)
    found = allowed & (scores > 0)
    return [_turn(int(row), {"lexical": float(scores[row])}) for row in best_rows(scores, k, found)]


def fused(view: View, query: Query, k: int, allowed: Mask, options: ReadingOptions) -> list[Hit]:
    """Turns by all signals together: embeddings and words, what neighbours in the session lend, what is
    inherited from the segments of the tree, and what facts say for and against the turns that tell them."""
    columns = {
        "dense": signals.dense(view, query.vector, allowed, options),
        "lexical": signals.lexical(view, query.text, allowed, options),
    }
    own = columns["dense"] + columns["lexical"]
    columns["lateral"] = signals.lateral(view, own, options)
    columns["tree"] = signals.inherited(view, own, allowed, options)
    if query.told is not None:
        columns["fact"] = query.told.column(view.rows, options.fact)
    total: FloatArray = np.add.reduce(list(columns.values()))
    return [
        _turn(int(row), {name: float(column[row]) for name, column in columns.items()})
        for row in best_rows(total, k, allowed)
    ]


def time(view: View, query: Query, k: int, allowed: Mask, options: ReadingOptions) -> list[Hit]:
    """Nodes of the segment tree by the cosine of their centroid, or of their summary if that is greater, and
    what the policy brings them (SegTreeMem).

    A segment counts as many turns as it shows, so it is taken only where it fits into what is left of `k`;
    no node comes beside one above it.
    """
    tree = view.tree
    shown = covered(tree, allowed)
    candidates = frozen(((shown > 0) & (shown <= k)).astype(np.uint8))
    local = node_scores(tree, signals.cosines(view, query.vector))
    notes = view.annotations
    if notes.nodes.size:  # a summary may be nearer to the query than the mean of the turns it is of
        local[notes.nodes] = np.maximum(local[notes.nodes], notes.matrix() @ query.vector)
    own = signals.standardised(local, frozen((shown > 0).astype(np.uint8)), 1.0)
    gained = propagated(tree, own, view.narrow["live"], options)
    chosen = np.empty(min(k, int(np.count_nonzero(candidates))), np.int32)
    ranked = np.empty(tree.start.size, np.int32)
    count = select_nodes(frozen(own + gained), tree.start, tree.end, candidates, ranked, chosen)
    hits = []
    room = k
    for node in chosen[:count].tolist():
        if shown[node] > room:
            continue
        room -= int(shown[node])
        first, last = int(tree.start[node]), int(tree.end[node])
        rows = tuple((first + np.flatnonzero(allowed[first : last + 1])).tolist())
        parts = {"centroid": float(own[node])}
        if options.policy != "none":
            parts[options.policy] = float(gained[node])
        hits.append(Hit((first, last), rows, sum(parts.values()), parts))
        if not room:
            break
    return hits


def _turn(row: int, parts: dict[str, float]) -> Hit:
    return Hit((row, row), (row,), sum(parts.values()), parts)


VIEWS = {
    "fused": Ranker(fused, tree=True, facts=True),
    "dense": Ranker(dense),
    "lexical": Ranker(lexical),
    "time": Ranker(time, tree=True),
}
"""Rankers by the name of their view."""
