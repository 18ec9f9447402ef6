"""Late interaction: turns by how well single tokens of the query are met in them.

The best match of each token of the query in each candidate (MaxSim, ColBERT, arXiv 2004.12832) counts by
how far it surpasses what that token finds in a common turn, and the more, the rarer such matches are (ours):
a token that every turn answers, such as a comma or "what", says nothing, and a name says much. What is common
is seen in a sample of the turns that the filters allow, so that scores mean the same in every memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.scanning import best_rows
from hmem_core.columns.states import QueryStates, StateView

__all__ = ["SAMPLE", "standard_scores"]

FloatArray = npt.NDArray[np.float32]
Mask = npt.NDArray[np.uint8]
RowArray = npt.NDArray[np.int64]

SAMPLE = 256
"""Turns that say what is common."""
_FEWEST = 2
"""Fewer turns of the sample with states do not say what is common."""
_EACH = 2
"""Candidates for each turn wanted, at least."""


class _Fit(NamedTuple):
    """A line through points."""

    slope: float
    at_zero: float

    @classmethod
    def of(cls, x: FloatArray, y: FloatArray) -> _Fit:
        """The line of least squares; a level one where all x are equal."""
        spread = float(np.var(x, dtype=np.float64))
        middle = float(np.mean(x, dtype=np.float64))
        slope = float(np.mean((x - middle) * y, dtype=np.float64)) / spread if spread > 0 else 0.0
        return cls(slope, float(np.mean(y, dtype=np.float64)) - slope * middle)


def standard_scores(
    states: StateView,
    query: QueryStates,
    k: int,
    others: FloatArray,
    dense: FloatArray,
    allowed: Mask,
    candidates: int,
) -> FloatArray | None:
    """How well each turn answers the query token by token, in deviations from a common turn.

    Turns that are no candidates, and candidates without states, get what their cosine lets expect; the former
    no more than the lowest of the candidates, so that none of them comes to stand above a candidate.

    Args:
        k: how many turns are wanted.
        others: scores of all turns by which candidates are chosen, float32 of shape (rows,).
        dense: from which late scores are guessed where there are none, float32 of shape (rows,).
        allowed: turns that the filters allow.
        candidates: how many, at least.

    Returns:
        float32 of shape (rows,), 0 for turns that are not allowed; None if the memory has too few states to
        say anything.
    """
    rows = np.flatnonzero(allowed)
    if not rows.size or not query.scale.size:
        return None
    sample = rows if rows.size <= SAMPLE else rows[np.arange(SAMPLE) * rows.size // SAMPLE]
    common = states.best(query, sample)
    seen = ~np.isnan(common[0])
    if np.count_nonzero(seen) < _FEWEST:
        return None
    sample, common = sample[seen], common[:, seen]
    chosen = best_rows(others, max(candidates, _EACH * k), allowed)
    found = states.best(query, chosen)
    known = ~np.isnan(found[0])
    found = found[:, known]

    mean = common.mean(axis=1)
    spread = common.std(axis=1)
    top = np.maximum(common.max(axis=1), found.max(axis=1, initial=-1.0))
    rarity = (top - mean) / np.where(spread > 0, spread, np.inf)
    of_common = rarity @ np.maximum(common - mean[:, None], 0)
    centre, deviation = of_common.mean(), of_common.std()
    if deviation == 0:
        return None
    of_found = (rarity @ np.maximum(found - mean[:, None], 0) - centre) / deviation

    fit = _Fit.of(dense[sample], (of_common - centre) / deviation)
    guessed = (fit.slope * dense + fit.at_zero).astype(np.float32)
    scores = guessed * allowed
    of_chosen = guessed[chosen]
    of_chosen[known] = of_found
    rest = allowed.astype(np.bool_)
    rest[chosen] = False
    scores[rest] = np.minimum(scores[rest], of_chosen.min(initial=np.inf))
    scores[chosen] = of_chosen
    return scores
