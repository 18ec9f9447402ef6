"""Understanding a query: times beside dateparser, names in a large roster, and everything together.

pytest bench/micro/bench_understanding.py -o python_files='bench_*.py'
"""

from __future__ import annotations

import datetime as dt
import warnings
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hmem_core.retrieval.understanding import Roster, kind, resolve, understand
from hmem_core.retrieval.understanding.lexicon import LANGUAGES, Lexicon

NOW = dt.datetime(2024, 5, 15, 10, 30, tzinfo=dt.UTC)
QUERIES = {
    "no time": "What did Ida and Zoé cook when they met their neighbours from the rowing club in Porto?",
    "a date": "What did Ida and Zoé cook on the 3rd of November 2023 in Porto?",
    "relative": "What did Ida and Zoé cook a couple of weeks ago in Porto?",
    "Chinese": "伊达和佐伊上个星期三在波尔图做了什么菜？",
    "5 MB": "What did Ida cook last week? " + "pasta " * 900_000,
}
SETTINGS = {"RELATIVE_BASE": NOW.replace(tzinfo=None), "PREFER_DATES_FROM": "past"}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("way", ["ours, 38 languages", "dateparser, 1 language", "dateparser, 7 languages"])
def test_times(benchmark: BenchmarkFixture, way: str, query: str) -> None:
    from dateparser.search import search_dates

    benchmark.group = f"times in a query: {query}"
    text = QUERIES[query]
    languages = ["en", "es", "fr", "de", "it", "ru", "zh"] if way.endswith("7 languages") else ["en"]

    def library() -> Any:
        return search_dates(text[:512], languages=languages, settings=SETTINGS)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        benchmark((lambda: resolve(text, NOW)) if way.startswith("ours") else library)


@pytest.mark.parametrize("people", [10, 1_000, 100_000])
def test_names(benchmark: BenchmarkFixture, people: int) -> None:
    benchmark.group = "names in a query, by the number of names known"
    names = [f"{_letters(number)} {_letters(number * 7)}" for number in range(people)]
    roster = Roster(names, ["user"])
    found = benchmark(
        lambda: roster.find(f"What did I hear from {names[7]} of {names[9]} and the rowing club?")
    )
    assert len(found) == 3


def _letters(number: int) -> str:
    return "N" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


@pytest.mark.parametrize("part", ["all", "kind"])
def test_understand(benchmark: BenchmarkFixture, part: str) -> None:
    benchmark.group = "understanding a query"
    roster = Roster(["Ida", "Zoé"], ["user", "assistant"])
    text = QUERIES["a date"]
    benchmark((lambda: understand(text, NOW, names=roster)) if part == "all" else lambda: kind(text))


def test_load(benchmark: BenchmarkFixture) -> None:
    benchmark.group = "loading the phrase book of all languages, once a process"
    benchmark.pedantic(lambda: Lexicon(LANGUAGES), rounds=3, warmup_rounds=1)
