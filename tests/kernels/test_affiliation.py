import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hmem_kernels import frozen
from hmem_kernels.affiliation import add_contexts, affiliate, contexts, gather_bits, lend_events, score_events
from tests.oracles import affiliation as oracle

DIMENSION = 3
WEIGHTS = np.array([1, 0.5, 0.25], np.float32)


def table(rows, columns, low, high, rng):
    return rng.integers(low, high, (rows, columns)).astype(np.int32)


def vectors(count, rng):
    """Some of them zero, some the same."""
    rows = rng.integers(-2, 3, (count, DIMENSION)).astype(np.float32)
    return rows * (rng.random((count, 1)) < 0.8)


@given(st.integers(1, 6), st.integers(0, 8), st.integers(0, 2**32))
def test_contexts_equal_the_oracle(count, turns, seed):
    rng = np.random.default_rng(seed)
    given_vectors, place = vectors(count, rng), table(turns, 3, -1, count, rng)
    out = np.full((turns, DIMENSION), 7, np.float32)
    length = np.full(turns, 7, np.float32)
    contexts(frozen(given_vectors), frozen(place), frozen(WEIGHTS), out, length)
    expected, lengths = oracle.contexts(given_vectors.tolist(), place.tolist(), WEIGHTS.tolist())
    np.testing.assert_allclose(length, lengths, rtol=1e-5)
    np.testing.assert_allclose(out, np.array(expected).reshape(out.shape), rtol=1e-5, atol=1e-6)


@given(st.integers(1, 6), st.integers(0, 12), st.integers(0, 2**32), st.integers(1, 12))
def test_sums_equal_the_oracle_however_links_are_cut(count, links, seed, cut):
    rng = np.random.default_rng(seed)
    rows = vectors(count, rng)
    which, event = table(1, links, 0, count, rng)[0], table(1, links, 0, 4, rng)[0]
    sums, norm = np.zeros((4, DIMENSION), np.float32), np.zeros(4, np.float32)
    add_contexts(frozen(rows), frozen(which), frozen(event), sums, norm)
    expected, lengths = oracle.add_contexts(rows.tolist(), which, event, np.zeros((4, DIMENSION)).tolist())
    np.testing.assert_allclose(sums, expected, rtol=1e-5)
    np.testing.assert_allclose(norm, lengths, rtol=1e-5)
    again, norm_again = np.zeros_like(sums), np.zeros_like(norm)
    for start in range(0, links, cut):
        part = slice(start, start + cut)
        add_contexts(frozen(rows), frozen(which[part]), frozen(event[part]), again, norm_again)
    assert (again.tobytes(), norm_again.tobytes()) == (sums.tobytes(), norm.tobytes())


@given(
    st.integers(0, 10),
    st.integers(0, 5),
    st.integers(1, 4),
    st.integers(0, 2**32),
    st.sampled_from([0, 0.25]),
)
def test_affiliation_equals_the_oracle(turns, events, recent, seed, continuity):
    rng = np.random.default_rng(seed)
    # Vectors along the axes and their sums keep cosines off the levels: rounding decides nothing.
    rows = np.eye(DIMENSION, dtype=np.float32)[rng.integers(0, DIMENSION, turns)].reshape(turns, DIMENSION)
    level = rng.choice([0.31, 0.57, 0.83, 1.17], turns).astype(np.float32)
    before = np.array([rng.integers(-1, i) if i else -1 for i in range(turns)], np.int32)
    known = table(turns, 2, -1, max(events, 0), rng) if events else np.full((turns, 0), -1, np.int32)
    recalled = table(turns, 2, -1, events, rng) if events else np.full((turns, 0), -1, np.int32)
    sums = np.zeros((events + turns, DIMENSION), np.float32)
    sums[:events] = rng.integers(0, 3, (events, DIMENSION))
    order = rng.permutation(events)[:recent].astype(np.int32)
    queue = np.full(recent, -1, np.int32)
    queue[: order.size] = order
    expected = oracle.affiliate(
        rows.tolist(), level, before, known, recalled, continuity, sums[:events].tolist(), order, recent
    )
    norm, chosen = np.zeros(events + turns, np.float32), np.full(turns, -7, np.int32)
    found, compared = affiliate(
        *map(frozen, (rows, level, before, known, recalled)),
        np.float32(continuity),
        events,
        order.size,
        queue,
        sums,
        norm,
        chosen,
    )
    assert (chosen.tolist(), found, compared) == (list(map(int, expected[0])), expected[2], expected[3])
    assert queue[: len(expected[1])].tolist() == list(map(int, expected[1]))


def test_of_equals_the_event_that_got_a_turn_last_is_taken():
    rows = frozen(np.array([[1, 0]], np.float32))
    nothing = frozen(np.full((1, 0), -1, np.int32))
    sums = np.array([[1, 0], [1, 0], [0, 0]], np.float32)
    chosen = np.zeros(1, np.int32)
    level, before = frozen(np.array([0.5], np.float32)), frozen(np.array([-1], np.int32))
    order = np.array([1, 0], np.int32)
    affiliate(
        rows,
        level,
        before,
        nothing,
        nothing,
        np.float32(0),
        2,
        2,
        order,
        sums,
        np.zeros(3, np.float32),
        chosen,
    )
    assert chosen.tolist() == [1]


@given(st.integers(1, 8), st.integers(0, 12), st.integers(0, 2**32))
def test_scores_of_events_equal_the_oracle(turns, links, seed):
    rng = np.random.default_rng(seed)
    turn, event = table(1, links, 0, turns, rng)[0], table(1, links, 0, 4, rng)[0]
    length = rng.choice([0, 1, 1.5], links).astype(np.float32)
    odds, cosines = rng.random((2, turns)).astype(np.float32)
    allowed = rng.integers(0, 2, turns).astype(np.uint8)
    previous = np.array([rng.integers(-1, t) if t else -1 for t in range(turns)], np.int32)
    total, dots, count = np.zeros(4), np.zeros(4), np.zeros(4, np.int32)
    given_arrays = (turn, event, length, odds, cosines, allowed, previous, WEIGHTS)
    score_events(*map(frozen, given_arrays), total, dots, count)
    expected = oracle.score_events(*given_arrays, 4)
    for found, wanted in zip((total, dots, count), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@given(st.integers(1, 8), st.integers(0, 12), st.integers(0, 2**32))
def test_what_events_lend_equals_the_oracle(turns, links, seed):
    rng = np.random.default_rng(seed)
    turn, event = table(1, links, 0, turns, rng)[0], table(1, links, 0, 4, rng)[0]
    scores, lent = rng.random(4).astype(np.float32), rng.random(turns).astype(np.float32)
    expected = oracle.lend_events(turn, event, scores, lent.tolist())
    lend_events(frozen(turn), frozen(event), frozen(scores), lent)
    assert lent.tolist() == list(map(float, expected))


@given(st.integers(1, 8), st.integers(0, 12), st.integers(0, 2**32))
def test_gathered_bits_equal_the_oracle(turns, links, seed):
    rng = np.random.default_rng(seed)
    turn, event = table(1, links, 0, turns, rng)[0], table(1, links, 0, 4, rng)[0]
    bits = rng.integers(0, 2**64, turns, dtype=np.uint64)
    allowed, gathered = rng.integers(0, 2, turns).astype(np.uint8), np.zeros(4, np.uint64)
    gather_bits(*map(frozen, (turn, event, bits, allowed)), gathered)
    assert gathered.tolist() == oracle.gather_bits(turn, event, bits, allowed, 4)
