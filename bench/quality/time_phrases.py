"""How well times in texts are understood: ours beside dateparser alone. No model.

    python -m bench.quality.time_phrases query_analyzer_golden.json [--split dev] [--json OUT]

The file maps ``now \\x1f phrase`` to ``[start, end]`` or null. Phrases are split in halves by the hash of
their text: rules were written with the *dev* half in sight, the *test* half was only counted. A phrase is
*exact* if the first interval found covers the same days (or null is null); of those that have an interval,
*overlap* is the mean intersection over union in time, and *touching* the share where what was found has a day
of it; of those that have none, *null* is the share in which none is found. "dateparser alone" is its
`search_dates` in the languages of the file, past dates preferred: it finds a moment, which counts as its day,
or as its month if that is all the text says.

Languages are told by script or by the words of time in a phrase; one without any is "none told". Words that
languages share go to the more spoken one.
"""

from __future__ import annotations

import argparse
import calendar
import datetime as dt
import hashlib
import json
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import regex

from bench.quality.tables import markdown
from hmem_core.retrieval.understanding import resolve
from hmem_core.retrieval.understanding.lexicon import LANGUAGES, lexicon
from hmem_core.retrieval.understanding.words import split

__all__ = ["Phrase", "half", "language_of", "load", "main", "measure"]

Span = tuple[int, int] | None
"""[start, end) in UTC microseconds."""

SPLITS = ("dev", "test")
LIBRARY_LANGUAGES = ["en", "es", "fr", "de", "it", "ru", "zh"]
_SCRIPTS = {"zh": regex.compile(r"\p{Han}"), "ru": regex.compile(r"\p{Cyrillic}")}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY = 86_400_000_000


class Phrase(NamedTuple):
    """A text, when it was said, and what it means."""

    now: dt.datetime
    text: str
    gold: Span


def load(path: Path) -> list[Phrase]:
    """All phrases of the file."""
    found = []
    for key, value in json.loads(path.read_text(encoding="utf-8")).items():
        now, _, text = key.partition("\x1f")
        gold = None
        if value is not None:
            start, end = (_micros(dt.datetime.fromisoformat(one)) for one in value)
            # Days are whole; ends are given as their last moment.
            gold = start - start % _DAY, end - end % _DAY + _DAY
        found.append(Phrase(dt.datetime.fromisoformat(now).replace(tzinfo=dt.UTC), text, gold))
    return found


def half(text: str) -> str:
    """``dev`` or ``test``, by the SHA-256 of the phrase."""
    return SPLITS[hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[0] % 2]


def language_of(text: str) -> str:
    """Code of the language, where script or a word of time tells it."""
    for code, script in _SCRIPTS.items():
        if script.search(text):
            return code
    items = lexicon().items(split(text))
    telling = [item.language for item in items if item.language and item.kind not in ("number", "the", "at")]
    codes = [code for code in dict.fromkeys(telling) if code in LANGUAGES and code != "en"]
    return codes[0] if codes else "en" if telling else "none told"


def _micros(moment: dt.datetime) -> int:
    return (moment.replace(tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1)


# -- the two ways ------------------------------------------------------------------------------------


def ours(phrase: Phrase) -> Span:
    """The days of the first time found."""
    found = resolve(phrase.text, phrase.now)
    if not found:
        return None
    start, last = found[0].start, found[0].end - 1
    return start - start % _DAY, last - last % _DAY + _DAY


def library(phrase: Phrase) -> Span:
    """The first time that `dateparser.search` finds."""
    from dateparser.search import search_dates

    settings = {"RELATIVE_BASE": phrase.now.replace(tzinfo=None), "PREFER_DATES_FROM": "past"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = search_dates(phrase.text[:512], languages=LIBRARY_LANGUAGES, settings=settings)
        except Exception:  # what it cannot read it sometimes raises on
            return None
    if not found:
        return None
    text, moment = found[0]
    day = dt.datetime(moment.year, moment.month, moment.day)
    start = _micros(day)
    if (
        len(re.findall(r"\d+", text)) == 1
        and re.search(r"\d{4}", text)
        and re.search(r"[^\W\d_]{3,}|月", text)
    ):
        first = day.replace(day=1)  # a month and its year
        return _micros(first), _micros(first) + calendar.monthrange(first.year, first.month)[1] * _DAY
    return start, start + _DAY


WAYS: dict[str, Callable[[Phrase], Span]] = {"ours": ours, "dateparser alone": library}


# -- measuring ---------------------------------------------------------------------------------------


def _overlap(found: Span, gold: Span) -> float:
    if found is None or gold is None:
        return 0.0
    both = min(found[1], gold[1]) - max(found[0], gold[0])
    either = max(found[1], gold[1]) - min(found[0], gold[0])
    return max(both, 0) / either


def measure(
    phrases: Sequence[Phrase], splits: Sequence[str] = SPLITS, ways: Sequence[str] = tuple(WAYS)
) -> dict[str, Any]:
    """The report: a row a way, split and language ("all" among them)."""
    rows = []
    for way in ways:
        for part in splits:
            chosen = [phrase for phrase in phrases if half(phrase.text) == part]
            WAYS[way](Phrase(dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "yesterday", None))  # load the tables
            began = time.perf_counter()
            answers = [WAYS[way](phrase) for phrase in chosen]
            each = (time.perf_counter() - began) / max(len(chosen), 1)
            told = [language_of(phrase.text) for phrase in chosen]
            for code in ("all", *sorted(set(told))):
                some = [
                    (phrase, answer)
                    for phrase, answer, own in zip(chosen, answers, told, strict=True)
                    if code in ("all", own)
                ]
                if some:
                    rows.append(
                        {"way": way, "split": part, "language": code, **_figures(some), "ms": each * 1e3}
                    )
    return {"rows": rows}


def _figures(some: Sequence[tuple[Phrase, Span]]) -> dict[str, Any]:
    dated = [(answer, phrase.gold) for phrase, answer in some if phrase.gold is not None]
    undated = [answer for phrase, answer in some if phrase.gold is None]
    return {
        "phrases": len(some),
        "exact": fmean(answer == phrase.gold for phrase, answer in some),
        "exact, dated": fmean(a == b for a, b in dated) if dated else None,
        "overlap": fmean(_overlap(a, b) for a, b in dated) if dated else None,
        "touching": fmean(_overlap(a, b) > 0 for a, b in dated) if dated else None,
        "null": fmean(answer is None for answer in undated) if undated else None,
    }


def tables(report: dict[str, Any]) -> Iterator[str]:
    """Overall figures, and exactness by language."""
    rows = report["rows"]
    figures = ("phrases", "exact", "exact, dated", "overlap", "touching", "null", "ms")
    yield markdown(
        ["", "split", *figures],
        (
            [row["way"], row["split"], *("–" if row[name] is None else row[name] for name in figures)]
            for row in rows
            if row["language"] == "all"
        ),
    )
    for part in dict.fromkeys(row["split"] for row in rows):
        of = [row for row in rows if row["split"] == part and row["language"] != "all"]
        codes = {row["language"]: row["phrases"] for row in of}
        yield markdown(
            [f"exact, {part}", *(f"{code} ({count})" for code, count in codes.items())],
            (
                [way, *(row["exact"] for row in of if row["way"] == way)]
                for way in dict.fromkeys(r["way"] for r in of)
            ),
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quality.time_phrases",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, help="query_analyzer_golden.json")
    parser.add_argument("--split", choices=("all", *SPLITS), default="all", help="the half to ask")
    parser.add_argument("--json", type=Path, help="write all figures there")
    options = parser.parse_args(arguments)
    try:
        phrases = load(options.file)
    except OSError as error:
        parser.error(f"{options.file} cannot be read: {error}")
    except (AttributeError, TypeError, ValueError) as error:
        parser.error(f"{options.file} is not in the format of this data set: {error!r}")
    report = measure(phrases, SPLITS if options.split == "all" else (options.split,))
    print("\n\n".join(tables(report)))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"All figures: {options.json}")


if __name__ == "__main__":
    main()
