"""Search: from a query to ranked evidence.

A *view* ranks turns by scores of its own; `VIEWS` is where views are plugged in.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from hmem_core.columns.scanning import top_k
from hmem_core.effects import Embed, Program
from hmem_core.errors import InvalidInput
from hmem_core.messages import clean
from hmem_core.records import Evidence
from hmem_core.retrieval import filters, reading
from hmem_core.state import View
from hmem_core.times import TimeLike

__all__ = ["VIEWS", "Hit", "Request", "check", "search"]

FloatArray = npt.NDArray[np.float32]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for."""

    query: str
    k: int = 8
    view: str = "fused"
    between: tuple[TimeLike | None, TimeLike | None] | None = None
    where: filters.Where | None = None
    as_of: int | TimeLike | None = None
    explain: bool = False


class Hit(NamedTuple):
    """A turn that a view found: its row, its score, and the parts that add up to it."""

    row: int
    score: float
    signals: dict[str, float]


Ranker = Callable[[View, FloatArray, int, filters.Mask], list[Hit]]
"""(view of the memory, unit query vector, k, mask of allowed rows) -> at most k hits, best first."""


def dense(view: View, query: FloatArray, k: int, allowed: filters.Mask) -> list[Hit]:
    """Turns by the cosine of their embedding with the query's. Ties: the earlier turn first."""
    scores, rows = top_k(view.vectors, query, k, allowed)
    return [
        Hit(int(row), float(score), {"dense": float(score)}) for score, row in zip(scores, rows, strict=True)
    ]


VIEWS: dict[str, Ranker] = {"fused": dense, "dense": dense}
"""Rankers by the name of their view."""


def check(request: Request) -> None:
    """Refuse a request that has no answer.

    Raises:
        InvalidInput: an empty query, a `k` that is not a positive integer, or an unknown view.
    """
    if not isinstance(request.query, str) or not request.query.strip():
        raise InvalidInput(f"query={request.query!r} has no text; ask in words, or list turns with turns()")
    if isinstance(request.k, bool) or not isinstance(request.k, int) or request.k < 1:
        raise InvalidInput(f"k={request.k!r} must be a whole number from 1")
    if request.view not in VIEWS:
        raise InvalidInput(f"view={request.view!r} is not known; the views are {', '.join(sorted(VIEWS))}")


def search(request: Request, read: Callable[[], View], tz: dt.tzinfo) -> Program[list[Evidence]]:
    """Find at most ``request.k`` turns, best first. `read` gives the view once the query is embedded."""
    check(request)
    vectors: FloatArray = yield Embed((clean(request.query),))
    view = read()
    allowed = filters.mask(view, tz, between=request.between, where=request.where, as_of=request.as_of)
    found = []
    for hit in VIEWS[request.view](view, vectors[0], request.k, allowed):
        piece = reading.evidence(view, hit.row, hit.score, hit.signals if request.explain else None)
        if piece is not None:
            found.append(piece)
    return found
