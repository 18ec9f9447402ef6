from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from hmem_kernels import frozen
from hmem_kernels.lexical import Postings, Tail, add_postings, bm25, latest_postings, merge_postings
from tests.oracles import lexical as oracle

TERMS = 6
EMPTY = Postings(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))

# Halves: float32 holds them, and their sums, exactly.
weights = st.integers(1, 9).map(lambda half: half / 2)
turn_lists = st.lists(st.dictionaries(st.integers(0, TERMS - 1), weights), max_size=20)
queries = st.lists(st.tuples(st.integers(0, TERMS - 1), weights), max_size=5)


def masks(draw, n):
    return draw(st.none() | npst.arrays(np.uint8, n, elements=st.integers(0, 2)))


def tail_of(turns, first=0):
    room = sum(map(len, turns))
    tail = Tail(
        np.full(TERMS, -1, np.int32),
        np.zeros(room, np.int32),
        np.zeros(room, np.int32),
        np.zeros(room, np.float32),
    )
    used = 0
    for t, turn in enumerate(turns):
        terms, counts = np.array([*turn], np.int32), np.array([*turn.values()], np.float32)
        used = add_postings(frozen(terms), frozen(counts), first + t, used, tail)
    assert used == room
    return tail.frozen()


def merged(base, tail, live=None):
    room = len(base.turns) + len(tail.turns)
    result = Postings(np.full(TERMS + 1, -1), np.zeros(room, np.int32), np.zeros(room, np.float32))
    mask = np.ones(0, np.uint8) if live is None else live
    size = merge_postings(frozen(mask), base.frozen(), tail, result)
    assert size == result.offsets[-1]
    return Postings(result.offsets, result.turns[:size], result.weights[:size])


def split(turns, at):
    """Base and tail: the turns before `at` merged, the others not."""
    return merged(EMPTY, tail_of(turns[:at])), tail_of(turns[at:], first=at)


def scores_of(turns, query, base, tail, live=None, average=3.0):
    terms = np.array([term for term, _ in query], np.int32)
    idf = np.array([w for _, w in query], np.float32)
    lengths = np.array([sum(turn.values()) for turn in turns], np.float32)
    mask = np.ones(0, np.uint8) if live is None else live
    scores = np.zeros(len(turns), np.float32)
    arrays = (frozen(lengths), frozen(mask), average, 1.2, 0.75, scores)
    bm25(frozen(terms), frozen(idf), base.frozen(), tail, *arrays)
    return scores


def lists_of(postings):
    ends = postings.offsets.tolist()
    pairs = list(zip(postings.turns.tolist(), postings.weights.tolist(), strict=True))
    return [pairs[start:stop] for start, stop in pairwise(ends)]


@given(turn_lists, queries, st.data())
def test_scores_equal_the_oracle(turns, query, data):
    live = masks(data.draw, len(turns))
    base, tail = split(turns, data.draw(st.integers(0, len(turns))))
    found = scores_of(turns, query, base, tail, live)
    terms, idf = [term for term, _ in query], [w for _, w in query]
    np.testing.assert_allclose(found, oracle.bm25(turns, terms, idf, live, average=3.0), rtol=1e-5)


@given(turn_lists, queries, st.data())
def test_where_a_posting_lies_changes_no_bit(turns, query, data):
    live = masks(data.draw, len(turns))
    whole = scores_of(turns, query, *split(turns, len(turns)), live)
    at = data.draw(st.integers(0, len(turns)))
    assert scores_of(turns, query, *split(turns, at), live).tobytes() == whole.tobytes()


@given(turn_lists)
def test_the_tail_links_the_postings_of_a_term(turns):
    tail = tail_of(turns)

    def chain(posting):
        while posting >= 0:
            yield tail.turns[posting], tail.weights[posting]
            posting = tail.earlier[posting]

    assert [list(chain(posting)) for posting in tail.latest] == oracle.add_postings(turns, TERMS)


@given(turn_lists, st.data())
def test_merging_equals_the_oracle(turns, data):
    live = masks(data.draw, len(turns))
    at = data.draw(st.integers(0, len(turns)))
    assert lists_of(merged(*split(turns, at), live)) == oracle.merge_postings(turns, TERMS, live)


@given(turn_lists, st.lists(st.integers(-1, TERMS - 1), max_size=5), st.integers(0, 4), st.data())
def test_latest_postings_equal_the_oracle(turns, terms, most, data):
    base, tail = split(turns, data.draw(st.integers(0, len(turns))))
    n = len(terms)
    found, held, latest = np.zeros(n, np.int64), np.zeros(n, np.int32), np.zeros((n, most), np.int32)
    numbers = frozen(np.array(terms, np.int32))
    latest_postings(numbers, base.frozen(), tail, 7, found, held, latest)
    counts, expected = oracle.latest_postings(turns, terms, most)
    assert found.tolist() == counts
    rows = [(row[:count] - 7).tolist() for row, count in zip(latest, held, strict=True)]
    assert rows == expected


def test_terms_that_are_new_to_the_base():
    old = Postings(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1, np.float32))
    tail = tail_of([{5: 2, 0: 1}], first=1)
    turns = [{0: 1}, {5: 2, 0: 1}]
    found = scores_of(turns, [(5, 1.0), (0, 1.0), (3, 1.0)], old, tail)
    np.testing.assert_allclose(found, oracle.bm25(turns, [5, 0, 3], [1, 1, 1], average=3.0), rtol=1e-5)
    assert lists_of(merged(old, tail)) == oracle.merge_postings(turns, TERMS)


def test_without_turns_or_terms():
    assert scores_of([], [], EMPTY, tail_of([])).tolist() == []
    assert scores_of([{}], [], EMPTY, tail_of([{}])).tolist() == [0.0]
    assert lists_of(merged(EMPTY, tail_of([]))) == [[]] * TERMS
