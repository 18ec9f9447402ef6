"""What stands for an event that no language model has described: drawn from its turns when someone reads it.

Nothing of it is stored, so nothing of it has to be forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import regex

from hmem_core.columns.postings import idf
from hmem_core.columns.terms import term_hashes
from hmem_core.segments.annotation import SAMPLE, representatives, shortened
from hmem_core.state import View

__all__ = ["Said", "entities", "keywords", "summary", "timeline"]

RowArray = npt.NDArray[np.int64]

TURNS = 3
"""Turns that a summary quotes."""
LONGEST = 160
"""Characters of a turn in a summary or a timeline."""
KEYWORDS = 8
ENTITIES = 12
PER_SESSION = 2
"""Turns of one session in a timeline at most …"""
TIMELINE = 64
"""… and of all."""
RARE = 0.01
"""In scripts without capitals a term of at most this share of the turns may be a name."""
READ = 512
"""Turns of a large event that are read for words and names, the latest ones."""

_SENTENCE = regex.compile(r"(?:^|[.!?…:\n\]\p{So}]|[-–—]\s)[\s\"'“‘(\[]*(?=\p{L})")
_WORD = r"\p{Lu}(?:['’]?[\p{L}\p{M}])*"
_NAME = regex.compile(rf"\b{_WORD}(?:[ -](?:(?:of|de|da|van|von|the|la|le) )?{_WORD})*")
_CASED = regex.compile(r"[\p{Lu}\p{Ll}]")


class Said(NamedTuple):
    """A turn of an event."""

    row: int
    text: str
    speaker: str
    session: str | None
    at: int
    """UTC microseconds."""


def summary(view: View, said: Sequence[Said]) -> str:
    """A few turns that stand for all, in the order of their times (`segments.annotation`)."""
    rows = np.array(sorted(one.row for one in said), np.int64)
    chosen = set(representatives(view.vectors, view.narrow["length"], rows, TURNS).tolist())
    return "\n".join(f"{one.speaker}: {shortened(one.text, LONGEST)}" for one in said if one.row in chosen)


def keywords(view: View, said: Sequence[Said]) -> tuple[str, ...]:
    """The words that tell the event from others: the highest sums of tf · idf, as they are most often
    written."""
    counts: Counter[str] = Counter()
    forms: dict[str, Counter[str]] = {}
    for one in said[-READ:]:
        for word in _words(one.text):
            for term, counted in view.analyzer.words(word):
                if counted and not term.isdigit() and (len(term) > 1 or not term.isascii()):
                    counts[term] += 1
                    forms.setdefault(term, Counter())[word.casefold()] += 1
    terms = list(counts)
    found = view.postings.frequencies(term_hashes(terms))
    weights = idf(found, view.rows) * np.array([1 + np.log(counts[term]) for term in terms], np.float32)
    best = np.argsort(-weights, kind="stable")[:KEYWORDS].tolist() if terms else []
    return tuple(_usual(forms[terms[place]]) for place in best)


def entities(view: View, said: Sequence[Said]) -> tuple[str, ...]:
    """Whom and what an event is about, the most frequent first: its speakers, and what looks like a name.

    A name is what is written with capitals where no sentence begins, and then anywhere. In scripts without
    capitals, the rarest terms stand for names.
    """
    counts: Counter[str] = Counter(one.speaker for one in said[-READ:])
    speakers = set(counts)
    inside: Counter[str] = Counter()
    opening: Counter[str] = Counter()
    uncased: Counter[str] = Counter()
    lower: set[str] = set()
    for one in said[-READ:]:
        starts = {match.end() for match in _SENTENCE.finditer(one.text)}
        for match in _NAME.finditer(one.text):
            name = match.group().removesuffix("'s").removesuffix("’s")
            if match.start() not in starts:
                inside[name] += 1
                continue
            first, _, rest = name.partition(" ")
            opening[first] += 1
            if rest:
                inside[rest] += 1
        lower.update(word for word in _words(one.text) if word.islower())
        if not _CASED.search(one.text):
            uncased.update({term for term, counted in view.analyzer.words(one.text) if counted})
    for name, count in inside.items():
        if len(name) > 1 and name.casefold() not in lower and any(view.analyzer.words(name)):
            counts[name] += count + opening[name]
    counts.update(_rare(view, uncased))
    ranked = sorted(counts.items(), key=lambda item: (item[0] not in speakers, -item[1]))
    return tuple(name for name, _ in ranked[:ENTITIES])


def timeline(view: View, said: Sequence[Said]) -> list[Said]:
    """Turns that date the event: of each session the ones nearest its centre, in the order of their times."""
    if len(said) > SAMPLE:
        said = said[:: -(-len(said) // SAMPLE)]
    sessions: dict[tuple[str | None, int], list[Said]] = {}
    for one in said:
        day = one.at // 86_400_000_000 if one.session is None else 0
        sessions.setdefault((one.session, day), []).append(one)
    chosen: list[Said] = []
    for some in list(sessions.values())[-TIMELINE:]:
        rows = np.array(sorted(one.row for one in some), np.int64)
        kept = set(representatives(view.vectors, view.narrow["length"], rows, PER_SESSION).tolist())
        chosen += [one for one in some if one.row in kept]
    return chosen[-TIMELINE:]


def _words(text: str) -> Iterable[str]:
    for match in regex.finditer(r"[\p{L}\p{N}][\p{L}\p{N}\p{M}'’]*", text):
        yield match.group()


def _usual(forms: Counter[str]) -> str:
    """The most frequent form; of equals the shortest, then the first in order."""
    return min(forms, key=lambda form: (-forms[form], len(form), form))


def _rare(view: View, terms: Counter[str]) -> dict[str, int]:
    names = list(terms)
    found = view.postings.frequencies(term_hashes(names))
    limit = max(RARE * view.rows, 2.0)
    return {name: terms[name] for name, count in zip(names, found.tolist(), strict=True) if count <= limit}
