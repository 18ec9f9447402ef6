"""From many ranked turns to those that are shown: repetitions folded, variety, and how many are enough."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.blocks import Strings, rows_of
from hmem_core.retrieval.understanding import Kind

__all__ = ["MOST", "REACH", "Fold", "enough", "folded", "pool", "varied"]

FloatArray = npt.NDArray[np.float32]
RowArray = npt.NDArray[np.int64]

REACH = 32
"""How far down the ranking ``k="auto"`` looks for the level of what does not matter."""
MOST = 16
"""What ``k="auto"`` shows at most."""
_WORDS = re.compile(r"\w+")
_COMPARED = 512
"""Characters of a text that are compared to find repetitions; of longer ones, the length too."""


def pool(k: int) -> int:
    """How many candidates to rank, to show k of them."""
    return k + min(max(3 * k, 2 * REACH), 4 * REACH)


class Fold(NamedTuple):
    """A turn to show, and those worse ones that say the same."""

    row: int
    repeats: tuple[int, ...]


def folded(texts: Strings, speakers: npt.NDArray[np.int32], ranked: RowArray) -> list[Fold]:
    """`ranked` turns without those in which the same speaker says the same words as in a better one.

    Case, punctuation and spaces do not count. A text without words is never a repetition.
    """
    first: dict[tuple[int, int, str], list[int]] = {}
    for row in ranked.tolist():
        text = texts[row] or ""
        words = " ".join(_WORDS.findall(text[:_COMPARED].casefold())) or f"\0{row}"
        length = len(text) if len(text) > _COMPARED else 0
        first.setdefault((int(speakers[row]), length, words), []).append(row)
    return [Fold(rows[0], tuple(sorted(rows[1:]))) for rows in first.values()]


def varied(
    vectors: Sequence[FloatArray], rows: RowArray, scores: FloatArray, k: int, weight: float
) -> npt.NDArray[np.intp]:
    """Places of k of the `rows`, ascending, chosen by maximal marginal relevance.

    One after the other, the row of the highest score less `weight` times its greatest cosine with one that
    was chosen before. Ties go to the earlier place.

    Args:
        vectors: the vector column, in blocks.
        rows: best first.
        scores: of the rows.
    """
    if rows.size <= k or not weight:
        return np.arange(min(k, rows.size))
    found = rows_of(vectors, rows)
    likeness = np.zeros(rows.size, np.float32)
    worth = scores.astype(np.float32, copy=True)
    chosen: list[int] = []
    for _ in range(k):
        place = int(np.argmax(worth - np.float32(weight) * likeness))
        chosen.append(place)
        worth[place] = -np.inf
        np.maximum(likeness, found @ found[place], out=likeness)
    return np.sort(np.array(chosen, np.intp))


_SHARES: dict[Kind, float] = {"list": 0.75, "count": 0.75, "time": 1.25}
"""What several turns may answer part by part takes more of them, and a date fewer: the share is that many
times as large (ours)."""


def enough(scores: Sequence[float], share: float, wanted: Kind = "other") -> int:
    """How many of the best are worth showing: those that rise above the last by at least `share` of what
    the first does (ours).

    Args:
        scores: of `REACH` candidates, or of all there are; falling.
        share: 0 shows `MOST`, 1 the best alone.
        wanted: the kind of answer.
    """
    if len(scores) < 2:
        return len(scores)
    floor = scores[-1]
    least = floor + min(share * _SHARES.get(wanted, 1.0), 1.0) * (scores[0] - floor)
    return min(sum(score >= least for score in scores), MOST)
