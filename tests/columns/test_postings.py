"""Postings by block, against BM25 written out over texts."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmem_core.columns import postings
from hmem_core.columns.postings import PostingColumns
from hmem_core.columns.terms import Analyzer

analyzer = Analyzer()
WORDS = ["apple", "bread", "cheese", "dates", "🧠", "波尔图", "кошка"]
documents = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), max_size=25)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "BLOCK_ROWS", 8)
    monkeypatch.setattr(postings, "_TAIL_TURNS", 3)


def expected(texts: list[str | None], query: str, k1: float, b: float) -> list[float]:
    """BM25 of each text; None stands for a forgotten one."""
    bags = [Counter(term for term, _ in analyzer.words(text or "")) for text in texts]
    lengths = [sum(counted for _, counted in analyzer.words(text or "")) for text in texts]
    live = sum(text is not None for text in texts)
    average = sum(lengths) / live if live else 0
    scores = [0.0] * len(texts)
    if not average:
        return scores
    for term in {term for term, _ in analyzer.words(query, query=True)}:
        having = sum(term in bag for bag in bags)
        weight = math.log(1 + (live - having + 0.5) / (having + 0.5))
        for row, bag in enumerate(bags):
            if tf := bag[term]:
                scores[row] += weight * tf * (k1 + 1) / (tf + k1 * (1 - b + b * lengths[row] / average))
    return scores


class Index:
    def __init__(self) -> None:
        self.columns = PostingColumns()
        self.texts: list[str | None] = []
        self.lengths: list[float] = []

    def add(self, text: str) -> None:
        hashes, counts, length = analyzer.count(text)
        self.columns.append(len(self.texts), hashes, counts)
        self.texts.append(text)
        self.lengths.append(length)

    def erase(self, rows: list[int]) -> None:
        self.columns.erase(rows)
        for row in rows:
            self.texts[row], self.lengths[row] = None, 0.0

    def search(self, query: str, k1: float = 1.2, b: float = 0.75) -> np.ndarray:
        live = np.array([text is not None for text in self.texts], np.uint8)
        lengths = np.array(self.lengths, np.float32)
        return self.columns.view().bm25(analyzer.query(query), lengths, live, live, k1=k1, b=b)


@settings(max_examples=150)
@given(documents, st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join), st.data())
def test_scores_are_those_of_the_formula(texts: list[str], query: str, data: st.DataObject) -> None:
    index = Index()
    for text in texts:
        index.add(text)
        if data.draw(st.booleans()):
            index.columns.view()
    gone = data.draw(st.lists(st.sampled_from(range(len(texts))), unique=True)) if texts else []
    index.erase(gone)
    assert index.search(query) == pytest.approx(expected(index.texts, query, 1.2, 0.75), abs=1e-5)


@given(documents, st.sets(st.integers(0, 24)))
def test_erasing_and_never_adding_end_in_the_same_arrays(texts: list[str], gone: set[int]) -> None:
    rows = sorted(row for row in gone if row < len(texts))
    erased, never = Index(), Index()
    for row, text in enumerate(texts):
        erased.add(text)
        never.add("" if row in gone else text)
    erased.erase(rows)
    found, wanted = erased.columns.arrays(), never.columns.arrays()
    assert found.keys() == wanted.keys()
    assert all(found[name].tobytes() == wanted[name].tobytes() for name in wanted)


@given(documents, documents)
def test_restoring_and_going_on(before: list[str], after: list[str]) -> None:
    index = Index()
    for text in before:
        index.add(text)
    blocks = range(-(-len(before) // 8))
    batches = [(index.columns.terms_batch(block), index.columns.postings_batch(block)) for block in blocks]
    restored = Index()
    restored.columns = PostingColumns.restore(batches)
    restored.texts, restored.lengths = list(index.texts), list(index.lengths)
    for text in after:
        index.add(text)
        restored.add(text)
    for word in WORDS:
        assert restored.search(word).tobytes() == index.search(word).tobytes()


def test_a_view_does_not_see_what_comes_later() -> None:
    index = Index()
    for number in range(20):
        view = index.columns.view()
        lengths = np.array(index.lengths, np.float32)
        live = np.ones(number, np.uint8)
        index.add("apple")
        scores = view.bm25(analyzer.query("apple"), lengths, live, live, k1=1.2, b=0.75)
        assert scores.shape == (number,)
        assert (scores > 0).all()
