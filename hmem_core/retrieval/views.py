"""Views: ways to rank. `VIEWS` is where they are plugged in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.scanning import best_rows, top_k
from hmem_core.options import ReadingOptions
from hmem_core.retrieval import selection, signals
from hmem_core.retrieval.signals import Query
from hmem_core.retrieval.understanding import signals as understanding
from hmem_core.segments.policy import settled
from hmem_core.segments.scoring import covered, node_scores, propagated
from hmem_core.state import View
from hmem_kernels import frozen
from hmem_kernels.select import select_nodes

__all__ = ["VARIED", "VIEWS", "Hit", "Query", "Ranker"]

FloatArray = npt.NDArray[np.float32]
Mask = npt.NDArray[np.uint8]


class Hit(NamedTuple):
    """Successive turns that a view found: one, or those of a segment that may be shown."""

    span: tuple[int, int]
    rows: tuple[int, ...]
    score: float
    signals: dict[str, float]
    """The parts that add up to the score."""
    repeats: tuple[int, ...] = ()
    """Rows that say the same and are not shown."""


class Ranker(NamedTuple):
    """A view: how it ranks, and what it needs for it."""

    rank: Callable[[View, Query, int, Mask, ReadingOptions], list[Hit]]
    """(memory, query, k, allowed turns, options) -> hits of k turns at most together, best first."""
    tree: bool = False
    events: bool = False
    columns: Callable[[View, Query, int, Mask, ReadingOptions], signals.Signals] | None = None
    """(memory, query, k, allowed turns, options) -> signals of all turns; for views of single turns."""
    positive: bool = False
    """Only turns that score more than 0 are found."""
    states: bool = False
    """Whether it compares token states."""
    understands: bool = False
    """Whether it asks whom a query names, and which times."""
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
    """Turns by all signals together: embeddings, words and late interaction, what neighbours in the session
    lend, above all a question the turn that answers it, how good the session is, who speaks and when, if the
    query says so, what is inherited from the segments of the tree, what their events gain them, and what
    facts say for and against them."""
    return _best(view, _fused(view, query, k, allowed, options), k, allowed, options)


def _fused(view: View, query: Query, k: int, allowed: Mask, options: ReadingOptions) -> signals.Signals:
    columns, cosines = _own(view, query, allowed, options)
    own = columns["dense"] + columns["lexical"]
    if query.states is not None:
        columns = signals.with_late(view, query.states, k, columns, allowed, options)
        own = np.add.reduce(list(columns.values()))
    columns["lateral"] = signals.lateral(view, own, options)
    columns["answer"] = signals.answers(view, own, options)
    columns["session"] = signals.session(view, own, allowed, options)
    speakers = [mention for mention in query.who if mention.kind == "speaker"]
    columns["speaker"] = np.float32(options.speaker) * understanding.speaker(view, speakers)
    columns["period"] = np.float32(options.period) * understanding.period(view, query.when)
    columns["tree"] = signals.inherited(view, own, allowed, options)
    columns["event"] = signals.anchored(view, query, own, cosines, allowed, options, options.event)
    if query.told is not None:
        columns["fact"] = query.told.column(view.rows, options.fact)
    return columns


def events(view: View, query: Query, k: int, allowed: Mask, options: ReadingOptions) -> list[Hit]:
    """Turns by embeddings and words, and as much again by their events (after HiGMem's events as anchors)."""
    return _best(view, _events(view, query, k, allowed, options), k, allowed, options)


def _events(view: View, query: Query, k: int, allowed: Mask, options: ReadingOptions) -> signals.Signals:
    columns, cosines = _own(view, query, allowed, options)
    own = columns["dense"] + columns["lexical"]
    columns["event"] = signals.anchored(view, query, own, cosines, allowed, options, 1.0)
    return columns


def _own(
    view: View, query: Query, allowed: Mask, options: ReadingOptions
) -> tuple[signals.Signals, FloatArray]:
    """What each turn scores by itself, and the cosines."""
    cosines = signals.cosines(view, query.vector)
    columns = {
        "dense": signals.standardised(cosines, allowed, options.dense),
        "lexical": signals.lexical(view, query.text, allowed, options),
    }
    return columns, cosines


def _best(view: View, columns: signals.Signals, k: int, allowed: Mask, options: ReadingOptions) -> list[Hit]:
    """What is shown of the turns whose scores are the sums of these columns."""
    total: FloatArray = np.add.reduce(list(columns.values()))
    ranked = best_rows(total, selection.pool(k), allowed)
    folds = [selection.Fold(row, ()) for row in ranked.tolist()]
    if options.fold:
        folds = selection.folded(view.text, view.narrow["speaker"], ranked)
    rows = np.array([fold.row for fold in folds], np.int64)
    chosen = selection.varied(view.vectors, rows, total[rows], k, options.diversity)
    return [
        _turn(row, {name: float(column[row]) for name, column in columns.items()}, repeats)
        for row, repeats in (folds[place] for place in chosen)
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
    leaves = signals.cosines(view, query.vector)
    local = node_scores(tree, leaves)
    options = settled(options, leaves, allowed)
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


def _dense(view: View, query: Query, k: int, allowed: Mask, options: ReadingOptions) -> signals.Signals:
    return {"dense": signals.cosines(view, query.vector)}


def _lexical(view: View, query: Query, k: int, allowed: Mask, options: ReadingOptions) -> signals.Signals:
    return {"lexical": signals.words(view, query.text, allowed, options)}


def _turn(row: int, parts: dict[str, float], repeats: tuple[int, ...] = ()) -> Hit:
    return Hit((row, row), (row,), sum(parts.values()), parts, repeats)


VIEWS = {
    "fused": Ranker(fused, tree=True, events=True, columns=_fused, states=True, understands=True, facts=True),
    "dense": Ranker(dense, columns=_dense),
    "lexical": Ranker(lexical, columns=_lexical, positive=True),
    "time": Ranker(time, tree=True),
    "events": Ranker(events, events=True, columns=_events),
}
"""Rankers by the name of their view."""

VARIED = frozenset({"fused", "events"})
"""Views that choose what they show for variety, too."""
