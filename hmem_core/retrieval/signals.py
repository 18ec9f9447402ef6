"""Signals: what each channel says of every turn, on one scale.

A signal is a column of scores, float32 of shape (rows,). Dense and lexical scores are standardised over the
turns that the filters allow, so that their weights mean the same in every memory; what a turn lends its
neighbours and what it inherits from the tree is computed from them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.scanning import all_scores
from hmem_core.columns.states import QueryStates
from hmem_core.events.scoring import Asked, lent
from hmem_core.options import ReadingOptions
from hmem_core.retrieval import late
from hmem_core.retrieval.told import Lent
from hmem_core.retrieval.understanding import Mention, When
from hmem_core.segments.policy import settled
from hmem_core.segments.scoring import covered, node_scores, propagated
from hmem_core.state import View
from hmem_kernels import frozen
from hmem_kernels.propagate import propagate_along
from hmem_kernels.select import add_standardised

__all__ = [
    "Query",
    "Signals",
    "anchored",
    "answers",
    "cosines",
    "inherited",
    "lateral",
    "lexical",
    "session",
    "standardised",
    "with_late",
    "words",
]

FloatArray = npt.NDArray[np.float32]
Mask = npt.NDArray[np.uint8]
Signals = dict[str, FloatArray]
"""Columns of scores by the name of their signal; a turn's score is their sum."""


class Query(NamedTuple):
    """What is asked, its unit vector, the states of its tokens for late interaction, and what it names."""

    text: str
    vector: FloatArray
    states: QueryStates | None = None
    who: tuple[Mention, ...] = ()
    """Whom it names."""
    when: tuple[When, ...] = ()
    """Which times."""
    told: Lent | None = None
    """What facts say for turns, and against them."""


_DEPTH = 30.0
"""Odds this far apart can still be told from each other in a prefix sum."""

_NO_HEIGHTS = frozen(np.empty(0, np.int32))


def standardised(scores: FloatArray, allowed: Mask, weight: float) -> FloatArray:
    """`weight` times the distance from the mean in standard deviations; 0 for what is not allowed."""
    total = np.zeros_like(scores)
    add_standardised(frozen(scores), frozen(allowed), float(weight), total)
    return total


def cosines(view: View, query: FloatArray) -> FloatArray:
    """The cosine of every turn with the query."""
    return all_scores(view.vectors, query)


def words(view: View, query: str, allowed: Mask, options: ReadingOptions) -> FloatArray:
    """BM25 of every allowed turn."""
    narrow = view.narrow
    hashes = view.analyzer.query(query)
    return view.postings.bm25(hashes, narrow["length"], narrow["live"], allowed, k1=options.k1, b=options.b)


def lexical(view: View, query: str, allowed: Mask, options: ReadingOptions) -> FloatArray:
    """The words' part."""
    return standardised(words(view, query, allowed, options), allowed, options.lexical)


def with_late(
    view: View, query: QueryStates, k: int, columns: Signals, allowed: Mask, options: ReadingOptions
) -> Signals:
    """The `columns` of dense and lexical parts with late interaction among them, on the scale they had alone.

    Candidates are the best by these parts and what neighbours lend of them.
    """
    own = columns["dense"] + columns["lexical"]
    found = late.standard_scores(
        view.states,
        query,
        k,
        own + lateral(view, own, options),
        columns["dense"],
        allowed,
        options.candidates,
    )
    if found is None:
        return columns
    rest = np.float32(1 - options.late)
    weight = np.float32(options.late * (options.dense + options.lexical))
    return {**{name: rest * column for name, column in columns.items()}, "late": weight * found}


def lateral(view: View, scores: FloatArray, options: ReadingOptions) -> FloatArray:
    """What the turns before and after each in its session lend it of their `scores` (ours)."""
    lent = np.zeros((1, view.rows), np.float32)
    weights = frozen(np.array(options.lateral, np.float32))
    for link in (view.narrow["previous"], view.next):
        propagate_along(frozen(scores[np.newaxis]), frozen(link), _NO_HEIGHTS, weights, lent)
    result: FloatArray = lent[0]
    return result


def answers(view: View, scores: FloatArray, options: ReadingOptions) -> FloatArray:
    """What a turn that answers a question gets of the question's score: words that are asked about stand in
    the question, and what is wanted in the turn after it (ours)."""
    narrow = view.narrow
    before = narrow["previous"]
    asked = (before >= 0) & (narrow["asks"][before] == 1)
    return np.where(asked, np.float32(options.answer) * scores[before], np.float32(0))


def session(view: View, scores: FloatArray, allowed: Mask, options: ReadingOptions) -> FloatArray:
    """What a turn gets of the best score in its session (ours). A turn without one is a session by itself."""
    found = scores.copy()
    codes = view.narrow["session"]
    within = np.flatnonzero((codes >= 0) & (allowed == 1))
    if within.size:
        best = np.full(int(codes.max()) + 1, -np.inf, np.float32)
        np.maximum.at(best, codes[within], scores[within])
        found[within] = best[codes[within]]
    found *= np.float32(options.session)
    return found


def inherited(view: View, scores: FloatArray, allowed: Mask, options: ReadingOptions) -> FloatArray:
    """What each turn inherits of `scores` from the segments above it."""
    if not options.tree or not view.rows:
        return np.zeros_like(scores)
    options = settled(options, scores, allowed)
    gained = propagated(view.tree, _of_segments(view, scores, allowed), view.narrow["live"], options)
    return np.float32(options.tree) * gained[view.tree.leaf]


def _of_segments(view: View, scores: FloatArray, allowed: Mask) -> FloatArray:
    """The logarithm of the mean odds of a segment's allowed turns, their scores taken as log-odds (ours).

    It lies between their mean and their best, so that one striking turn marks its segment however many
    others there are. Scores count as no further than `_DEPTH` below the best of all.
    """
    top = scores.max()  # of an allowed turn: these have a mean of 0, and the others are 0
    odds = np.exp(np.maximum(scores - top, -_DEPTH)) * allowed
    counts = np.maximum(covered(view.tree, allowed), 1).astype(np.float32)
    means = node_scores(view.tree, odds, norm=counts)
    found: FloatArray = top + np.log(np.maximum(means, np.float32(np.exp(-_DEPTH))))
    return found


def anchored(
    view: View,
    query: Query,
    scores: FloatArray,
    cosines: FloatArray,
    allowed: Mask,
    options: ReadingOptions,
    weight: float,
) -> FloatArray:
    """What each turn gains by the best of its events, whose turns have these `scores`."""
    if not weight or not view.rows:
        return np.zeros_like(scores)
    asked = Asked(scores, cosines, query.vector, view.analyzer.query(query.text))
    return np.float32(weight) * lent(view, asked, allowed, options)
