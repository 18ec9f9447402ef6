"""Search: from a query to ranked evidence."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import msgspec
import numpy as np
import numpy.typing as npt

from hmem_core.columns.states import QueryStates, pack_query, words_of
from hmem_core.effects import Embed, Embedded, Program
from hmem_core.errors import InvalidInput
from hmem_core.messages import clean
from hmem_core.options import ReadingOptions
from hmem_core.records import Evidence
from hmem_core.retrieval import filters, reading
from hmem_core.retrieval.views import VIEWS, Query
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
    request: Request,
    read: Callable[[bool], View],
    tz: dt.tzinfo,
    options: ReadingOptions,
    late_interaction: bool = False,
) -> Program[list[Evidence]]:
    """Find at most ``request.k`` turns, best first.

    Args:
        read: gives the view once the query is embedded; with the segment tree if its argument is true.
        options: what `request` does not say itself.
        late_interaction: compare token states, where the view and the options do.
    """
    check(request)
    query = clean(request.query)
    ranker = VIEWS[request.view]
    chosen = request.reading or options
    states = late_interaction and ranker.states and chosen.late > 0
    asked = _query(query, (yield Embed((query,), states)))
    view = read(ranker.tree)
    allowed = filters.mask(view, tz, between=request.between, where=request.where, as_of=request.as_of)
    found = []
    for hit in ranker.rank(view, asked, request.k, allowed, chosen):
        piece = reading.evidence(view, hit, explain=request.explain)
        if piece is not None:
            found.append(piece)
    return found


def _query(text: str, reply: FloatArray | Embedded) -> Query:
    """The query with what the encoder replied for it."""
    if not isinstance(reply, Embedded):
        return Query(text, reply[0])
    states: QueryStates | None = None
    if reply.states is not None:
        states = pack_query(reply.states[0].vectors, words_of(reply.vectors.shape[1]))
    return Query(text, reply.vectors[0], states)
