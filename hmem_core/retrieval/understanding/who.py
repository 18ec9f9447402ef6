"""Who: the speakers, roles and subjects that a text names."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from hmem_core.columns.stopwords import STOP_WORDS
from hmem_core.retrieval.understanding.vocabulary import FIRST_PERSON, FIRST_PERSON_UNSPACED
from hmem_core.retrieval.understanding.words import LIMIT, UNSPACED, Word, split
from hmem_core.state import View

__all__ = ["Mention", "Roster", "roster", "roster_of"]

Kind = Literal["speaker", "role", "subject"]

_FUNCTION = STOP_WORDS["english"]
_USER = "user"
_ASKING = {"tell", "show", "give", "remind", "help", "let"}
"""Before "me" they speak to the reader, not of the user."""
_KATAKANA = ("\u30a0", "\u30ff")


class Mention(NamedTuple):
    """Someone who is named."""

    kind: Kind
    code: int
    """In the table of speakers or roles, or in the list of subjects."""
    name: str
    """As that table has it."""
    span: tuple[int, int]
    """Its place in the text: first character, and one past the last."""


class _Person(NamedTuple):
    kind: Kind
    code: int
    name: str


class Roster:
    """Everyone who is known, to be found in texts.

    Names are compared folded (case, accents, width). A name of several words is found whole, and, if it is
    written as people's names are, by the first of them alone where no other name begins with that word; "Ann"
    is never found in "Anna". In scripts without spaces a name is found anywhere, if it has two characters or
    more. A name that is also an English function word ("Will") must be written with a capital, and not begin
    the text.

    Args:
        speakers: names by code; None for codes out of use.
        roles: likewise.
        subjects: what else is known by a name.
        aliases: other names for any of these.
    """

    def __init__(
        self,
        speakers: Sequence[str | None],
        roles: Sequence[str | None] = (),
        subjects: Sequence[str | None] = (),
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self._book: dict[str, list[tuple[tuple[str, ...], tuple[_Person, ...]]]] = {}
        self._user = next(
            (_Person("role", code, name) for code, name in enumerate(roles) if name == _USER), None
        )
        people: list[_Person] = []
        tables: tuple[tuple[Kind, Sequence[str | None]], ...] = (("speaker", speakers), ("subject", subjects))
        for kind, table in tables:
            people += [_Person(kind, code, name) for code, name in enumerate(table) if name]
        whole: dict[tuple[str, ...], list[_Person]] = {}
        for person in people:
            whole.setdefault(_key(person.name), []).append(person)
        whole.pop((), None)
        first: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for key, people in whole.items():
            first.setdefault(_key(people[0].name.split()[0]), set()).add(key)
        phrases = {key: tuple(group) for key, group in whole.items()}
        for part, keys in first.items():
            if len(keys) > 1 or not part or part in whole:
                continue
            people = whole[next(iter(keys))]
            function = len(part) == 1 and (part[0] in _FUNCTION or len(part[0]) < 2)
            if not function and _capital(people[0].name) and not UNSPACED.search(part[0]):
                phrases[part] = tuple(people)
        for alias, name in (aliases or {}).items():
            if (key := _key(alias)) and _key(name) in whole:
                phrases[key] = (*phrases.get(key, ()), *whole[_key(name)])
        for code, role in enumerate(roles):
            if role and (key := _key(role)):
                phrases.setdefault(("the", *key), (_Person("role", code, role),))
        for key, group in phrases.items():
            if len(key) > 1 or not UNSPACED.search(key[0]):
                self._book.setdefault(key[0], []).append((key, group))
        for entries in self._book.values():
            entries.sort(key=lambda entry: -len(entry[0]))
        self.words = frozenset(key[0] for key in phrases if len(key) == 1)
        """Names of one word, folded."""

    def find(self, text: str) -> tuple[Mention, ...]:
        """Everyone named in the beginning of `text`, in order. Names win over parts of them."""
        head = text[:LIMIT]
        words = split(head)
        found: list[Mention] = []
        at = 0
        while at < len(words):
            key, group = self._at(head, words, at)
            if key:
                span = words[at].start, words[at + key - 1].end
                found += [Mention(*person, span) for person in group]
            at += max(key, 1)
        return tuple(found)

    def _at(self, text: str, words: list[Word], at: int) -> tuple[int, tuple[_Person, ...]]:
        """(number of words, whom they name) at word `at`."""
        for key, group in self._book.get(words[at].text, ()):
            end = at + len(key)
            if tuple(word.text for word in words[at:end]) == key and _bounded(text, words, at, end):
                if len(key) == 1 and key[0] in _FUNCTION:
                    alone = len(words) == 1 or (end < len(words) and words[end].text == "s")
                    if words[at].start != 0 and text[words[at].start].isupper():
                        return 1, group
                    if not alone:
                        continue
                return len(key), group
        return (_first_person(words, at), (self._user,)) if self._user else (0, ())


def _first_person(words: list[Word], at: int) -> int:
    """How many words at `at` are a first person."""
    text = words[at].text
    if text in FIRST_PERSON and not UNSPACED.search(text):
        return int(not (text == "me" and at and words[at - 1].text in _ASKING))
    for pronoun in FIRST_PERSON_UNSPACED:
        if text == pronoun[0]:
            some = words[at : at + len(pronoun)]
            if "".join(word.text for word in some) == pronoun and not any(word.gap for word in some[1:]):
                hangul = "\uac00" <= text <= "\ud7a3"
                starts = at == 0 or words[at].gap or not UNSPACED.search(words[at - 1].text)
                if starts or not hangul:
                    return len(pronoun)
    return 0


def _bounded(text: str, words: list[Word], at: int, end: int) -> bool:
    """Whether the words from `at` to `end` are a name by themselves and not a part of a longer word."""
    if any(len(word.gap) > 3 or "\n" in word.gap for word in words[at + 1 : end]):
        return False
    start, stop = words[at].start, words[end - 1].end
    for edge, beside in ((start, start - 1), (stop - 1, stop)):
        if 0 <= beside < len(text):
            low, high = _KATAKANA
            if low <= text[edge] <= high and low <= text[beside] <= high and text[beside] != "・":
                return False
    return True


def _key(name: str) -> tuple[str, ...]:
    return tuple(word.text for word in split(name, 128))


def _capital(name: str) -> bool:
    """Whether every word of a name begins with a capital, as names of people do."""
    return all(not part[0].islower() for part in name.split())


@functools.lru_cache(maxsize=16)
def roster(
    speakers: tuple[str | None, ...],
    roles: tuple[str | None, ...] = (),
    subjects: tuple[str | None, ...] = (),
    aliases: tuple[tuple[str, str], ...] = (),
) -> Roster:
    """The roster of these names, kept for the next query."""
    return Roster(speakers, roles, subjects, dict(aliases))


def roster_of(
    view: View, subjects: Iterable[str | None] = (), aliases: Mapping[str, str] | None = None
) -> Roster:
    """Everyone whom a memory knows.

    Args:
        subjects: of its facts, by code.
    """
    names = tuple(view.speakers.table()[0]), tuple(view.roles.table()[0])
    return roster(*names, tuple(subjects), tuple((aliases or {}).items()))
