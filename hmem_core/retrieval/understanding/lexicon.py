"""From words to items of time: a phrase book of many languages, looked up word by word.

Month and weekday names, units, "yesterday" and "5 days ago" are dateparser's (made from the CLDR); its tables
are read as data, which is much quicker than importing it. `vocabulary` adds what they lack. Where two
languages have the same phrase, the first of `LANGUAGES` that has it wins.
"""

from __future__ import annotations

import calendar
import functools
import importlib.util
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hmem_core.columns.stopwords import STOP_WORDS
from hmem_core.retrieval.understanding.vocabulary import ENGLISH, NUMBERS, OTHERS
from hmem_core.retrieval.understanding.words import UNSPACED, Word, split

__all__ = ["LANGUAGES", "Item", "Lexicon", "lexicon"]

_CODES = """
en:english zh: es:spanish ru:russian fr:french de:german pt:portuguese ja: it:italian ko: nl:dutch ar:arabic
pl:polish tr:turkish vi: id:indonesian hi:hindi uk: sv:swedish cs:czech da:danish nb:norwegian fi:finnish
el:greek hu:hungarian ro:romanian ca:catalan th: fa:persian he: ta:tamil lt:lithuanian bg: sr:serbian
et:estonian hy:armenian eu:basque ga:irish
"""
LANGUAGES: dict[str, str] = dict(pair.split(":") for pair in _CODES.split())
"""Codes of the languages that are read, the more spoken first, and the names that stemmers have for them."""

_MONTHS = [name.casefold() for name in calendar.month_name[1:]]
_DAYS = [name.casefold() for name in calendar.day_name]
_UNITS = ("day", "week", "month", "year")
_DIGITS = re.compile(r"\(\\d[^)]*\)")
"""A number in the library's patterns."""
_RELATIVE = re.compile(r"(in )?(\d+|\\1) (\w+)( ago)?")
_INSIDE = re.compile(r"[\s'’\-‐.]{0,2}")
_HAN = {character: value for value, character in enumerate("零一二三四五六七八九")} | {
    "两": 2,
    "兩": 2,
    "〇": 0,
}
_HAN_POWERS = {"十": 10, "百": 100, "千": 1000}
_TELLING = {"relative", "month", "weekday", "season"}
"""Kinds that are a time by themselves."""
_LETTERED = re.compile(r"[^\W\d_]+(?: [^\W\d_]+)?")
_ORDINALS = {"st", "nd", "rd", "th", "er", "re", "º", "ª"}


class Item(NamedTuple):
    """A phrase that was recognised, or a word that was not (kind ``word``)."""

    kind: str
    value: Any
    first: int
    """Its words: first and one past the last."""
    last: int
    language: str = ""
    digits: int = 0
    """Of a number: how many digits it was written with; 0 if in words."""


class _Entry(NamedTuple):
    words: tuple[str, ...]
    kind: str
    value: Any
    language: str
    rivals: tuple[str, ...]
    """Languages in which the one word is a function word."""


class Lexicon:
    """The phrase book of some languages."""

    def __init__(self, languages: Iterable[str]) -> None:
        self._book: dict[str, list[_Entry]] = {}
        seen: set[tuple[str, ...]] = set()
        for language in languages:
            fresh = []
            for kind, value, phrase in _phrases(language):
                words = _cut(phrase)
                if words and words not in seen:
                    rivals = _rivals(words, language) if kind in _TELLING else ()
                    fresh.append(_Entry(words, kind, value, language, rivals))
            for entry in fresh:
                if entry.words not in seen:
                    self._book.setdefault(entry.words[0], []).append(entry)
                    seen.add(entry.words)
        for entries in self._book.values():
            entries.sort(key=lambda entry: -len(entry.words))  # stable: languages keep their order

    def items(self, words: list[Word]) -> list[Item]:
        """`words` as items, longest phrases first."""
        items: list[Item] = []
        index = 0
        while index < len(words):
            item = self._phrase(words, index) or _numeral(words, index)
            item = item or Item("word", words[index].text, index, index + 1)
            items.append(item)
            index = item.last
        return items

    def _phrase(self, words: list[Word], index: int) -> Item | None:
        for entry in self._book.get(words[index].text, ()):
            end = index + len(entry.words)
            if (
                (end == index + 1 or _stand(words, index, entry.words))
                and (entry.kind != "short" or (index and words[index - 1].text.isdecimal()))
                and (not entry.rivals or _speaks(words, entry))
            ):
                return Item(entry.kind, entry.value, index, end, entry.language)
        return None


def _stand(words: list[Word], index: int, phrase: tuple[str, ...]) -> bool:
    """Whether `phrase` stands at `index`."""
    found = words[index : index + len(phrase)]
    return tuple(word.text for word in found) == phrase and all(
        _INSIDE.fullmatch(word.gap) for word in found[1:]
    )


@functools.lru_cache(maxsize=8)
def lexicon(first: str = "en") -> Lexicon:
    """The phrase book of all languages, that of code or stemmer `first` before all others."""
    codes = [code for code, name in LANGUAGES.items() if first in (code, name)]
    return Lexicon(dict.fromkeys(["en", *codes, *LANGUAGES] if first != "en" else LANGUAGES))


def _numeral(words: list[Word], index: int) -> Item | None:
    word = words[index]
    if word.text.isdecimal():
        return _figure(words, index)
    if word.text not in _HAN and word.text not in _HAN_POWERS:
        return None
    total = digit = 0
    end = index
    while end < len(words) and end < index + 7 and (end == index or not words[end].gap):
        text = words[end].text
        if text in _HAN:
            digit = digit * 10 + _HAN[text]
        elif text in _HAN_POWERS:
            total += (digit or 1) * _HAN_POWERS[text]
            digit = 0
        else:
            break
        end += 1
    if end < len(words) and not words[end].gap and words[end].text in "万萬亿億":
        return Item("word", "", index, end + 1)
    return Item("number", total + digit, index, end, "zh")


def _figure(words: list[Word], index: int) -> Item:
    """Digits as a number, unless they are a part of something else, such as a version or an amount."""
    word = words[index]
    joined = {".", ":", "/", "_", "@", "#", "+", "=", "\\"}
    before, after = word.gap[-1:], words[index + 1].gap[:1] if index + 1 < len(words) else ""
    glued = index > 0 and not word.gap and words[index - 1].text.isascii() and words[index - 1].text != "q"
    inner = after in joined and bool(words[index + 1].gap.strip() == words[index + 1].gap)
    if len(word.text) > 4 or glued or before in {*joined, "$", "€", "£", "-"} or (inner and after):
        other = words[index - 1].text if index else ""
        ranged = other.isdecimal() and len(word.text) == len(other) == 4 and other < word.text
        ranged = ranged or (other.isdecimal() and len(word.text) < 3)
        if not ranged or word.gap != "-":
            return Item("word", "", index, index + 1)
    last = index + 1
    if last < len(words) and not words[last].gap and words[last].text in _ORDINALS:
        return Item("ordinal", int(word.text), index, last + 1, digits=len(word.text))
    return Item("number", int(word.text), index, last, digits=len(word.text))


# -- reading the tables ------------------------------------------------------------------------------


def _phrases(language: str) -> Iterator[tuple[str, Any, str]]:
    """(kind, value, phrase) of one language; the more particular first."""
    own = ENGLISH if language == "en" else OTHERS.get(language, ())
    table = _library(language) if language != "en" else {}
    yield from _counting(table)
    for kind, value, phrases in own:
        yield from ((kind, value, phrase) for phrase in phrases.split(", "))
    yield from _joined(own, table)
    yield from _names(table, language in OTHERS)
    for found, phrases in table.get("relative-type", {}).items():
        if (moved := _RELATIVE.fullmatch(found)) and moved[3] in _UNITS:
            sign = 1 if moved[1] else -1
            for phrase in phrases:
                if UNSPACED.search(phrase) is None and (
                    (len(phrase) < 4 and language not in OTHERS) or len(phrase.split()[-1]) == 1
                ):
                    continue  # too short to be safe among so many languages
                yield "relative", (moved[3], sign * int(moved[2])), phrase
    for unit in _UNITS:
        names = table.get(unit, ())
        yield from (("unit", unit, one) for one in names if len(one) > 2 or _full(one, table[unit]))
    yield from (("number", value, word) for value, word in enumerate(NUMBERS.get(language, "").split(), 1))
    for replaced in table.get("simplifications", ()):
        for pattern, value in replaced.items():
            if _LETTERED.fullmatch(str(pattern)) and str(value).isdecimal() and 0 < int(value) < 100:
                yield "number", int(value), str(pattern)


def _counting(table: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """What stands before or after a number of units, from patterns such as ``il y a (number) jours``."""
    for found, patterns in table.get("relative-type-regex", {}).items():
        moved = _RELATIVE.fullmatch(found)
        if moved is None or moved[3] not in _UNITS:
            continue
        sign = 1 if moved[1] else -1
        units = sorted(table.get(moved[3], ()), key=len, reverse=True)
        for pattern in patterns:
            before, number, after = (part.strip() for part in _parted(pattern))
            if not number:
                continue
            if before:
                yield "head", sign, before
            unit = next((one for one in units if after.casefold().startswith(one.casefold())), "")
            if not UNSPACED.search(after):
                unit = after.split(" ")[0]  # in a case that the table of units may lack
                if len(unit) > 3:
                    yield "unit", moved[3], unit
            if unit and (tail := after[len(unit) :].strip()) and len(after) > len(unit):
                yield "ago", sign, tail


def _parted(pattern: str) -> tuple[str, str, str]:
    """What stands before the number in one of the library's patterns, the number's own, and what follows."""
    found = _DIGITS.search(pattern)
    return (pattern[: found.start()], found.group(), pattern[found.end() :]) if found else (pattern, "", "")


def _names(table: Mapping[str, Any], short: bool) -> Iterator[tuple[str, Any, str]]:
    for number, name in enumerate(_MONTHS, 1):
        for phrase in table.get(name, ()):
            full = _full(phrase, table[name])
            if full or (short and len(phrase) > 2):
                yield ("month" if full else "month?"), number, phrase
    for number, name in enumerate(_DAYS):
        longest = max(map(len, table.get(name, [""])))
        for phrase in table.get(name, ()):
            if len(phrase) == longest or (UNSPACED.search(phrase) and len(phrase) > 1 and "(" not in phrase):
                yield "weekday", number, phrase


def _full(phrase: str, all_of_it: list[str]) -> bool:
    """Whether a name is written out: not much shorter than the longest."""
    return bool(UNSPACED.search(phrase)) or len(phrase) > max(map(len, all_of_it)) - 2


def _joined(
    own: tuple[tuple[str, Any, str], ...], table: Mapping[str, Any]
) -> Iterator[tuple[str, Any, str]]:
    """In scripts without spaces "last" and "week" are one word, which must win over its parts."""
    units = [(value, one) for kind, value, text in own if kind == "unit" for one in text.split(", ")]
    units += [(unit, one) for unit in ("week", "month", "year") for one in table.get(unit, ())]
    mods = [(value, one) for kind, value, text in own if kind == "mod" for one in text.split(", ")]
    for (unit, name), (moved, mod) in itertools.product(units, mods):
        if UNSPACED.search(name) and UNSPACED.search(mod):
            yield "relative", (unit, moved), mod + name
    days = [(number, name) for kind, number, name in _names(table, False) if kind == "weekday"]
    for (number, name), (moved, mod) in itertools.product(days, mods):
        if UNSPACED.search(name) and UNSPACED.search(mod):
            yield "weekday of", (moved, number), mod + name


@functools.cache
def _library(language: str) -> Mapping[str, Any]:
    """dateparser's table of a language, read without importing dateparser itself."""
    package = importlib.util.find_spec("dateparser")
    if package is None or package.origin is None:
        return {}
    path = Path(package.origin).parent / "data" / "date_translation_data" / f"{language}.py"
    spec = importlib.util.spec_from_file_location(f"_hmem_dates_{language}", path)
    if spec is None or spec.loader is None or not path.exists():
        return {}
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    table: Mapping[str, Any] = module.info
    return table


def _cut(phrase: str) -> tuple[str, ...]:
    return tuple(word.text for word in split(phrase))


@functools.cache
def _functions() -> dict[str, frozenset[str]]:
    """Function words by language code, folded."""
    return {
        code: frozenset(word.text for text in STOP_WORDS.get(name, ()) for word in split(text))
        for code, name in LANGUAGES.items()
        if name in STOP_WORDS
    }


def _rivals(words: tuple[str, ...], language: str) -> tuple[str, ...]:
    if len(words) > 1 or language == "en" or UNSPACED.search(words[0]):
        return ()
    return tuple(code for code, some in _functions().items() if code != language and words[0] in some)


def _speaks(words: list[Word], entry: _Entry) -> bool:
    """Whether a text is rather in the entry's language than in one where its word is a function word."""
    texts = {word.text for word in words} - {*entry.words}
    if not texts:
        return True
    counts = {code: len(texts & some) for code, some in _functions().items()}
    return counts.get(entry.language, 0) > max(counts.get(rival, 0) for rival in entry.rivals)
