import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from hmem_kernels import frozen
from hmem_kernels.select import add_standardised, select_nodes
from tests.kernels.test_propagate import trees
from tests.oracles import select as oracle

ALL_LIVE = np.ones(0, np.uint8)


def masks(draw, n):
    return draw(st.none() | npst.arrays(np.uint8, n, elements=st.integers(0, 2)))


def selected(scores, tree, k, live=None):
    chosen = np.full(k, -1, np.int32)
    ranked = np.zeros(len(scores), np.int32)
    mask = ALL_LIVE if live is None else live
    arrays = map(frozen, (np.asarray(scores, np.float32), tree.start, tree.end, mask))
    return chosen[: select_nodes(*arrays, ranked, chosen)].tolist()


def turns_of(tree):
    return [set(range(a, b + 1)) for a, b in zip(tree.start.tolist(), tree.end.tolist(), strict=True)]


@given(trees(max_turns=30), st.integers(0, 9), st.data())
def test_selected_nodes_equal_the_oracle(tree, k, data):
    numbers = st.integers(-3, 3).map(float) | st.sampled_from([math.nan, math.inf, -math.inf])
    scores = data.draw(npst.arrays(np.float32, len(tree.start), elements=numbers))
    live = masks(data.draw, len(scores))
    found = selected(scores, tree, k, live)
    assert found == oracle.select_nodes(scores.tolist(), turns_of(tree), k, live)


@given(trees(max_turns=60), st.integers(1, 5), st.integers(0, 2**32), st.booleans())
def test_selected_nodes_when_the_best_lie_together(tree, k, seed, below):
    """All nodes under the best one, or all above it, outrank the others."""
    rng = np.random.default_rng(seed)
    scores = rng.permutation(len(tree.start)).astype(np.float32)
    best = rng.integers(len(scores))
    within = (tree.start >= tree.start[best]) & (tree.end <= tree.end[best])
    around = (tree.start <= tree.start[best]) & (tree.end >= tree.end[best])
    scores[within if below else around] += 1000
    scores[best] += 1000
    assert selected(scores, tree, k) == oracle.select_nodes(scores.tolist(), turns_of(tree), k)


@given(st.integers(0, 40), st.data())
def test_standardised_equals_the_oracle(n, data):
    scores = data.draw(npst.arrays(np.float32, n, elements=st.integers(-5, 5).map(np.float32)))
    live = masks(data.draw, n)
    total = np.arange(n, dtype=np.float32)
    add_standardised(frozen(scores), frozen(ALL_LIVE if live is None else live), 0.5, total)
    expected = np.arange(n) + 0.5 * oracle.add_standardised(scores, live)
    np.testing.assert_allclose(total, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("score", [0.1, 1e-30, -3e8])
def test_equal_scores_tell_nothing(score):
    total = np.zeros(1001, np.float32)
    add_standardised(frozen(np.full(1001, score, np.float32)), frozen(ALL_LIVE), 1.0, total)
    assert not total.any()


def test_a_small_deviation_far_from_zero():
    scores = np.array([1e6, 1e6 + 1] * 500, np.float32)
    total = np.zeros(1000, np.float32)
    add_standardised(frozen(scores), frozen(ALL_LIVE), 1.0, total)
    assert total[:2].tolist() == [-1, 1]
