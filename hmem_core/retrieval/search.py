"""Search: from a query to ranked evidence."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hmem_core.effects import Embed, Program
from hmem_core.errors import InvalidInput
from hmem_core.messages import clean
from hmem_core.options import ReadingOptions
from hmem_core.records import Evidence
from hmem_core.retrieval import filters, reading
from hmem_core.retrieval.factsearch import FactReader, lent_to, search_facts
from hmem_core.retrieval.request import Request
from hmem_core.retrieval.views import VIEWS, Query
from hmem_core.state import View

__all__ = ["NAMES", "Request", "check", "search"]

FloatArray = npt.NDArray[np.float32]

NAMES = tuple(sorted([*VIEWS, "facts"]))
"""Names of the views: those of turns, and that of facts."""


def check(request: Request) -> None:
    """Refuse a request that has no answer.

    Raises:
        InvalidInput: an empty query, a `k` that is not a positive integer, or an unknown view.
    """
    if not isinstance(request.query, str) or not request.query.strip():
        raise InvalidInput(f"query={request.query!r} has no text; ask in words, or list turns with turns()")
    if isinstance(request.k, bool) or not isinstance(request.k, int) or request.k < 1:
        raise InvalidInput(f"k={request.k!r} must be a whole number from 1")
    if request.view not in NAMES:
        raise InvalidInput(f"view={request.view!r} is not known; the views are {', '.join(NAMES)}")


def search(
    request: Request,
    read: Callable[[bool], View],
    facts: FactReader,
    tz: dt.tzinfo,
    options: ReadingOptions,
) -> Program[list[Evidence]]:
    """Find at most ``request.k`` turns, or facts, best first.

    Args:
        read: gives the view once the query is embedded; with the segment tree if its argument is true.
        facts: how the fact graph is read.
        options: what `request` does not say itself.
    """
    check(request)
    query = clean(request.query)
    vectors: FloatArray = yield Embed((query,))
    chosen = request.reading or options
    if request.view == "facts":
        return search_facts(request, vectors[0], facts, tz, chosen.past)
    ranker = VIEWS[request.view]
    told = lent_to(request, vectors[0], facts, tz, chosen.past) if ranker.facts and chosen.fact else None
    view = read(ranker.tree)
    allowed = filters.mask(view, tz, between=request.between, where=request.where, as_of=request.as_of)
    found = []
    for hit in ranker.rank(view, Query(query, vectors[0], told), request.k, allowed, chosen):
        piece = reading.evidence(view, hit, explain=request.explain)
        if piece is not None:
            found.append(piece)
    return found
