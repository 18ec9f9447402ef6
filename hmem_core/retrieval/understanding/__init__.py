"""Understanding a query without a model: whom it names, which times, and what kind of answer it wants.

Everything here is a function of the text, the clock and the names that are known. Nothing is filtered by it
unasked: it becomes signals (`signals`), and `When.between` is there for those who want a filter.
"""

from __future__ import annotations

import datetime as dt

import msgspec

from hmem_core.retrieval.understanding.kind import Kind, kind
from hmem_core.retrieval.understanding.when import Order, When, prior, resolve
from hmem_core.retrieval.understanding.who import Mention, Roster, roster_of
from hmem_core.times import TimeLike

__all__ = [
    "Kind",
    "Mention",
    "Order",
    "Roster",
    "Understanding",
    "When",
    "kind",
    "prior",
    "resolve",
    "roster_of",
    "understand",
]

NOBODY = Roster(())


class Understanding(msgspec.Struct, frozen=True, kw_only=True):
    """What a query says of what it wants."""

    who: tuple[Mention, ...] = ()
    when: tuple[When, ...] = ()
    kind: Kind = "other"


def understand(
    query: str,
    now: TimeLike | int,
    tz: dt.tzinfo = dt.UTC,
    names: Roster = NOBODY,
    *,
    order: Order = "mdy",
    language: str = "en",
) -> Understanding:
    """Who, when and what kind. Only the first `words.LIMIT` characters of `query` are read.

    Args:
        now: what "last week" counts from; see `resolve`.
        names: everyone who is known; see `roster_of`.
        order: what 03/04/2023 means.
        language: of the memory; code or stemmer's name.

    Raises:
        InvalidInput: `now` is no time, or `order` unknown.
    """
    return Understanding(
        who=names.find(query),
        when=resolve(query, now, tz, order=order, language=language, names=names.words),
        kind=kind(query),
    )
