"""What a question says of the fact graph: the names in it, and how near the others are. No model is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import regex

from hmem_core.columns.factindex import SLOTS
from hmem_core.columns.factnames import fold
from hmem_core.columns.facts import FactColumns
from hmem_core.columns.terms import UNSPACED, Analyzer

__all__ = ["NAMED", "Asked", "ask", "matches", "mentioned"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

NAMED = (*SLOTS, "context")
"""Slots that a name in a question can stand in."""

_LONGEST = 24
"""Words of a name that are looked for at most."""
_READ = 512
"""Words of a question that are looked at."""
_WORDS = 0.9
"""What a name matches whose words are all in the question, but not in one piece."""

_TOKEN = regex.compile(
    rf"[{UNSPACED}]\p{{M}}*|\p{{RI}}\p{{RI}}|\p{{Extended_Pictographic}}|[\p{{L}}\p{{N}}][\p{{L}}\p{{N}}\p{{M}}]*"
)
_BEFORE = regex.compile(r"[^\s\p{L}\p{N}]{0,2}$")
_AFTER = regex.compile(r"[^\s\p{L}\p{N}]{0,3}")

_PAST = regex.compile(
    r"\b(?:before|chang(?:e|ed|es|ing)|used to|histor(?:y|ical|ically)|previous(?:ly)?|former(?:ly)?|earlier|"
    r"in the past|over time|no longer|anymore|originally|switch(?:ed)?|updated?)\b"
)
_WHY = regex.compile(r"\b(?:why|because|reasons?|how come)\b")


class Asked(NamedTuple):
    """A question, as far as the fact graph understands it."""

    vector: FloatArray
    """Its unit vector."""
    terms: frozenset[int]
    """Hashes of its words' stems."""
    named: dict[str, frozenset[int]]
    """By slot, the codes of the names in it that stand in that slot of some unit."""
    past: bool
    """Whether it asks for what was, or for what became of something."""
    why: bool
    """Whether it asks for reasons."""

    @property
    def anything(self) -> bool:
        """Whether it names anything that the graph knows."""
        return any(self.named.values())


def ask(facts: FactColumns, text: str, vector: FloatArray, analyzer: Analyzer, past: bool | None) -> Asked:
    """Read a question.

    Args:
        past: whether it asks for what was; None to read that from its words.
    """
    folded = rest = fold(text)
    named: dict[str, set[int]] = {slot: set() for slot in NAMED}
    for start, end, code in mentioned(facts, folded):
        if not analyzer.query(folded[start:end]).size:
            continue  # a function word, which the question has for its grammar
        rest = rest[:start] + "." * (end - start) + rest[end:]  # what a name says is not asked
        for slot in NAMED:
            if facts.index.slots[slot].latest(code, 1).size:
                named[slot].add(code)
    return Asked(
        vector=vector,
        terms=frozenset(analyzer.query(text).tolist()),
        named={slot: frozenset(codes) for slot, codes in named.items()},
        past=bool(_PAST.search(rest)) if past is None else past,
        why=bool(_WHY.search(rest)),
    )


def mentioned(facts: FactColumns, folded: str) -> Iterator[tuple[int, int, int]]:
    """The names in a folded text, as (start, end, code) with the code that each stands for: from left to
    right, the longest that begins at a word, each word in one name at most.

    A name begins and ends where a word does, or at a mark beside it, so that "Ann" is found in "Ann's" and
    not in "Anna". In scripts without spaces every character counts as a word.
    """
    words = [match.span() for match in _TOKEN.finditer(folded)][:_READ]
    pieces: dict[str, None] = {}
    by_start: list[list[tuple[int, int, int]]] = []
    for first, (start, _) in enumerate(words):
        found = []
        begun = _BEFORE.search(folded, 0, start)
        starts = range(start, (start if begun is None else begun.start()) - 1, -1)
        for last in range(min(first + _LONGEST, len(words)) - 1, first - 1, -1):
            end = words[last][1]
            after = _AFTER.match(folded, end)
            ends = range(end if after is None else after.end(), end - 1, -1)
            found += [(last, low, high) for high in ends for low in reversed(starts)]
        by_start.append(found)
        pieces.update(dict.fromkeys(folded[low:high] for _, low, high in found))
    known = facts.names.among(list(pieces))
    first = 0
    while first < len(words):
        best = next((one for one in by_start[first] if folded[one[1] : one[2]] in known), None)
        if best is None:
            first += 1
            continue
        last, low, high = best
        yield low, high, known[folded[low:high]]
        first = last + 1


def matches(
    facts: FactColumns, asked: Asked, slot: str, codes: IntArray, analyzer: Analyzer, *, cosine: bool = True
) -> FloatArray:
    """How well the names of a slot match the question, 0 to 1, float32: 1 where it names them, else the
    cosine, or the share of their words that are in it where that is more (ours).

    Args:
        codes: int32; -1 matches nothing.
        cosine: if not, words alone decide.
    """
    distinct, places = np.unique(codes, return_inverse=True)
    found = np.zeros(distinct.size, np.float32)
    if cosine:
        found = np.clip(facts.names.gather(np.maximum(distinct, 0)) @ asked.vector, 0.0, 1.0)
    for place, code in enumerate(distinct.tolist()):
        if code in asked.named[slot]:
            found[place] = 1.0
        elif name := facts.names[code]:
            terms = analyzer.query(name).tolist()
            shared = sum(term in asked.terms for term in terms)
            found[place] = max(found[place], _WORDS * shared / max(len(terms), 1))
        else:
            found[place] = 0.0
    result: FloatArray = found[places].astype(np.float32)
    return result
