"""BM25 over postings: for each term, the turns that have it.

Postings lie in two places. The base is sorted by term and compact, read-only as a checkpoint maps it. Behind
it, new ones wait in a tail, in the order they came, each linked to the one before it of the same term. So a
turn is added at the cost of its terms, a query costs the postings of its terms, and a tail that has grown is
merged into a new base. Where a posting lies changes no bit of a score.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_kernels._kernel import frozen, kernel

__all__ = ["Postings", "Tail", "add_postings", "bm25", "latest_postings", "merge_postings"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
OffsetArray = npt.NDArray[np.int64]
MaskArray = npt.NDArray[np.uint8]


class Postings(NamedTuple):
    """The base: the postings of term t are those from `offsets[t]` to before `offsets[t + 1]`."""

    offsets: OffsetArray
    """One more than there are terms."""
    turns: IntArray
    """Rising, for each term."""
    weights: FloatArray
    """How often the turn has the term, or any other weight above 0."""

    def frozen(self) -> Postings:
        """As input."""
        return Postings(frozen(self.offsets), frozen(self.turns), frozen(self.weights))


class Tail(NamedTuple):
    """Postings newer than the base's, and terms newer too."""

    latest: IntArray
    """For each term of base or tail its latest posting here, or -1."""
    earlier: IntArray
    """For each posting the one before it of the same term, or -1."""
    turns: IntArray
    weights: FloatArray

    def frozen(self) -> Tail:
        """As input."""
        return Tail(frozen(self.latest), frozen(self.earlier), frozen(self.turns), frozen(self.weights))


def _postings() -> tuple[Postings, Tail]:
    """Terms 0 and 1 in the base, 1 and 2 in the tail, which has room for two more."""
    base = Postings(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), np.array([1.0, 2.0, 1.0], np.float32))
    tail = Tail(
        np.array([-1, 1, 0], np.int32),
        np.array([-1, -1, 0, 0], np.int32),
        np.array([2, 3, 0, 0], np.int32),
        np.array([1.0, 3.0, 0.0, 0.0], np.float32),
    )
    return base, tail


def _add_examples() -> Iterator[tuple[Any, ...]]:
    for terms in ([], [1, 0]):
        weights = frozen(np.ones(len(terms), np.float32))
        yield frozen(np.array(terms, np.int32)), weights, 4, 2, _postings()[1]


@kernel(examples=_add_examples)
def add_postings(terms: IntArray, weights: FloatArray, turn: int, used: int, tail: Tail) -> int:
    """Add a turn's postings to the tail; returns how many it then has.

    terms    int32 (n,), each once
    weights  float32 (n,)
    turn     higher than that of any posting of these terms
    used     how many postings the tail has; it has room for n more
    tail     updated
    """
    for i in range(terms.size):
        term = terms[i]
        tail.earlier[used] = tail.latest[term]
        tail.turns[used] = turn
        tail.weights[used] = weights[i]
        tail.latest[term] = used
        used += 1
    return used


@kernel
def _gain(
    most: np.float32, weight: np.float32, length: np.float32, flat: np.float32, slope: np.float32
) -> np.float32:
    return most * weight / (weight + flat + slope * length)


def _bm25_examples() -> Iterator[tuple[Any, ...]]:
    base, tail = _postings()
    for terms in ([], [2, 0, 1]):
        for live in ([], [1, 0, 1, 1]):
            yield (
                frozen(np.array(terms, np.int32)),
                frozen(np.ones(len(terms), np.float32)),
                base.frozen(),
                tail.frozen(),
                frozen(np.array([1, 3, 1, 3], np.float32)),
                frozen(np.array(live, np.uint8)),
                2.0,
                1.2,
                0.75,
                np.zeros(4, np.float32),
            )


@kernel(examples=_bm25_examples)
def bm25(
    terms: IntArray,
    idf: FloatArray,
    base: Postings,
    tail: Tail,
    lengths: FloatArray,
    live: MaskArray,
    average: float,
    k1: float,
    b: float,
    scores: FloatArray,
) -> None:
    """Add to each turn's score what the terms of a query give it.

    terms    int32 (n,): the query's, all of them known to the tail
    idf      float32 (n,): the weight of each
    base     read
    tail     read
    lengths  float32 (turns,): the sum of the weights of each turn
    live     uint8 (turns,): a turn with 0 gains nothing; of length 0, every turn is live
    average  of the lengths, above 0 if there are postings
    scores   float32 (turns,), updated

    A term gives idf · w · (k1 + 1) / (w + k1 · (1 - b + b · length / average)) to a turn that has it with
    weight w (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009).
    """
    masked = live.size > 0
    flat, slope = np.float32(k1 * (1.0 - b)), np.float32(k1 * b / average)
    for i in range(terms.size):
        term = terms[i]
        most = idf[i] * np.float32(k1 + 1.0)
        if term < base.offsets.size - 1:
            for p in range(base.offsets[term], base.offsets[term + 1]):
                turn = np.uint32(base.turns[p])
                if not masked or live[turn] != 0:
                    scores[turn] += _gain(most, base.weights[p], lengths[turn], flat, slope)
        posting = tail.latest[term]
        while posting >= 0:
            turn = np.uint32(tail.turns[posting])
            if not masked or live[turn] != 0:
                scores[turn] += _gain(most, tail.weights[posting], lengths[turn], flat, slope)
            posting = tail.earlier[posting]


@kernel
def _reverse(postings: Postings, first: int, last: int) -> None:
    turns, weights = postings.turns, postings.weights
    while first < last:
        turns[first], turns[last] = turns[last], turns[first]
        weights[first], weights[last] = weights[last], weights[first]
        first += 1
        last -= 1


def _merge_examples() -> Iterator[tuple[Any, ...]]:
    for live in ([], [1, 0, 1, 1]):
        base, tail = _postings()
        room = len(base.turns) + len(tail.turns)
        merged = Postings(np.zeros(4, np.int64), np.zeros(room, np.int32), np.zeros(room, np.float32))
        yield frozen(np.array(live, np.uint8)), base.frozen(), tail.frozen(), merged


@kernel(examples=_merge_examples)
def merge_postings(live: MaskArray, base: Postings, tail: Tail, merged: Postings) -> int:
    """Write base and tail as one base, without the postings of turns that are not live; returns how many.

    live    uint8 (turns,): 0 for a turn to drop; of length 0, every turn is live
    base    read
    tail    read
    merged  written: an offset more than the tail knows terms, and room for all postings of both
    """
    masked = live.size > 0
    size = 0
    merged.offsets[0] = 0
    for term in range(tail.latest.size):
        if term < base.offsets.size - 1:
            for p in range(base.offsets[term], base.offsets[term + 1]):
                if not masked or live[np.uint32(base.turns[p])] != 0:
                    merged.turns[size] = base.turns[p]
                    merged.weights[size] = base.weights[p]
                    size += 1
        first = size
        posting = tail.latest[term]
        while posting >= 0:
            if not masked or live[np.uint32(tail.turns[posting])] != 0:
                merged.turns[size] = tail.turns[posting]
                merged.weights[size] = tail.weights[posting]
                size += 1
            posting = tail.earlier[posting]
        # The latest came first and belongs last.
        _reverse(merged, first, size - 1)
        merged.offsets[term + 1] = size
    return size


def _latest_examples() -> Iterator[tuple[Any, ...]]:
    base, tail = _postings()
    for terms in ([], [2, -1, 1, 0]):
        n = len(terms)
        numbers = frozen(np.array(terms, np.int32))
        written = (np.zeros(n, np.int64), np.zeros(n, np.int32), np.zeros((n, 2), np.int32))
        yield numbers, base.frozen(), tail.frozen(), 10, *written


@kernel(examples=_latest_examples)
def latest_postings(
    terms: IntArray,
    base: Postings,
    tail: Tail,
    first: int,
    found: OffsetArray,
    held: IntArray,
    turns: IntArray,
) -> None:
    """Of each term, count the turns that have it, and write the latest of them.

    terms  int32 (n,): -1 for a term that is in neither base nor tail
    first  added to the number of each turn
    found  int64 (n,), updated: how many turns
    held   int32 (n,), updated: how many of `turns` are written
    turns  int32 (n, most), updated: the latest first, as far as there is room
    """
    for i in range(terms.size):
        if terms[i] < 0:
            continue
        term = np.uint32(terms[i])
        posting = tail.latest[term] if term < tail.latest.size else np.int32(-1)
        while posting >= 0:
            found[i] += 1
            if held[i] < turns.shape[1]:
                turns[i, held[i]] = first + tail.turns[posting]
                held[i] += 1
            posting = tail.earlier[posting]
        if term + 1 < base.offsets.size:
            start, p = base.offsets[term], base.offsets[term + 1]
            found[i] += p - start
            while p > start and held[i] < turns.shape[1]:
                p -= 1
                turns[i, held[i]] = first + base.turns[p]
                held[i] += 1
