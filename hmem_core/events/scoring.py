"""Scores of events, and what their turns gain by them (ours; events as anchors are HiGMem's)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.contexts import CONTEXT
from hmem_core.columns.scanning import all_scores
from hmem_core.options import ReadingOptions
from hmem_core.state import View
from hmem_kernels import frozen
from hmem_kernels.affiliation import gather_bits, lend_events, score_events
from hmem_kernels.select import add_standardised

__all__ = ["Asked", "event_scores", "lent"]

FloatArray = npt.NDArray[np.float32]
Mask = npt.NDArray[np.uint8]

DEPTH = 30.0
"""Odds this far apart can still be told from each other in a sum."""
TERMS = 64
"""Of a query's terms, so many count for coverage."""


class Asked(NamedTuple):
    """What a query says of the turns."""

    own: FloatArray
    """The score of every turn by itself, standardised; float32 of shape (turns,)."""
    cosines: FloatArray
    """The cosine of every turn with the query."""
    vector: FloatArray
    """The query's."""
    terms: npt.NDArray[np.uint64]
    """Hashes of the query's terms."""


def event_scores(
    view: View, asked: Asked, allowed: Mask, options: ReadingOptions
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Scores of all events, float32 of shape (events,), and which of them have an allowed turn.

    Args:
        view: with the norms of events.
    """
    links = view.events.links
    total, dots = np.zeros(links.events), np.zeros(links.events)
    count = np.zeros(links.events, np.int32)
    top = np.float32(asked.own.max(initial=0.0))
    score_events(
        frozen(links.turn),
        frozen(links.event),
        frozen(links.length),
        frozen(np.exp(np.maximum(asked.own - top, np.float32(-DEPTH)))),
        frozen(asked.cosines),
        frozen(allowed),
        frozen(view.narrow["previous"]),
        CONTEXT,
        total,
        dots,
        count,
    )
    shown = count > 0
    # The logarithm of the mean odds lies between the mean of the turns' scores and the best of them.
    means = total / np.maximum(count, 1)
    scores = (top + np.log(np.maximum(means, np.exp(-DEPTH)))).astype(np.float32)
    mask = frozen(shown.astype(np.uint8))
    if options.centroid:
        nearest = (dots / np.maximum(links.norm, 1e-9)).astype(np.float32)
        notes = view.events.descriptions
        if notes.subjects.size:
            described = all_scores(notes.vectors, asked.vector)[notes.vector_rows]
            nearest[notes.subjects] = np.maximum(nearest[notes.subjects], described)
        add_standardised(frozen(nearest), mask, float(options.centroid), scores)
    if options.coverage and asked.terms.size:
        covered = _coverage(view, asked, allowed)
        add_standardised(frozen(covered), mask, float(options.coverage), scores)
    return scores, shown


def _coverage(view: View, asked: Asked, allowed: Mask) -> FloatArray:
    """The sum of the idf of those terms of the query that some allowed turn of each event has."""
    links = view.events.links
    bits, idf = view.postings.having(asked.terms[:TERMS], view.rows)
    gathered = np.zeros(links.events, np.uint64)
    gather_bits(frozen(links.turn), frozen(links.event), frozen(bits), frozen(allowed), gathered)
    covered = np.zeros(links.events, np.float32)
    for place, weight in enumerate(idf):
        covered += weight * ((gathered >> np.uint64(place)) & np.uint64(1)).astype(np.float32)
    return covered


def lent(view: View, asked: Asked, allowed: Mask, options: ReadingOptions) -> FloatArray:
    """The score of the best event of every turn; its own of a turn that belongs to none."""
    scores, _ = event_scores(view, asked, allowed, options)
    links = view.events.links
    best = np.full(view.rows, -np.inf, np.float32)
    lend_events(frozen(links.turn), frozen(links.event), frozen(scores), best)
    return np.where(np.isneginf(best), asked.own, best)
