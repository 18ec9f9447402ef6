"""Signals from what was understood: columns of scores over a view's rows, as those of `retrieval.signals`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from hmem_core.retrieval.understanding.when import When, prior
from hmem_core.retrieval.understanding.who import Mention
from hmem_core.state import View

__all__ = ["period", "speaker"]

FloatArray = npt.NDArray[np.float32]


def speaker(view: View, who: Iterable[Mention]) -> FloatArray:
    """float32 of shape (rows,): 1 for the turns of a speaker, or of a role, that is named.

    Turns that only mention a name are found by its words. Forgotten turns have no speaker and get 0.
    """
    named: dict[str, set[int]] = {"speaker": set(), "role": set(), "subject": set()}
    for mention in who:
        named[mention.kind].add(mention.code)
    spoke = np.zeros(view.rows, np.float32)
    for column in ("speaker", "role"):
        if named[column]:
            codes = view.narrow[column]
            wanted = np.zeros(max(int(codes.max(initial=-1)), *named[column]) + 2, np.float32)
            wanted[list(named[column])] = 1
            spoke = np.maximum(spoke, wanted[codes])  # the code -1, nobody, picks the last, which is 0
    return spoke


def period(view: View, when: Iterable[When]) -> FloatArray:
    """float32 of shape (rows,): how near the turns' own times are to the times named, see `when.prior`."""
    near: FloatArray = prior(when, view.narrow["at"]) * view.narrow["live"]
    return near
