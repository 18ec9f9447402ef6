import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from hmem_kernels import frozen
from hmem_kernels.frontier import attach, fixed_rule, new_frontier, new_tree
from hmem_kernels.propagate import propagate_along, propagate_up, score_nodes
from tests.oracles import propagate as oracle

HOPS = np.zeros(0, np.int32)

whole_numbers = st.integers(-8, 8).map(np.float32)
# Powers of two: products with small whole numbers are exact.
decays = st.lists(st.sampled_from([1.0, 0.5, 0.25, 0.0, -0.5]), max_size=5)


def tree_of(heights, vectors):
    n = len(heights)
    tree, frontier = new_tree(2 * n, n), new_frontier(n + 1, vectors.shape[1])
    attach(frozen(vectors), np.array(heights, np.int32), fixed_rule(0.0), tree, frontier)
    *columns, leaf = tree
    return tree._make([*(column[: frontier.sizes[1]] for column in columns), leaf])


@st.composite
def trees(draw, max_turns=16):
    heights = [0]
    root = 0
    for _ in range(draw(st.integers(0, max_turns - 1))):
        heights.append(draw(st.integers(1, root + 1)))
        root = max(root, heights[-1])
    vectors = draw(npst.arrays(np.float32, (len(heights), 2), elements=whole_numbers))
    return tree_of(heights, vectors)


def scores_for(draw, n):
    return draw(npst.arrays(np.float32, (draw(st.integers(0, 3)), n), elements=whole_numbers))


def scored(turns, tree):
    nodes = np.empty((len(turns), len(tree.start)), np.float32)
    prefix = np.empty(turns.shape[1] + 1)
    score_nodes(frozen(turns), frozen(tree.start), frozen(tree.end), frozen(tree.norm), prefix, nodes)
    return nodes


def along(scores, link, height, decay, total=None):
    total = np.zeros_like(scores) if total is None else total
    decay = np.array(decay, np.float32)
    propagate_along(frozen(scores), frozen(link), frozen(height), frozen(decay), total)
    return total


def up(scores, tree, height, decay):
    total = np.zeros_like(scores)
    decay = np.array(decay, np.float32)
    arrays = map(frozen, (scores, tree.parent, height, tree.children, decay))
    propagate_up(*arrays, np.full(len(tree.parent), np.nan), total)
    return total


@given(trees(), st.data())
def test_scores_equal_the_oracle(tree, data):
    turns = scores_for(data.draw, len(tree.leaf))
    expected = oracle.score_nodes(turns, tree.start, tree.end, tree.norm)
    assert scored(turns, tree).tolist() == expected.astype(np.float32).tolist()


@given(st.integers(1, 60), st.integers(0, 2**32))
def test_scores_are_cosines_with_the_centroids(n, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query = vectors[0]
    tree = tree_of([0, *rng.integers(1, np.arange(2, n + 1).clip(max=4))], vectors)
    found = scored((vectors @ query)[None], tree)[0]
    for node, score in enumerate(found):
        centroid = vectors[tree.start[node] : tree.end[node] + 1].sum(axis=0)
        assert score * np.linalg.norm(centroid) == pytest.approx(centroid @ query, abs=1e-5)


def test_a_node_whose_turns_cancel_scores_zero():
    tree = tree_of([0, 1], np.array([[1, 0], [-1, 0]], np.float32))
    assert scored(np.array([[1, -1]], np.float32), tree).tolist() == [[1, -1, 0]]


@given(trees(), decays, st.booleans(), st.data())
def test_top_down_equals_the_oracle(tree, decay, by_height, data):
    scores = scores_for(data.draw, len(tree.parent))
    height = tree.height if by_height else HOPS
    expected = oracle.propagate_along(scores, tree.parent, tree.height if by_height else None, decay)
    assert along(scores, tree.parent, height, decay).tolist() == expected.tolist()


@given(trees(), decays, st.booleans(), st.data())
def test_bottom_up_equals_the_oracle(tree, decay, by_height, data):
    scores = scores_for(data.draw, len(tree.parent))
    height = tree.height if by_height else HOPS
    expected = oracle.propagate_up(scores, tree.parent, tree.height if by_height else None, decay)
    np.testing.assert_allclose(up(scores, tree, height, decay), expected, rtol=1e-6, atol=1e-6)


@given(st.lists(st.integers(0, 3), max_size=30), decays, st.data())
def test_lateral_equals_the_oracle(sessions, decay, data):
    """Turns of sessions that take turns; what comes from before and from after adds up."""
    before, after = np.full((2, len(sessions)), -1, np.int32)
    for turn, session in enumerate(sessions):
        earlier = [t for t in range(turn) if sessions[t] == session]
        if earlier:
            before[turn] = earlier[-1]
            after[earlier[-1]] = turn
    scores = scores_for(data.draw, len(sessions))
    total = along(scores, before, HOPS, decay)
    along(scores, after, HOPS, decay, total)
    expected = sum(oracle.propagate_along(scores, link, None, decay) for link in (before, after))
    assert total.tolist() == expected.tolist()


def test_a_chain_that_is_not_stored_uses_up_the_horizon():
    tree = tree_of([0, 1, 2, 3, 4], np.ones((5, 2), np.float32))
    last = tree.leaf[-1]
    scores = np.zeros((1, len(tree.parent)), np.float32)
    scores[0, tree.parent[last]] = 1
    assert tree.height[tree.parent[last]] == 4
    for horizon, expected in ((3, 0.0), (4, 0.0625)):
        decay = 0.5 ** np.arange(1, horizon + 1)
        assert along(scores, tree.parent, tree.height, decay)[0, last] == expected
    assert along(scores, tree.parent, HOPS, [0.5])[0, last] == 0.5


def test_the_mean_of_many_children_is_exact():
    n = 300_000
    tree = tree_of([0] + [1] * (n - 1), np.ones((n, 1), np.float32))
    total = up(np.full((1, n + 1), 0.3, np.float32), tree, HOPS, [1.0])
    assert total.max() == np.float32(0.3)
