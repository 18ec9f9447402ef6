import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmem_kernels import frozen
from hmem_kernels.maxsim import best_matches, rotate
from tests.oracles import maxsim as oracle


def found(codes, factors, offsets, rows, planes, scale):
    best = np.zeros((len(planes), len(rows)), np.float32)
    with np.errstate(over="ignore"):  # where it is interpreted, a product of words wraps around
        best_matches(*map(frozen, (codes, factors, offsets, rows, planes, scale)), best)
    return best


@st.composite
def cases(draw):
    counts = draw(st.lists(st.integers(0, 4), max_size=5))
    words, query, planes = draw(st.integers(1, 3)), draw(st.integers(0, 3)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    offsets = np.cumsum([0, *counts]).astype(np.int64)

    def some(*shape):
        return rng.integers(0, 2**64, shape, dtype=np.uint64, endpoint=False)

    return (
        some(offsets[-1], words),
        rng.integers(0, 256, offsets[-1], dtype=np.uint8),
        offsets,
        np.array(draw(st.lists(st.integers(0, len(counts) - 1), max_size=6)) if counts else [], np.int64),
        some(query, planes, words),
        rng.standard_normal((query, 3), dtype=np.float32),
    )


@given(cases())
def test_best_matches_are_those_of_single_bits(case):
    np.testing.assert_allclose(found(*case), oracle.best_matches(*case), rtol=1e-4, atol=1e-2)


@given(cases())
def test_a_text_scores_the_same_whatever_is_compared_with_it(case):
    codes, factors, offsets, rows, planes, scale = case
    together = found(*case)
    for i, row in enumerate(rows):
        alone = found(codes, factors, offsets, np.array([row]), planes, scale)
        assert alone[:, 0].tobytes() == together[:, i].tobytes()


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 1, 0x5555555555555555, 0xAAAAAAAAAAAAAAAA])
def test_every_bit_counts_once(word):
    codes, one = np.array([[word]], np.uint64), np.array([0], np.int64)
    planes, scale = np.full((1, 1, 1), 2**64 - 1, np.uint64), np.array([[0, 1, 0]], np.float32)
    best = found(codes, np.zeros(1, np.uint8), np.array([0, 1]), one, planes, scale)
    assert best[0, 0] == 2 * word.bit_count()


@given(
    st.integers(0, 5), st.sampled_from([1, 2, 3, 4, 6, 8, 11, 16]), st.integers(0, 4), st.integers(0, 2**32)
)
def test_rotation_is_that_of_the_matrices_and_keeps_lengths(n, size, rounds, seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, size), dtype=np.float32)
    flips = rng.choice(np.array([-1, 1], np.float32), (rounds, size))
    power = 1 << (size.bit_length() - 1)
    turned = rows.copy()
    rotate(turned, frozen(flips), power)
    np.testing.assert_allclose(turned, oracle.rotate(rows, flips, power), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), np.linalg.norm(rows, axis=1), rtol=1e-5)
