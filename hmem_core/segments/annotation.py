"""What stands for a segment where no LLM has summarised it: a few of its own turns.

They are chosen when someone reads the segment, and nothing of them is stored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hmem_core.columns.blocks import rows_of

__all__ = ["representatives", "shortened"]

FloatArray = npt.NDArray[np.float32]
RowArray = npt.NDArray[np.int64]

BALANCE = 0.7
"""λ of MMR: what being near the centroid weighs; being unlike what was chosen weighs the rest (ours)."""
SHORTLIST = 32
"""MMR chooses among so many turns, those nearest the centroid."""
HALF = 8.0
"""A turn of so many terms counts half as much as one without end (ours): greetings and the like tend to lie
near any centroid, but stand for nothing."""
SAMPLE = 4096
"""Of a larger segment, so many turns at even distances are looked at: a text never costs more than that."""


def representatives(
    vectors: Sequence[FloatArray], lengths: FloatArray, rows: RowArray, count: int
) -> RowArray:
    """At most `count` of the `rows` that stand for all of them, ascending.

    By maximal marginal relevance: one after the other, the row that is nearest to the centroid of `rows`,
    says something, and is least like those chosen before it. Ties go to the earlier row.

    Args:
        vectors: the vector column, in blocks.
        lengths: the terms of every turn.
        rows: ascending.
    """
    if rows.size > SAMPLE:
        rows = rows[:: -(-rows.size // SAMPLE)]
    if rows.size <= count or not count:
        return rows[:count]
    sample = rows_of(vectors, rows)
    centroid = sample.sum(axis=0)
    near = sample @ (centroid / max(float(np.linalg.norm(centroid)), 1e-9))
    near *= lengths[rows] / (lengths[rows] + HALF)
    short = np.sort(np.argsort(-near, kind="stable")[: max(SHORTLIST, count)])
    worth, among = BALANCE * near[short], sample[short]
    chosen = [int(np.argmax(worth))]
    likeness = among @ among[chosen[0]]
    while len(chosen) < count:
        left = worth - (1 - BALANCE) * likeness
        left[chosen] = -np.inf
        chosen.append(int(np.argmax(left)))
        likeness = np.maximum(likeness, among @ among[chosen[-1]])
    found: RowArray = rows[short[np.sort(chosen)]]
    return found


def shortened(text: str, longest: int) -> str:
    """`text` on one line, cut to `longest` characters, between words if one ends in the last third."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    head = line[: longest - 1]
    space = head.rfind(" ", 2 * longest // 3)
    return (head if space < 0 else head[:space]).rstrip(" ,;:.-–—") + "…"
