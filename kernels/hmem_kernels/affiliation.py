"""Events and the turns that belong to them: what a turn is about, and the sums that stand for events. Ours.

A short turn says little by itself. So what is compared is its *context*: the direction of its vector and
those of the few turns before it in its session, each of these counting less the further back it is. An event
is the sum of the contexts of its turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hmem_kernels._kernel import REORDER, frozen, kernel

__all__ = ["add_contexts", "affiliate", "contexts", "gather_bits", "lend_events", "score_events"]

FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
MaskArray = npt.NDArray[np.uint8]
BitArray = npt.NDArray[np.uint64]


def _context_examples() -> Iterator[tuple[Any, ...]]:
    weights = frozen(np.array([1, 0.5, 0.25], np.float32))
    vectors = np.arange(12, dtype=np.float32).reshape(4, 3)
    vectors[2] = 0
    for rows, place in ((4, [[1, 0, -1], [3, 2, 1], [2, -1, -1], [-1, -1, -1]]), (0, [[-1, -1, -1]])):
        places = frozen(np.array(place, np.int32))
        yield (
            frozen(vectors[:rows]),
            places,
            weights,
            np.zeros((len(places), 3), np.float32),
            np.zeros(len(places), np.float32),
        )


@kernel(examples=_context_examples)
def contexts(
    vectors: FloatArray, place: IntArray, weights: FloatArray, out: FloatArray, length: FloatArray
) -> None:
    """Write the context of each turn, of length 1, or 0 where there is nothing.

    vectors  float32 (m, d)
    place    int32 (n, depth): rows of `vectors`: the turn itself, the one before it, …; -1 for none. A turn
             without a place of its own has no context.
    weights  float32 (depth,): what each of them counts
    out      float32 (n, d), written
    length   float32 (n,), written: what each context was divided by
    """
    for i in range(place.shape[0]):
        row = out[i]
        row[:] = 0.0
        length[i] = 0.0
        if place[i, 0] < 0:
            continue
        for j in range(place.shape[1]):
            if place[i, j] >= 0:
                other = vectors[np.uint32(place[i, j])]
                weight = weights[j]
                for k in range(row.size):
                    row[k] += weight * other[k]
        square = np.float64(0.0)
        for k in range(row.size):
            square += np.float64(row[k]) * np.float64(row[k])
        if square > 0.0:
            length[i] = np.sqrt(square)
            scale = np.float32(1.0 / np.sqrt(square))
            for k in range(row.size):
                row[k] *= scale


def _add_examples() -> Iterator[tuple[Any, ...]]:
    rows = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
    for n, turns, events in ((3, [0, 1, 1, 2], [0, 0, 1, 0]), (0, [], [])):
        which, event = (frozen(np.array(column, np.int32)) for column in (turns, events))
        yield frozen(rows[:n]), which, event, np.zeros((2, 2), np.float32), np.zeros(2, np.float32)


@kernel(examples=_add_examples)
def add_contexts(
    rows: FloatArray, which: IntArray, event: IntArray, sums: FloatArray, norm: FloatArray
) -> None:
    """Add the contexts of turns to the sums of their events, one link after the other.

    rows   float32 (n, d): contexts
    which  int32 (links,): rows of `rows`
    event  int32 (links,): rows of `sums`
    sums   float32 (events, d), updated
    norm   float32 (events,), updated: the length of each sum
    """
    for i in range(which.size):
        row = rows[np.uint32(which[i])]
        e = np.uint32(event[i])
        total = sums[e]
        square = np.float64(0.0)
        for k in range(row.size):
            total[k] += row[k]
            square += np.float64(total[k]) * np.float64(total[k])
        norm[e] = np.sqrt(square)


@kernel(fastmath=REORDER)
def _dot(a: FloatArray, b: FloatArray) -> np.float32:
    total = np.float32(0.0)
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@kernel
def _touch(order: IntArray, held: int, slot: int) -> int:
    """Move `slot` to the front of `order`, whose last entry falls out where it is full; returns how many
    there are."""
    place = 0
    while place < held and order[place] != slot:
        place += 1
    if place == held:
        if held < order.size:
            held += 1
        else:
            place -= 1
    for i in range(place, 0, -1):
        order[i] = order[i - 1]
    if order.size:
        order[0] = slot
    return held


def _affiliate_examples() -> Iterator[tuple[Any, ...]]:
    rows = np.array([[1, 0], [0.8, 0.6], [0, 1], [0, 0], [0.6, 0.8]], np.float32)
    before = np.array([-1, 0, -1, 2, 1], np.int32)
    for n in (5, 0):
        known = np.full((n, 1), -1, np.int32)
        known[3:] = 0
        sums = np.zeros((n + 1, 2), np.float32)
        sums[0] = 0.5
        inputs = (rows[:n], np.full(n, 0.7, np.float32), before[:n], known, known)
        yield (
            *(frozen(column) for column in inputs),
            np.float32(0.1),
            1,
            1,
            np.array([0, -1], np.int32),
            sums,
            np.zeros(n + 1, np.float32),
            np.zeros(n, np.int32),
        )


@kernel(examples=_affiliate_examples)
def affiliate(
    rows: FloatArray,
    level: FloatArray,
    before: IntArray,
    known: IntArray,
    recalled: IntArray,
    continuity: np.float32,
    events: int,
    held: int,
    order: IntArray,
    sums: FloatArray,
    norm: FloatArray,
    chosen: IntArray,
) -> tuple[int, int]:
    """Choose the event of each turn, one after the other: the nearest that passes, or a new one.

    rows        float32 (n, d): contexts
    level       float32 (n,): the least cosine
    before      int32 (n,): the row of the turn before each in its session, -1 if it is not among them
    known       int32 (n, m): else the events of that turn, -1 for none
    recalled    int32 (n, r): further events to compare each turn with, -1 for none
    continuity  added to the cosine with events of the turn before
    events      how many there are
    held        how many of `order` there are
    order       int32 (recent,), updated: the events that got turns last, the latest first
    sums        float32 (events + n, d), updated: the sum of the contexts of each event
    norm        float32 (events + n,), written: the lengths of `sums`
    chosen      int32 (n,), written: events; new ones are numbered on

    Of equals, the event that got a turn last is taken. Returns how many events there are then, and how many
    were compared with turns. A turn costs O(d) for each of its candidates, however many events there are.
    """
    compared = 0
    for e in range(events):
        norm[e] = np.sqrt(_dot(sums[e], sums[e]))
    for i in range(rows.shape[0]):
        row = rows[i]
        best, highest = -1, np.float32(-np.inf)
        for place in range(held + recalled.shape[1]):
            e = order[place] if place < held else recalled[i, place - held]
            if e < 0:
                continue
            compared += 1
            value = _dot(row, sums[e]) / norm[e] if norm[e] > 0.0 else np.float32(0.0)
            if before[i] >= 0:
                if chosen[before[i]] == e:
                    value += continuity
            else:
                for j in range(known.shape[1]):
                    if known[i, j] == e:
                        value += continuity
                        break
            if value > highest:
                best, highest = e, value
        if best < 0 or highest < level[i]:
            best = events
            events += 1
        chosen[i] = best
        sums[best] += row
        norm[best] = np.sqrt(_dot(sums[best], sums[best]))
        held = _touch(order, held, best)
    return events, compared


_TURN, _EVENT = (frozen(np.array(column, np.int32)) for column in ([0, 1, 2, 2], [0, 0, 1, 0]))


def _score_examples() -> Iterator[tuple[Any, ...]]:
    odds, cosines = (frozen(np.array(column, np.float32)) for column in ([1, 0.5, 0.2], [0.3, 0.6, -0.1]))
    allowed, previous = frozen(np.array([1, 0, 1], np.uint8)), frozen(np.array([-1, 0, 1], np.int32))
    length, weights = frozen(np.array([1, 1.25, 0, 1.5], np.float32)), frozen(np.array([1, 0.5], np.float32))
    for links in (4, 0):
        written = (np.zeros(2), np.zeros(2), np.zeros(2, np.int32))
        yield (
            _TURN[:links],
            _EVENT[:links],
            length[:links],
            odds,
            cosines,
            allowed,
            previous,
            weights,
            *written,
        )


@kernel(examples=_score_examples)
def score_events(
    turn: IntArray,
    event: IntArray,
    length: FloatArray,
    odds: FloatArray,
    cosines: FloatArray,
    allowed: MaskArray,
    previous: IntArray,
    weights: FloatArray,
    total: DoubleArray,
    dots: DoubleArray,
    count: IntArray,
) -> None:
    """Add up over the turns of each event.

    turn      int32 (links,)
    event     int32 (links,)
    length    float32 (links,): what the context of the link's turn was divided by; 0 if it has none
    odds      float32 (turns,)
    cosines   float32 (turns,): dot products of the turns' vectors with a query
    allowed   uint8 (turns,)
    previous  int32 (turns,): the turn before each in its session, or -1
    weights   float32 (depth,): what each turn of a context counts
    total     float64 (events,), updated: odds of allowed turns
    dots      float64 (events,), updated: dot product of the sum of contexts with the query, so that events
              are scored without their vectors
    count     int32 (events,), updated: how many turns are allowed
    """
    for i in range(turn.size):
        t, e = np.uint32(turn[i]), np.uint32(event[i])
        if allowed[t] != 0:
            total[e] += odds[t]
            count[e] += 1
        if length[i] > 0.0:
            dot = np.float32(0.0)
            following = turn[i]
            for j in range(weights.size):
                if following < 0:
                    break
                dot += weights[j] * cosines[np.uint32(following)]
                following = previous[np.uint32(following)]
            dots[e] += dot / length[i]


def _lend_examples() -> Iterator[tuple[Any, ...]]:
    for links in (4, 0):
        scores = frozen(np.array([0.5, 0.7], np.float32))
        yield _TURN[:links], _EVENT[:links], scores, np.full(3, -9, np.float32)


@kernel(examples=_lend_examples)
def lend_events(turn: IntArray, event: IntArray, scores: FloatArray, lent: FloatArray) -> None:
    """Raise what each turn is lent to the score of the best of its events.

    turn    int32 (links,)
    event   int32 (links,)
    scores  float32 (events,)
    lent    float32 (turns,), updated
    """
    for i in range(turn.size):
        t = np.uint32(turn[i])
        lent[t] = max(lent[t], scores[np.uint32(event[i])])


def _bit_examples() -> Iterator[tuple[Any, ...]]:
    for links in (4, 0):
        bits, allowed = frozen(np.array([1, 2, 4], np.uint64)), frozen(np.array([1, 0, 1], np.uint8))
        yield _TURN[:links], _EVENT[:links], bits, allowed, np.zeros(2, np.uint64)


@kernel(examples=_bit_examples)
def gather_bits(
    turn: IntArray, event: IntArray, bits: BitArray, allowed: MaskArray, gathered: BitArray
) -> None:
    """Give each event the bits of its allowed turns.

    turn      int32 (links,)
    event     int32 (links,)
    bits      uint64 (turns,): for example, which terms of a query each turn has
    allowed   uint8 (turns,)
    gathered  uint64 (events,), updated
    """
    for i in range(turn.size):
        t = np.uint32(turn[i])
        if allowed[t] != 0:
            gathered[np.uint32(event[i])] |= bits[t]
