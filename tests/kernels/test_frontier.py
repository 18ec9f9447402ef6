import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from hmem_kernels import frozen
from hmem_kernels.frontier import (
    COMPARED,
    DEPTH,
    NODES,
    TURNS,
    attach,
    auto_rule,
    fixed_rule,
    new_frontier,
    new_tree,
)
from tests.oracles import frontier as oracle

NEVER, ALWAYS = fixed_rule(2.0), fixed_rule(-2.0)


@st.composite
def streams(draw):
    """Turns of small whole numbers, so that sums and dot products are exact and similarities tie.

    Some streams have a few vectors only: duplicates, alternation, zeros.
    """
    d = draw(st.integers(1, 4))
    vectors = st.lists(st.integers(-2, 2), min_size=d, max_size=d)
    if draw(st.booleans()):
        vectors = st.sampled_from(draw(st.lists(vectors, min_size=1, max_size=3)))
    return draw(st.lists(vectors, min_size=1, max_size=24))


# Frequent similarities of small whole numbers, so that a turn often just passes.
levels = st.sampled_from([2.0, 1.0, 0.8, 0.7071067811865475, 0.5, 0.25, 0.0, -0.5, -1.0, -2.0])
thresholds = st.lists(levels, min_size=1, max_size=6).map(lambda taus: sorted(taus, reverse=True))


def given_heights(draw, n):
    """Any valid ones: 0, then from 1 to one above the root."""
    heights = [0]
    root = 0
    while len(heights) < n:
        heights.append(draw(st.integers(1, root + 1)))
        root = max(root, heights[-1])
    return heights


def grow(tree, frontier, nodes, turns, depth):
    """The same with more room."""

    def larger(array, size):
        grown = np.zeros((size, *array.shape[1:]), array.dtype)
        grown[: len(array)] = array
        return grown

    node, sums, pairs, sizes = frontier
    *columns, leaf = tree
    return (
        type(tree)(*(larger(column, nodes) for column in columns), larger(leaf, turns)),
        type(frontier)(larger(node, depth), larger(sums, depth), pairs, sizes),
    )


def build(rows, rule, heights=None, parts=(), prior=(0.0, 0.0, 0.0), room=(0, 0)):
    """Attach `rows` in parts that end at `parts`; of each its heights, then the columns cut to their size."""
    rows = np.asarray(rows, np.float32)
    heights = np.array([-1] * len(rows) if heights is None else heights, np.int32)
    tree, frontier = new_tree(2 * len(rows), len(rows)), new_frontier(len(rows), rows.shape[1], prior)
    for start, stop in zip([0, *parts], [*parts, len(rows)], strict=True):
        assert attach(frozen(rows[start:stop]), heights[start:stop], rule, tree, frontier) == stop - start
    return heights, cut(tree, frontier), frontier


def cut(tree, frontier):
    nodes, turns = frontier.sizes[NODES], frontier.sizes[TURNS]
    *columns, leaf = tree
    return type(tree)(*(column[:nodes] for column in columns), leaf[:turns])


def bits(heights, tree, frontier):
    depth = frontier.sizes[DEPTH]
    frontier = frontier._replace(node=frontier.node[:depth], sums=frontier.sums[:depth])
    return [array.tobytes() for array in (heights, *tree, *frontier)]


def nodes_of(tree):
    return list(zip(*(column.tolist() for column in tree[:-1]), strict=True))


def assert_equals_oracle(built, expected):
    heights, tree, _ = built
    decided, nodes = expected
    assert heights.tolist() == decided
    assert nodes_of(tree) == [(*node[:-1], float(np.float32(node[-1]))) for node in nodes]
    assert tree.start[tree.leaf].tolist() == list(range(len(heights)))
    assert not tree.height[tree.leaf].any()


@settings(max_examples=1000)
@given(streams(), thresholds, st.booleans())
def test_equals_the_literal_tree(vectors, taus, best):
    expected = oracle.attach(vectors, [-1] * len(vectors), taus, lambda _: 0.0, best)
    assert_equals_oracle(build(vectors, fixed_rule(taus, best)), expected)


@given(streams(), st.data())
def test_follows_given_heights(vectors, data):
    heights = given_heights(data.draw, len(vectors))
    expected = oracle.attach(vectors, heights, [2.0], lambda _: 0.0)
    assert expected[0] == heights
    assert_equals_oracle(build(vectors, ALWAYS, heights), expected)


@settings(max_examples=200)
@given(
    streams(),
    st.floats(-1, 1),
    st.floats(0, 0.3),
    st.tuples(st.integers(0, 5).map(float), st.floats(-0.5, 0.5), st.floats(0, 0.5)),
    st.booleans(),
)
@example([[0, 0, 0, 1], [0, 1, 1, -2], [0, 0, 0, 1]], 0.0, 0.0, (0.0, 0.5, 0.0), False)
def test_thresholds_follow_the_conversation(vectors, spread, fall, prior, best):
    rule = auto_rule(spread, fall, low=-0.4, high=0.7, heights=4, best=best)

    def level(seen):
        return oracle.level(seen, spread, rule.low, rule.high, prior)

    def expected(nudge):
        return oracle.attach(vectors, [-1] * len(vectors), rule.shape + nudge, level, best)

    assume(expected(-1e-9) == expected(1e-9))  # else rounding may decide
    assert_equals_oracle(build(vectors, rule, prior=prior), expected(0.0))


def real_rows(n, d, seed):
    """Topics that last a while, with noise, and a zero row now and then."""
    rng = np.random.default_rng(seed)
    topics = rng.standard_normal((n // 10 + 1, d))[np.cumsum(rng.random(n) < 0.2) % (n // 10 + 1)]
    rows = topics + rng.standard_normal((n, d))
    rows[rng.random(n) < 0.1] = 0
    return rows.astype(np.float32)


rules = st.sampled_from(
    [fixed_rule([0.6, 0.4, 0.3]), fixed_rule([0.5, 0.1], best=True), auto_rule(0.2, 0.05, -1.0, 1.0)]
)


@given(st.integers(1, 80), st.integers(1, 40), st.integers(0, 2**32), rules, st.data())
def test_where_blocks_are_cut_changes_no_bit(n, d, seed, rule, data):
    rows = real_rows(n, d, seed)
    at_once = bits(*build(rows, rule))
    assert bits(*build(rows, rule, parts=range(1, n))) == at_once, "one turn at a time"
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5)))
    assert bits(*build(rows, rule, parts=cuts)) == at_once


@given(st.integers(1, 80), st.integers(1, 40), st.integers(0, 2**32), rules, st.data())
def test_decided_heights_give_the_same_tree_and_the_same_future(n, d, seed, rule, data):
    rows = real_rows(n, d, seed)
    live = build(rows, rule)
    known = data.draw(st.integers(0, n))
    heights = np.where(np.arange(n) < known, live[0], -1)
    replayed = build(rows, rule, heights)
    replayed[2].sizes[COMPARED] = live[2].sizes[COMPARED]
    assert bits(*replayed) == bits(*live)


@given(st.integers(1, 60), st.integers(0, 2**32), rules)
def test_stops_where_room_ends_and_goes_on(n, seed, rule):
    rows = real_rows(n, 5, seed)
    heights = np.full(n, -1, np.int32)
    tree, frontier = new_tree(1, 1), new_frontier(1, 5)
    done = 0
    while done < n:
        attached = attach(frozen(rows[done:]), heights[done:], rule, tree, frontier)
        done += attached
        assert frontier.sizes[TURNS] == done
        tree, frontier = grow(
            tree, frontier, len(tree.start) + 2, len(tree.leaf) + 1, len(frontier.node) + (attached == 0)
        )
    assert bits(heights, cut(tree, frontier), frontier) == bits(*build(rows, rule))


def test_two_nodes_a_turn_but_for_the_first_are_room_enough():
    rows = np.eye(9, dtype=np.float32)
    tree, frontier = new_tree(17, 9), new_frontier(3, 9)
    assert attach(frozen(rows), np.full(9, -1, np.int32), NEVER, tree, frontier) == 9
    assert attach(frozen(rows[:1]), np.full(1, -1, np.int32), NEVER, tree, frontier) == 0


@pytest.mark.parametrize("best", [False, True])
def test_never_compatible_is_a_spine(best):
    n = 20_000
    rows = real_rows(n, 2, seed=1)
    heights, tree, frontier = build(rows, fixed_rule([2.0, 1.9, 1.8], best))
    assert heights.tolist() == list(range(n))
    assert len(tree.start) == 2 * n - 1
    assert frontier.sizes[DEPTH] == 2
    assert frontier.sizes[COMPARED] == 2 * n - 5  # the leaf's chain and the root, from the fourth turn on


def test_always_compatible_is_flat():
    heights, tree, _ = build(real_rows(1000, 2, seed=1), ALWAYS)
    assert heights.tolist() == [0] + [1] * 999
    assert tree.children.max() == 1000


def test_a_frontier_as_deep_as_it_gets():
    """Heights that fall by one: each turn makes another virtual node real."""
    n = 200
    heights = [0, n, *range(n - 1, 0, -1)]
    _, tree, frontier = build(np.ones((n + 1, 3)), NEVER, heights)
    assert frontier.sizes[DEPTH] == n + 1
    assert tree.norm[frontier.node[0]] == np.float32(np.sqrt(3) * (n + 1))
    assert tree.end[frontier.node[: n + 1]].tolist() == [n] * (n + 1)


@given(streams(), thresholds)
def test_intervals_of_children_partition_their_parents(vectors, taus):
    _, tree, _ = build(vectors, fixed_rule(taus))
    root = tree.parent.tolist().index(-1)
    assert (tree.start[root], tree.end[root]) == (0, len(vectors) - 1)
    for node in np.flatnonzero(tree.height):
        children = np.flatnonzero(tree.parent == node)
        assert len(children) == tree.children[node] >= 2
        order = children[np.argsort(tree.start[children])]
        ends = [tree.start[node] - 1, *tree.end[order]]
        assert tree.start[order].tolist() == [end + 1 for end in ends[:-1]]
        assert ends[-1] == tree.end[node]
        assert (tree.height[children] < tree.height[node]).all()


def test_zero_vectors_are_similar_to_nothing():
    rows = [[0, 0], [0, 0], [1, 0], [0, 0], [1, 0], [-1, 0], [0, 1]]
    for rule in (fixed_rule([0.5, 0.1]), auto_rule(0.5, 0.1, -1.0, 1.0)):
        _, tree, frontier = build(rows, rule)
        assert np.isfinite(tree.norm).all()
        assert np.isfinite(frontier.pairs).all()
    assert frontier.pairs[0] == 2, "pairs with a zero vector tell nothing of similarity"
