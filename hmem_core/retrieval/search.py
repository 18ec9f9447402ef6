"""Search: from a query to ranked evidence."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import msgspec
import numpy as np
import numpy.typing as npt

from hmem_core.effects import Embed, Program
from hmem_core.errors import InvalidInput
from hmem_core.messages import clean
from hmem_core.options import ReadingOptions
from hmem_core.records import Evidence
from hmem_core.retrieval import filters, reading
from hmem_core.retrieval.views import VIEWS, Query, Ranker
from hmem_core.state import View
from hmem_core.times import TimeLike

__all__ = ["Request", "check", "search"]

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
    reading: ReadingOptions | None = None


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


def search(
    request: Request, read: Callable[[Ranker], View], tz: dt.tzinfo, options: ReadingOptions
) -> Program[list[Evidence]]:
    """Find at most ``request.k`` turns, best first.

    Args:
        read: gives the view once the query is embedded; with what the ranker reads.
        options: what `request` does not say itself.
    """
    check(request)
    query = clean(request.query)
    vectors: FloatArray = yield Embed((query,))
    ranker = VIEWS[request.view]
    view = read(ranker)
    allowed = filters.mask(view, tz, between=request.between, where=request.where, as_of=request.as_of)
    chosen = request.reading or options
    found = []
    for hit in ranker.rank(view, Query(query, vectors[0]), request.k, allowed, chosen):
        piece = reading.evidence(view, hit, explain=request.explain)
        if piece is not None:
            found.append(piece)
    return found
