"""Facts that turns tell, as a model says it, bounded and checked (units and dependencies of HiGram, arXiv
2608.05095; several turns a question, and the checks, are ours)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from hmem_core.columns.factnames import fold
from hmem_core.effects import Program
from hmem_core.events.asking import in_parts
from hmem_core.llm.prompts import fact_extraction
from hmem_core.llm.prompts.fact_extraction import Extracted, Extraction, KnownFact
from hmem_core.llm.prompts.rendering import ShownTurn

__all__ = ["Found", "Offer", "Reading", "extract"]

FACTS = 6
"""Facts that are kept of one turn, at most."""
NAME = 200
"""Characters of a name, at most; what is longer is no name, and its fact is left out."""
VALUE = 500
"""Characters of an object, at most."""
BECAUSE = 6
"""Facts on which one may rest, at most."""
UNSAID = 0.8
"""Confidence of a fact for which the model names none."""
SURE = 0.95
"""Confidence at most: a model's word alone is never certain."""

_SPEAKER = frozenset({"i", "me", "myself", "the speaker", "speaker"})
_NOBODY = frozenset(
    {"he", "she", "it", "they", "we", "you", "him", "her", "them", "us", "this", "that", "these", "those"}
    | {"someone", "somebody", "nobody", "something", "none", "null", "unknown", "n/a"}
)
_WORDS = re.compile(r"\w+")
_KNOWN = re.compile(r"k(\d{1,4})")


class Offer(NamedTuple):
    """A known fact that a model is shown."""

    unit: int
    fact: KnownFact


class Found(NamedTuple):
    """A fact that a turn tells."""

    turn: int
    subject: str
    relation: str
    object: str
    category: str | None
    context: str | None
    since: str
    """As the model wrote it; empty where nobody says."""
    until: str
    confidence: float
    facts: tuple[int, ...]
    """Places of the facts before it in the same reading on which it rests."""
    units: tuple[int, ...]
    """Known units on which it rests."""


class Reading(NamedTuple):
    """What one question found."""

    turns: tuple[int, ...]
    """Those that were asked about, ascending."""
    read: tuple[int, ...]
    """All that were shown, ascending."""
    taken: tuple[int, ...]
    """Units that were shown, and of which the facts hold something, ascending."""
    facts: tuple[Found, ...]


def extract(
    turns: Sequence[ShownTurn],
    before: Sequence[ShownTurn],
    known: Sequence[Offer],
    window: int,
    asides: frozenset[int] = frozenset(),
) -> Program[list[Reading]]:
    """The facts that `turns` tell. A turn about which no reply can be used tells none.

    Args:
        before: turns said just before them, in order.
        known: facts that are shown beside them.
        window: so many turns before those that are asked about are shown with them.
        asides: of `turns`, the ids of those that only help to understand.

    Raises:
        LLMError: nothing could be read now.
    """
    everything = [*before, *turns]
    places = {turn.id: place for place, turn in enumerate(everything)}
    learned = [turn for turn in turns if turn.id not in asides]

    def ask(part: Sequence[ShownTurn]) -> Program[dict[int, Reading]]:
        first, last = places[part[0].id], places[part[-1].id]
        wanted = {turn.id for turn in part}
        span = [turn for turn in everything[first : last + 1] if turn.id in wanted | asides]
        near = everything[max(first - window, 0) : first]
        reply: Extraction = yield fact_extraction.ask(
            span, near, [one.fact for one in known], asides & {turn.id for turn in span}
        )
        found = _checked(reply.facts, [turn for turn in span if turn.id in wanted], known)
        shown = (*near, *span)
        reading = Reading(
            tuple(sorted(wanted)),
            tuple(sorted({turn.id for turn in shown})),
            _taken(found, known, shown),
            tuple(found),
        )
        return dict.fromkeys(wanted, reading)

    found = yield from in_parts(learned, ask)
    readings: dict[int, Reading] = {}
    for turn, reading in found.items():
        made = Reading((turn,), (turn,), (), ()) if reading is None else reading
        readings[made.turns[0]] = made
    return [readings[first] for first in sorted(readings)]


def _checked(given: Sequence[Extracted], turns: Sequence[ShownTurn], known: Sequence[Offer]) -> list[Found]:
    """The facts of a reply that say something, those before which others rest on."""
    speakers = {turn.id: turn.speaker for turn in turns}
    texts = {turn.id: fold(turn.text) for turn in turns}
    kept: list[tuple[Extracted, tuple[str, str, str]]] = []
    counts: dict[int, int] = {}
    said: set[tuple[object, ...]] = set()
    for one in given:
        source = _source(one, texts)
        slots = None if source is None else _slots(one, speakers[source])
        if source is None or slots is None or counts.get(source, 0) >= FACTS:
            continue
        if _echoes(one, slots, known, texts):
            continue
        one = msgspec.structs.replace(one, turn=source)
        key = (one.turn, *(fold(text) for text in (*slots, _text(one.context))))
        if key not in said:
            said.add(key)
            counts[one.turn] = counts.get(one.turn, 0) + 1
            kept.append((one, slots))
    names: dict[str, int] = {}
    for place, (one, _) in enumerate(kept):
        if name := _reference(one.id):
            names.setdefault(name, place)
    rests = [_because(one, slots, names, kept, known) for one, slots in kept]
    order = _ordered([facts for facts, _ in rests])
    at = {place: row for row, place in enumerate(order)}
    found = []
    for row, place in enumerate(order):
        one, slots = kept[place]
        facts = tuple(sorted(at[other] for other in rests[place][0] if at[other] < row))
        category, context = _text(one.category), _text(one.context)
        found.append(
            Found(
                one.turn,
                *slots,
                category if _names(category, NAME) else None,
                context if _names(context, NAME) else None,
                _text(one.since),
                _text(one.until),
                _confidence(one.confidence),
                facts[:BECAUSE],
                rests[place][1][:BECAUSE],
            )
        )
    return found


def _source(one: Extracted, texts: Mapping[int, str]) -> int | None:
    """The turn that tells a fact: the one that it names; but if that has no word of the object, or was not
    asked about (small models count turns from 1), the only one that has all of them."""
    words = set(_WORDS.findall(fold(_text(one.object))))
    if one.turn in texts and any(word in texts[one.turn] for word in words):
        return one.turn
    having = [turn for turn, text in texts.items() if words and all(word in text for word in words)]
    if len(having) == 1:
        return having[0]
    return one.turn if one.turn in texts else None


def _echoes(
    one: Extracted, slots: tuple[str, str, str], known: Sequence[Offer], texts: Mapping[int, str]
) -> bool:
    """Whether a fact is only what was shown as known: it has the id of such a one, or says the same, and no
    turn has a word of its object."""
    match = _KNOWN.fullmatch(_reference(one.id))
    if match is not None and 0 < int(match[1]) <= len(known):
        return True
    own = tuple(map(fold, slots))
    if all(tuple(map(fold, _values(offer.fact))) != own for offer in known):
        return False
    return not any(word in text for word in _WORDS.findall(own[2]) for text in texts.values())


def _text(value: object) -> str:
    """Whatever a model wrote, as one line."""
    if value is None or isinstance(value, bool):
        return ""
    return " ".join(str(value).encode("utf-8", "replace").decode().split())


def _names(text: str, most: int) -> bool:
    return 0 < len(text) <= most and any(map(str.isalnum, text))


def _slots(one: Extracted, speaker: str | None) -> tuple[str, str, str] | None:
    """Subject, relation and object of a fact, with the speaker in the place of "I"; None if one lacks."""
    subject, relation, value = _text(one.subject), _text(one.relation), _text(one.object)
    subject, value = (speaker if speaker and fold(name) in _SPEAKER else name for name in (subject, value))
    fine = _names(subject, NAME) and _names(relation, NAME) and _names(value, VALUE)
    if not fine or fold(subject) in _NOBODY | _SPEAKER or fold(value) in _NOBODY:
        return None
    return subject, relation, value


def _confidence(given: object) -> float:
    try:
        value = float(str(given))
    except ValueError:
        return UNSAID
    return min(value, SURE) if 0 < value <= 1 else UNSAID


def _reference(name: object) -> str:
    """The name of a fact as a reply writes it: "f1" for 1, "F1" or "f 1" too."""
    text = "".join(fold(_text(name)).split())
    return f"f{text}" if text.isdecimal() else text


def _because(
    one: Extracted,
    slots: tuple[str, str, str],
    names: Mapping[str, int],
    kept: Sequence[tuple[Extracted, tuple[str, str, str]]],
    known: Sequence[Offer],
) -> tuple[set[int], tuple[int, ...]]:
    """On which facts of the reply, and on which known units, a fact rests. What does not exist is left out,
    and so is a fact that says the same: nothing rests on itself."""
    given = one.because if isinstance(one.because, list) else _text(one.because).replace(",", " ").split()
    own = tuple(map(fold, slots))
    facts, units = set(), []
    for name in map(_reference, given):
        if (match := _KNOWN.fullmatch(name)) is not None:
            place = int(match[1]) - 1
            if 0 <= place < len(known) and tuple(map(fold, _values(known[place].fact))) != own:
                units.append(known[place].unit)
        elif name in names and tuple(map(fold, kept[names[name]][1])) != own:
            facts.add(names[name])
    return facts, tuple(dict.fromkeys(units))


def _values(fact: KnownFact) -> tuple[str, str, str]:
    return fact.subject, fact.relation, fact.object


def _ordered(rests: Sequence[set[int]]) -> list[int]:
    """The places of facts, each after those that it rests on. Of facts that rest on one another, the first
    comes first, and does not rest on the later ones."""
    order: list[int] = []
    left = list(range(len(rests)))
    while left:
        waiting = set(left)
        ready = [place for place in left if not rests[place] & waiting - {place}] or left[:1]
        order += ready
        left = [place for place in left if place not in ready]
    return order


def _taken(found: Iterable[Found], known: Sequence[Offer], shown: Iterable[ShownTurn]) -> tuple[int, ...]:
    """Of which known units the facts hold something: those on which one rests, and those that share a date,
    or a word of a subject, object or context, that no turn that was shown has. Relations and categories are
    common words, and are meant to be the same."""
    text = fold(" ".join(f"{turn.speaker or ''} {turn.text}" for turn in shown))
    words: set[str] = set()
    taken: set[int] = set()
    dates: set[str] = set()
    for one in found:
        taken.update(one.units)
        dates |= {one.since, one.until} - {""}
        words.update(_WORDS.findall(fold(f"{one.subject} {one.object} {one.context or ''}")))
    words = {word for word in words if word not in text}
    for offer in known:
        fact = offer.fact
        if fact.since in dates and fact.since not in text:
            taken.add(offer.unit)
        if words & set(_WORDS.findall(fold(" ".join((fact.subject, fact.object, *fact.contexts))))):
            taken.add(offer.unit)
    return tuple(sorted(taken))
