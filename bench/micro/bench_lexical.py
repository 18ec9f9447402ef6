"""BM25 over n turns, adding one, and merging a tenth of them, beside NumPy and SciPy.

    pytest bench/micro/bench_lexical.py -o python_files='bench_*.py'

`HMEM_BENCH_LARGE=1` adds a million turns. Turns have 12 words of a vocabulary of 20,000, as frequent as words
of a language are; a query has five terms, from common to rare. SciPy multiplies with a matrix of BM25 weights
made beforehand, which the next turn would change, as it changes the average length.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse
from pytest_benchmark.fixture import BenchmarkFixture

from hmem_kernels import frozen
from hmem_kernels.lexical import Postings, Tail, add_postings, bm25, merge_postings

FloatArray = npt.NDArray[np.float32]

SIZES = [1_000, 10_000, 100_000] + [1_000_000] * bool(os.environ.get("HMEM_BENCH_LARGE"))
VOCABULARY = 20_000
LENGTH = 12
QUERY = frozen(np.array([3, 30, 300, 3_000, 10_000], np.int32))
IDF = frozen(np.array([0.5, 1.0, 2.0, 3.0, 4.0], np.float32))
K1, B = 1.2, 0.75
NO_MASK = frozen(np.zeros(0, np.uint8))


class Turns(NamedTuple):
    """Every posting, sorted by turn."""

    n: int
    terms: npt.NDArray[np.int32]
    turns: npt.NDArray[np.int32]
    weights: FloatArray

    @property
    def lengths(self) -> FloatArray:
        return np.bincount(self.turns, self.weights, self.n).astype(np.float32)


@pytest.fixture(scope="module", params=SIZES)
def turns(request: pytest.FixtureRequest) -> Turns:
    n = request.param
    words = (np.random.default_rng(0).zipf(1.2, (n, LENGTH)) - 1) % VOCABULARY
    keys, counts = np.unique(words + VOCABULARY * np.arange(n)[:, None], return_counts=True)
    terms, owners = (keys % VOCABULARY).astype(np.int32), (keys // VOCABULARY).astype(np.int32)
    return Turns(n, terms, owners, counts.astype(np.float32))


def split(turns: Turns, tail_share: float) -> tuple[Postings, Tail]:
    """Postings of the last turns in the tail, of the others in the base."""
    first = round(turns.n * (1 - tail_share))
    at = int(np.searchsorted(turns.turns, first))
    order = np.argsort(turns.terms[:at], kind="stable")
    ends = np.bincount(turns.terms[:at], minlength=VOCABULARY).cumsum()
    base = Postings(np.concatenate([[0], ends]), turns.turns[order], turns.weights[order])
    tail = new_tail(len(turns.turns) - at)
    used = 0
    bounds = np.searchsorted(turns.turns, np.arange(first, turns.n + 1))
    for turn, (start, stop) in enumerate(pairwise(bounds), first):
        terms, weights = frozen(turns.terms[start:stop]), frozen(turns.weights[start:stop])
        used = add_postings(terms, weights, turn, used, tail)
    return base.frozen(), tail.frozen()


def new_tail(room: int) -> Tail:
    earlier, owners, weights = (np.zeros(room, dtype) for dtype in (np.int32, np.int32, np.float32))
    return Tail(np.full(VOCABULARY, -1, np.int32), earlier, owners, weights)


def weight_matrix(turns: Turns, lengths: FloatArray) -> Any:
    w = turns.weights
    saturation = K1 * (1 - B + B * lengths[turns.turns] / lengths.mean())
    values = (w * (K1 + 1) / (w + saturation)).astype(np.float32)
    return scipy.sparse.csr_array((values, (turns.terms, turns.turns)), (VOCABULARY, turns.n))


@pytest.mark.parametrize("way", ["kernel", "kernel, tenth in tail", "numpy", "scipy"])
def test_query(benchmark: BenchmarkFixture, turns: Turns, way: str) -> None:
    benchmark.group = f"BM25 over {turns.n:,} turns"
    base, tail = split(turns, 0.1 if "tail" in way else 0.0)
    whole, _ = split(turns, 0.0)
    lengths = frozen(turns.lengths)
    average = float(lengths.mean())
    scores = np.zeros(turns.n, np.float32)
    matrix = weight_matrix(turns, lengths)
    query = scipy.sparse.csr_array((IDF, (np.zeros(len(QUERY), int), QUERY)), (1, VOCABULARY))

    def kernel() -> FloatArray:
        scores[:] = 0
        bm25(QUERY, IDF, base, tail, lengths, NO_MASK, average, K1, B, scores)
        return scores

    def numpy() -> FloatArray:
        scores[:] = 0
        for term, idf in zip(QUERY, IDF, strict=True):
            run = slice(whole.offsets[term], whole.offsets[term + 1])
            owners, w = whole.turns[run], whole.weights[run]
            scores[owners] += idf * w * (K1 + 1) / (w + K1 * (1 - B + B * lengths[owners] / average))
        return scores

    def scipy_() -> FloatArray:
        found: FloatArray = (query @ matrix).toarray()[0]
        return found

    expected = numpy().copy()
    np.testing.assert_allclose(kernel(), expected, rtol=1e-4)
    np.testing.assert_allclose(scipy_(), expected, rtol=1e-4)
    benchmark({"numpy": numpy, "scipy": scipy_}.get(way, kernel))


def test_add_one_turn(benchmark: BenchmarkFixture, turns: Turns) -> None:
    benchmark.group = "add the postings of a turn"
    tail = new_tail(len(turns.turns))
    stop = int(np.searchsorted(turns.turns, 1))
    terms, weights = frozen(turns.terms[:stop]), frozen(turns.weights[:stop])
    benchmark(add_postings, terms, weights, turns.n, len(turns.turns) - stop, tail)


@pytest.mark.parametrize("way", ["kernel", "numpy", "scipy"])
def test_merge(benchmark: BenchmarkFixture, turns: Turns, way: str) -> None:
    benchmark.group = f"merge a tenth of {turns.n:,} turns"
    base, tail = split(turns, 0.1)
    room = len(turns.turns)
    at = len(base.turns)
    merged = Postings(
        np.zeros(VOCABULARY + 1, np.int64), np.zeros(room, np.int32), np.zeros(room, np.float32)
    )

    def kernel() -> Postings:
        merge_postings(NO_MASK, base, tail, merged)
        return merged

    def numpy() -> Postings:
        terms = np.concatenate([np.repeat(np.arange(VOCABULARY), np.diff(base.offsets)), turns.terms[at:]])
        order = np.argsort(terms, kind="stable")
        owners, weights = (
            np.concatenate(pair)[order] for pair in ((base.turns, tail.turns), (base.weights, tail.weights))
        )
        ends = np.bincount(terms, minlength=VOCABULARY).cumsum()
        return Postings(np.concatenate([[0], ends]), owners, weights)

    def scipy_() -> Postings:
        shape = (VOCABULARY, turns.n)
        old = scipy.sparse.csr_array((base.weights, base.turns, base.offsets), shape)
        new = scipy.sparse.csr_array((turns.weights[at:], (turns.terms[at:], turns.turns[at:])), shape)
        both = old + new
        return Postings(both.indptr, both.indices, both.data)

    for other in (numpy(), scipy_()):
        for ours, theirs in zip(kernel(), other, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    benchmark({"kernel": kernel, "numpy": numpy, "scipy": scipy_}[way])
