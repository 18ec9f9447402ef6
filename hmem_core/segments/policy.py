"""Which way relevance moves through the tree, chosen for each query (ours; the paper has static policies)."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from hmem_core.columns.scanning import best_rows
from hmem_core.options import ReadingOptions

__all__ = ["settled"]

AMONG = 8
"""The best turns by themselves, which are looked at."""
NEAR = 4
"""Turns that are no further apart count as lying together."""
PAIRS = 2
"""So many pairs that lie together make it likely that one stretch of the conversation is asked about."""


def settled(
    options: ReadingOptions, scores: npt.NDArray[np.float32], allowed: npt.NDArray[np.uint8]
) -> ReadingOptions:
    """`options` with a policy in place of ``"auto"``.

    If the best turns lie together, their segments are what is asked for, and what they score goes down to the
    other turns in them. If they lie scattered, segments would only bring in strangers, and nothing moves.

    Args:
        scores: of the turns by themselves, float32 of shape (rows,).
        allowed: turns that the filters allow.
    """
    if options.policy != "auto":
        return options
    rows = np.sort(best_rows(scores, AMONG, allowed))
    apart = rows[np.newaxis] - rows[:, np.newaxis]
    together = int(np.count_nonzero((apart > 0) & (apart <= NEAR)))
    return msgspec.structs.replace(options, policy="top-down" if together >= PAIRS else "none")
