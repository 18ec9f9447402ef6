"""Search: from a query to ranked evidence."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hmem_core.columns.states import QueryStates, pack_query, words_of
from hmem_core.effects import Embed, Embedded, Program
from hmem_core.errors import InvalidInput
from hmem_core.messages import clean
from hmem_core.options import ReadingOptions
from hmem_core.records import Evidence
from hmem_core.retrieval import filters, reading, selection
from hmem_core.retrieval.factsearch import FactReader, lent_to, search_facts
from hmem_core.retrieval.request import Request
from hmem_core.retrieval.views import VIEWS, Query, Ranker
from hmem_core.state import View

__all__ = ["NAMES", "Request", "check", "embedded", "search"]

FloatArray = npt.NDArray[np.float32]

NAMES = tuple(sorted([*VIEWS, "facts"]))
"""Names of the views: those of turns, and that of facts."""


def check(request: Request) -> None:
    """Refuse a request that has no answer.

    Raises:
        InvalidInput: an empty query, a `k` that is neither a positive integer nor "auto", or an unknown view.
    """
    if not isinstance(request.query, str) or not request.query.strip():
        raise InvalidInput(f"query={request.query!r} has no text; ask in words, or list turns with turns()")
    number = isinstance(request.k, int) and not isinstance(request.k, bool)
    if request.k != "auto" and not (number and request.k >= 1):
        raise InvalidInput(f"k={request.k!r} must be a whole number from 1, or 'auto'")
    if request.view not in NAMES:
        raise InvalidInput(f"view={request.view!r} is not known; the views are {', '.join(NAMES)}")


def search(
    request: Request,
    read: Callable[[Ranker], View],
    facts: FactReader,
    tz: dt.tzinfo,
    options: ReadingOptions,
    late_interaction: bool = False,
) -> Program[list[Evidence]]:
    """Find at most ``request.k`` turns, or facts, best first; with ``k="auto"`` as many as stand out.

    Args:
        read: gives the view once the query is embedded; with what the ranker reads.
        facts: how the fact graph is read.
        options: what `request` does not say itself.
        late_interaction: compare token states, where the view and the options do.
    """
    check(request)
    query = clean(request.query)
    chosen = request.reading or options
    if request.view == "facts":
        asked = yield from embedded(query, VIEWS["dense"], chosen, late_interaction=False)
        return search_facts(request, asked.vector, facts, tz, chosen)
    ranker = VIEWS[request.view]
    asked = yield from embedded(query, ranker, chosen, late_interaction)
    if ranker.facts and chosen.fact:
        asked = asked._replace(told=lent_to(request, asked.vector, facts, tz, chosen))
    view = read(ranker)
    allowed = filters.mask(view, tz, between=request.between, where=request.where, as_of=request.as_of)
    k = selection.REACH if request.k == "auto" else request.k
    hits = ranker.rank(view, asked, k, allowed, chosen)
    if request.k == "auto":
        hits = hits[: selection.enough([hit.score for hit in hits], chosen.enough)]
    found = []
    for hit in hits:
        piece = reading.evidence(view, hit, explain=request.explain)
        if piece is not None:
            found.append(piece)
    return found


def embedded(text: str, ranker: Ranker, options: ReadingOptions, late_interaction: bool) -> Program[Query]:
    """The query as `ranker` needs it."""
    states = late_interaction and ranker.states and options.late > 0
    return _query(text, (yield Embed((text,), states)))


def _query(text: str, reply: FloatArray | Embedded) -> Query:
    """The query with what the encoder replied for it."""
    if not isinstance(reply, Embedded):
        return Query(text, reply[0])
    states: QueryStates | None = None
    if reply.states is not None:
        states = pack_query(reply.states[0].vectors, words_of(reply.vectors.shape[1]))
    return Query(text, reply.vectors[0], states)
