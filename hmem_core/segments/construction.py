"""Where turns are attached to the tree: the cosine mode of SegTreeMem."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hmem_core.columns.tree import Decided
from hmem_core.options import SegmentOptions
from hmem_core.state import State
from hmem_kernels.frontier import Rule, auto_rule, fixed_rule

__all__ = ["decide", "rule"]


def rule(options: SegmentOptions) -> Rule:
    """The kernels' form of the options."""
    best = options.choose == "best"
    if options.tau == "auto":
        return auto_rule(options.spread, options.fall, options.low, options.high, best=best)
    return fixed_rule(options.tau, best=best)


def decide(
    state: State, vectors: npt.NDArray[np.float32], options: SegmentOptions, given: Sequence[int] = ()
) -> Decided:
    """The heights at which these turns, float32 of shape (turns, d), are attached one after the other.

    The first of them have the heights that are `given`.
    """
    return state.tree.decide(np.ascontiguousarray(vectors), rule(options), given)
