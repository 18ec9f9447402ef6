"""Search: from a query to ranked evidence."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import NamedTuple

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
from hmem_core.retrieval.reranking import best_hits
from hmem_core.retrieval.understanding import kind, roster_of, understand
from hmem_core.retrieval.views import VIEWS, Query, Ranker
from hmem_core.state import View
from hmem_core.times import micros

__all__ = ["NAMES", "Reader", "Request", "check", "embedded", "search", "understood"]

FloatArray = npt.NDArray[np.float32]

NAMES = tuple(sorted([*VIEWS, "facts"]))
"""Names of the views: those of turns, and that of facts."""


class Reader(NamedTuple):
    """How a memory is read."""

    view: Callable[[Ranker], View]
    """Gives the memory as it is now, with what the ranker reads."""
    tz: dt.tzinfo
    options: ReadingOptions
    """What a request does not say itself."""
    late_interaction: bool
    """Compare token states, where the view and the options do."""
    reranks: bool
    """Whether there is a reranker."""
    clock: Callable[[], int]
    """Gives UTC microseconds: what "last week" counts from, if the request does not say."""
    facts: FactReader


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


def search(request: Request, reader: Reader) -> Program[list[Evidence]]:
    """Find at most ``request.k`` turns, or facts, best first; with ``k="auto"`` as many as stand out."""
    check(request)
    chosen = request.reading or reader.options
    if request.view == "facts":
        asked = yield from embedded(clean(request.query), VIEWS["dense"], chosen, reader)
        return search_facts(request, asked.vector, reader.facts, reader.tz, chosen)
    ranker = VIEWS[request.view]
    asked = yield from embedded(clean(request.query), ranker, chosen, reader)
    if ranker.facts and chosen.fact:
        asked = asked._replace(told=lent_to(request, asked.vector, reader.facts, reader.tz, chosen))
    view = reader.view(ranker)
    asked = understood(asked, request, view, ranker, reader)
    allowed = filters.mask(view, reader.tz, between=request.between, where=request.where, as_of=request.as_of)
    k = selection.REACH if request.k == "auto" else request.k
    hits = yield from best_hits(view, asked, request.view, k, allowed, chosen, reranks=reader.reranks)
    if request.k == "auto":
        hits = hits[: selection.enough([hit.score for hit in hits], chosen.enough, kind(asked.text))]
    found = []
    for hit in hits:
        piece = reading.evidence(view, hit, explain=request.explain)
        if piece is not None:
            found.append(piece)
    return found


def embedded(text: str, ranker: Ranker, options: ReadingOptions, reader: Reader) -> Program[Query]:
    """The query as `ranker` needs it."""
    states = reader.late_interaction and ranker.states and options.late > 0
    return _query(text, (yield Embed((text,), states)))


def understood(query: Query, request: Request, view: View, ranker: Ranker, reader: Reader) -> Query:
    """The query with whom it names and which times, where `ranker` asks for that.

    Raises:
        InvalidInput: ``request.now`` is no time.
    """
    now = reader.clock() if request.now is None else micros(request.now, reader.tz, "now")
    if not ranker.understands:
        return query
    found = understand(query.text, now, reader.tz, roster_of(view), language=view.analyzer.language)
    return query._replace(who=found.who, when=found.when)


def _query(text: str, reply: FloatArray | Embedded) -> Query:
    """The query with what the encoder replied for it."""
    if not isinstance(reply, Embedded):
        return Query(text, reply[0])
    states: QueryStates | None = None
    if reply.states is not None:
        states = pack_query(reply.states[0].vectors, words_of(reply.vectors.shape[1]))
    return Query(text, reply.vectors[0], states)
