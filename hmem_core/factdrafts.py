"""From what a caller says of a fact to a draft that was checked."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from hmem_core import times
from hmem_core.errors import InvalidInput
from hmem_core.journal.entries import OPEN_END, OPEN_START
from hmem_core.messages import clean
from hmem_core.records import Added, FactDraft, Rewrite, Turn, Unit
from hmem_core.times import TimeLike

__all__ = ["Assertion", "name", "read_fact", "read_facts"]

_LONGEST = 4096
"""Characters of a name."""


class Assertion(NamedTuple):
    """A fact as it was told, checked but for what the memory holds."""

    subject: str
    relation: str
    object: str
    category: str | None
    contexts: tuple[str, ...]
    valid_from: int
    valid_to: int
    confidence: float
    because: tuple[Any, ...]
    """Numbers of units, or drafts of the same list."""
    sources: tuple[int, ...]

    def names(self) -> tuple[str, ...]:
        """All its names."""
        category = () if self.category is None else (self.category,)
        return (self.subject, self.relation, self.object, *category, *self.contexts)


def name(value: Any, what: str) -> str:
    """A name as it is stored: valid Unicode, with single spaces.

    Raises:
        InvalidInput: it is no text, or an empty one, or too long.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{what}={value!r} is a {type(value).__name__}; give a text")
    text = " ".join(clean(value).split())
    if not text:
        raise InvalidInput(f"{what}={value!r} is empty; every fact has a subject, a relation and an object")
    if len(text) > _LONGEST:
        raise InvalidInput(
            f"{what} has {len(text)} characters, a name at most {_LONGEST}; add long texts as turns, and "
            "name those as the source"
        )
    return text


def read_facts(given: Any, tz: dt.tzinfo) -> list[tuple[Any, Assertion]]:
    """The facts of a list, each with what it was given as.

    Raises:
        InvalidInput: one is no fact; the message says which.
    """
    if isinstance(given, (str, Mapping, FactDraft)) or not isinstance(given, Iterable):
        raise InvalidInput("give a list of facts: dicts, or FactDrafts; for a single one there is `add`")
    found = []
    for place, one in enumerate(given):
        fields = _fields(one, place)
        try:
            found.append((one, read_fact(tz=tz, **fields)))
        except InvalidInput as error:
            raise InvalidInput(f"fact {place} of the list: {error}; nothing was stored") from error
        except TypeError:
            unknown = sorted(set(fields) - set(FactDraft.__struct_fields__))
            missing = sorted({"subject", "relation", "object"} - set(fields))
            raise InvalidInput(
                f"fact {place} of the list: unknown fields {unknown}, missing {missing}; the fields are "
                f"{', '.join(FactDraft.__struct_fields__)}; nothing was stored"
            ) from None
    return found


def _fields(one: Any, place: int) -> dict[str, Any]:
    if isinstance(one, FactDraft):
        return msgspec.structs.asdict(one)
    if isinstance(one, Mapping) and all(isinstance(field, str) for field in one):
        return dict(one)
    raise InvalidInput(f"fact {place} of the list is a {type(one).__name__}; give a dict or a FactDraft")


def read_fact(
    subject: str,
    relation: str,
    object: str,
    *,
    tz: dt.tzinfo,
    category: str | None = None,
    context: str | Iterable[str] | None = None,
    valid_from: TimeLike | None = None,
    valid_to: TimeLike | None = None,
    confidence: float = 1.0,
    because: Any = (),
    source: Any = (),
) -> Assertion:
    """A fact, checked; see `Facts.add`.

    Raises:
        InvalidInput: something of it has no meaning.
    """
    start = OPEN_START if valid_from is None else times.micros(valid_from, tz, "valid_from")
    end = OPEN_END if valid_to is None else times.micros(valid_to, tz, "valid_to")
    if start >= end:
        raise InvalidInput(
            f"valid_from={valid_from!r} is not before valid_to={valid_to!r}; the end is the first moment "
            "at which the fact is true no longer"
        )
    real = isinstance(confidence, (int, float, np.floating)) and not isinstance(confidence, bool)
    if not real or not 0.0 <= confidence <= 1.0:
        raise InvalidInput(f"confidence={confidence!r}: give a number from 0 to 1")
    given = (context,) if isinstance(context, str) else (() if context is None else context)
    if not isinstance(given, Iterable):
        raise InvalidInput(f"context={context!r}: give a text, or several")
    contexts = dict.fromkeys(name(one, "context") for one in given)
    return Assertion(
        subject=name(subject, "subject"),
        relation=name(relation, "relation"),
        object=name(object, "object"),
        category=None if category is None else name(category, "category"),
        contexts=tuple(contexts),
        valid_from=start,
        valid_to=end,
        confidence=float(confidence),
        because=tuple(dict.fromkeys(_units(because))),
        sources=tuple(sorted(set(_turns(source)))),
    )


def _units(given: Any) -> Iterable[Any]:
    """Numbers of units, or drafts, of whatever names some."""
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        yield int(given)
    elif isinstance(given, Unit):
        yield given.id
    elif isinstance(given, Rewrite):
        told = given.added or given.confirmed
        if not told:
            raise InvalidInput(f"because={given!r} told nothing; name a unit")
        yield from told
    elif isinstance(given, FactDraft):
        yield given
    elif isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping)):
        for one in given:
            yield from _units(one)
    else:
        raise InvalidInput(f"because={given!r} is not a unit; give ids of units, or Units")


def _turns(given: Any) -> Iterable[int]:
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        yield int(given)
    elif isinstance(given, Turn):
        yield given.id
    elif isinstance(given, Added):
        yield from given.ids
    elif isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping)):
        for one in given:
            yield from _turns(one)
    else:
        raise InvalidInput(f"source={given!r} is not a turn; give ids of turns, or Turns")
