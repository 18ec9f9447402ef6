"""Reranking: the best turns of a view, read once more beside the query by a model."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from hmem_core.effects import Program, Rank
from hmem_core.options import ReadingOptions
from hmem_core.records import index_text
from hmem_core.retrieval import selection
from hmem_core.retrieval.tokens import estimate_tokens
from hmem_core.retrieval.views import VARIED, VIEWS, Hit, Query
from hmem_core.state import View

__all__ = ["LONGEST", "best_hits"]

FloatArray = npt.NDArray[np.float32]
Mask = npt.NDArray[np.uint8]

LONGEST = 2048
"""Characters of a query or a turn that a reranker is shown at most: about what fits the window of one."""


def best_hits(
    view: View, query: Query, name: str, k: int, allowed: Mask, options: ReadingOptions, *, reranks: bool
) -> Program[list[Hit]]:
    """What the view called `name` finds, best first, put in order by a reranker if there is one (`reranks`).

    Candidates are the best of the view before any choice for variety, which is made afterwards. Only views
    of single turns are reranked.
    """
    ranker = VIEWS[name]
    off = not (reranks and options.rerank and options.reranked and ranker.columns)
    if off:
        return ranker.rank(view, query, k, allowed, options)
    varied = name in VARIED
    plain = msgspec.structs.replace(options, diversity=0.0)
    reach = max(selection.pool(k) if varied else k, options.rerank)
    hits = yield from _reranked(view, query.text, ranker.rank(view, query, reach, allowed, plain), options)
    if not varied:
        return hits[:k]
    rows = np.array([hit.rows[0] for hit in hits], np.int64)
    scores = np.array([hit.score for hit in hits], np.float32)
    return [hits[place] for place in selection.varied(view.vectors, rows, scores, k, options.diversity)]


def _reranked(view: View, query: str, hits: list[Hit], options: ReadingOptions) -> Program[list[Hit]]:
    """`hits` with the signal ``reranker`` added to those it read, best first.

    The signal is 0 for the worst of them, and more for the others: so none falls below a turn that was not
    read, and these keep their order (ours).
    """
    texts = _shown(view, query, hits, options)
    if len(texts) < 2:  # nothing to put in order
        return hits
    own = np.array([hit.score for hit in hits[: len(texts)]])
    found = np.asarray((yield Rank(query[:LONGEST], tuple(texts))), np.float64)
    spread = found.std()
    if not spread:
        return hits
    # In deviations of the scores in the view, so that the weight means the same in all of them.
    gains = options.reranked * (own.std() or 1.0) * (found - found.min()) / spread
    read = [_gained(hit, gain) for hit, gain in zip(hits, gains.tolist(), strict=False)]
    read.sort(key=lambda hit: -hit.score)  # ties keep their order
    return read + hits[len(read) :]


def _shown(view: View, query: str, hits: list[Hit], options: ReadingOptions) -> list[str]:
    """What is read of the best of `hits`, as far as the budget goes."""
    of_query = estimate_tokens(query[:LONGEST])
    left = options.rerank_tokens
    texts: list[str] = []
    for hit in hits[: options.rerank]:
        (row,) = hit.rows
        speaker = view.speakers.text(int(view.narrow["speaker"][row]))
        text = index_text(view.text[row] or "", speaker)[:LONGEST]
        left -= of_query + estimate_tokens(text)
        if left < 0:
            break
        texts.append(text)
    return texts


def _gained(hit: Hit, gain: float) -> Hit:
    parts = {**hit.signals, "reranker": gain}
    return hit._replace(score=sum(parts.values()), signals=parts)
