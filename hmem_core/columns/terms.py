"""From text to the terms that the lexical channel counts.

Text is normalised (NFKC, case folded) and cut by script. Words of scripts with spaces are stemmed by
Snowball: Cyrillic, Arabic, Greek, Armenian, Devanagari and Tamil words by the language usual for their
script, Latin ones by the memory's language, and their accents are dropped. Scripts written without spaces,
and Hangul, become bigrams of characters, with the single characters beside them so that a word of one
character is found too. Each emoji is a term.

A term is stored as a 64-bit hash, so an index holds no words, and forgetting a turn leaves none behind.
"""

from __future__ import annotations

import functools
import itertools
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import regex
import Stemmer
import xxhash

from hmem_core.columns.stopwords import STOP_WORDS
from hmem_core.errors import InvalidInput

__all__ = ["ANALYSIS", "LANGUAGES", "UNSPACED", "Analyzer", "term_hashes"]

ANALYSIS = f"1/{Stemmer.version()}/{unicodedata.unidata_version}"
"""What a change of the analysis shows in: an index made under another value is made anew."""

LANGUAGES = frozenset(Stemmer.algorithms())
"""Languages that words in Latin script can be stemmed by."""

_BY_SCRIPT = {
    "Cyrillic": "russian",
    "Arabic": "arabic",
    "Greek": "greek",
    "Armenian": "armenian",
    "Devanagari": "hindi",
    "Tamil": "tamil",
}
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々〆"
_PIECE = regex.compile(
    rf"(?P<run>[{UNSPACED}][{UNSPACED}\p{{M}}]*)"
    r"|(?P<emoji>\p{RI}\p{RI}|\p{Extended_Pictographic})"
    + "".join(rf"|(?P<{script}>\p{{{script}}}[\p{{{script}}}\p{{M}}]*)" for script in _BY_SCRIPT)
    + r"|(?P<word>[\p{L}\p{N}][\p{L}\p{N}\p{M}'’]*)"
)
_LATIN = regex.compile(r"\p{Latin}")
_local = threading.local()  # a stemmer may not be used by two threads at once


def _stem(language: str, word: str) -> str:
    stemmers = _local.__dict__
    if language not in stemmers:
        stemmers[language] = Stemmer.Stemmer(language)
    stem: str = stemmers[language].stemWord(word)
    return stem


def _fold(word: str) -> str:
    """`word` without its accents."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFD", word)
    return "".join(character for character in decomposed if not unicodedata.combining(character))


Counted = tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32], int]
"""As `Analyzer.count` returns it."""


class Analyzer:
    """Cuts texts into terms.

    Args:
        language: how words in Latin script are stemmed, and which of them are left out.

    Raises:
        InvalidInput: there is no stemmer of that name.
    """

    def __init__(self, language: str = "english") -> None:
        if language not in LANGUAGES:
            raise InvalidInput(
                f"language={language!r} has no stemmer; choose of {', '.join(sorted(LANGUAGES))}"
            )
        self.language = language
        self._ahead: dict[str, Counted] = {}
        self._term = functools.lru_cache(maxsize=1 << 16)(self._make_term)
        self.says = functools.lru_cache(maxsize=1 << 16)(self._says)

    def words(self, text: str, *, query: bool = False) -> Iterator[tuple[str, bool]]:
        """Terms of `text` in order, each with whether it counts towards the length of the text.

        Args:
            query: leave out the single characters of longer runs, which would only blur a query.
        """
        for piece in _PIECE.finditer(unicodedata.normalize("NFKC", text).casefold()):
            kind, found = piece.lastgroup, piece.group()
            if kind == "run":
                yield from _bigrams(found, query)
            elif kind == "emoji":
                yield found, True
            elif term := self._term(kind, found):
                yield term, True

    def _says(self, token: str) -> bool:
        """Whether a model's token is more than function words and punctuation. Pieces of characters, which
        decode to U+FFFD, are."""
        return "\ufffd" in token or next(self.words(token), None) is not None

    def _make_term(self, script: str, word: str) -> str | None:
        """The stem of a word; None for a function word."""
        language = _BY_SCRIPT.get(script)
        if language is None:
            if not _LATIN.search(word):
                return word
            language = self.language
            word = word.replace("’", "'").removesuffix("'s").replace("'", "")
        stop = STOP_WORDS.get(language, frozenset())
        if not word or word in stop:
            return None
        stem = _stem(language, word)
        return _fold(stem) if script not in _BY_SCRIPT else stem

    def count(self, text: str) -> Counted:
        """Terms of a text to be indexed: (hashes, how often each occurs, length of the text in terms).

        The hashes are ascending and distinct: uint64 of shape (terms,); the counts float32 of the same shape.
        """
        return self._ahead.pop(text, None) or self._count(text)

    def _count(self, text: str) -> Counted:
        counts: dict[int, int] = {}
        length = 0
        for term, counted in self.words(text):
            value = _hash(term)
            counts[value] = counts.get(value, 0) + 1
            length += counted
        hashes = np.array(sorted(counts), dtype=np.uint64)
        return hashes, np.array([counts[value] for value in hashes.tolist()], dtype=np.float32), length

    def count_ahead(self, texts: Sequence[str]) -> list[npt.NDArray[np.uint64]]:
        """The hashes that `count` will give of texts which are about to be indexed, and which it then does
        not count a second time."""
        self._ahead = {text: self._count(text) for text in texts}
        return [self._ahead[text][0] for text in texts]

    def query(self, text: str) -> npt.NDArray[np.uint64]:
        """Distinct hashes of the terms of a query, ascending: uint64 of shape (terms,)."""
        return np.array(sorted({_hash(term) for term, _ in self.words(text, query=True)}), dtype=np.uint64)


def term_hashes(terms: Iterable[str]) -> npt.NDArray[np.uint64]:
    """The hashes of terms, in their order: uint64 of shape (terms,)."""
    return np.array([_hash(term) for term in terms], np.uint64)


@functools.lru_cache(maxsize=1 << 16)
def _hash(term: str) -> int:
    return xxhash.xxh3_64_intdigest(term.encode())


def _bigrams(run: str, query: bool) -> Iterator[tuple[str, bool]]:
    # A mark belongs to the character before it.
    characters = regex.findall(r"\X", run)
    for first, second in itertools.pairwise(characters):
        yield first + second, True
    if len(characters) == 1 or not query:
        for character in characters:
            yield character, len(characters) == 1
