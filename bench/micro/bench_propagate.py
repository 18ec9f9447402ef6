"""Scores of all nodes of a tree, and each policy of propagation, beside NumPy and SciPy: one query.

    pytest bench/micro/bench_propagate.py -o python_files='bench_*.py'

`HMEM_BENCH_LARGE=1` adds a million turns. SciPy's matrices are built beforehand, as if the tree never grew.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse
from pytest_benchmark.fixture import BenchmarkFixture

from hmem_kernels import frozen
from hmem_kernels.frontier import NODES, Tree, attach, fixed_rule, new_frontier, new_tree
from hmem_kernels.propagate import propagate_along, propagate_up, score_nodes

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

SIZES = [1_000, 10_000, 100_000] + [1_000_000] * bool(os.environ.get("HMEM_BENCH_LARGE"))
ALPHA = np.float32(0.5)
HOPS = frozen(np.zeros(0, np.int32))


@pytest.fixture(scope="module", params=SIZES)
def tree(request: pytest.FixtureRequest) -> Tree:
    """A new segment every 8 turns or so, at heights as of a branching tree."""
    n = request.param
    rng = np.random.default_rng(0)
    heights = np.minimum(rng.geometric(7 / 8, n), 1 + np.log2(np.arange(1, n + 1)).astype(int)).astype(
        np.int32
    )
    heights[0] = 0
    vectors = rng.standard_normal((n, 4), dtype=np.float32)
    tree, frontier = new_tree(2 * n, n), new_frontier(64, 4)
    assert attach(frozen(vectors), heights, fixed_rule(0.0), tree, frontier) == n
    *columns, leaf = tree
    return Tree(*(frozen(column[: frontier.sizes[NODES]]) for column in columns), frozen(leaf))


def scores_of(size: int) -> FloatArray:
    return np.random.default_rng(1).standard_normal((1, size), dtype=np.float32)


def decay_of(hops: int) -> FloatArray:
    return frozen((ALPHA ** np.arange(1, hops + 1)).astype(np.float32))


def matrix_of(link: IntArray) -> Any:
    inner = np.flatnonzero(link >= 0)
    one = np.ones(len(inner), np.float32)
    return scipy.sparse.csr_array((one, (inner, link[inner])), (len(link), len(link)))


@pytest.mark.parametrize("way", ["kernel", "numpy"])
def test_score_nodes(benchmark: BenchmarkFixture, tree: Tree, way: str) -> None:
    benchmark.group = f"scores of the nodes over {len(tree.leaf):,} turns"
    turns = scores_of(len(tree.leaf))
    nodes = np.empty((1, len(tree.start)), np.float32)
    prefix = np.empty(turns.shape[1] + 1)

    def kernel() -> FloatArray:
        score_nodes(frozen(turns), tree.start, tree.end, tree.norm, prefix, nodes)
        return nodes[0]

    def numpy() -> FloatArray:
        sums = np.concatenate([[0.0], np.cumsum(turns[0], dtype=np.float64)])
        scores: FloatArray = ((sums[tree.end + 1] - sums[tree.start]) / tree.norm).astype(np.float32)
        scores[tree.leaf] = turns[0]
        return scores

    np.testing.assert_allclose(kernel(), numpy(), rtol=1e-4, atol=1e-5)
    benchmark({"kernel": kernel, "numpy": numpy}[way])


@pytest.mark.parametrize("hops", [1, 3])
@pytest.mark.parametrize("way", ["kernel", "kernel by height", "numpy", "scipy"])
@pytest.mark.parametrize("direction", ["down", "up"])
def test_propagate(benchmark: BenchmarkFixture, tree: Tree, direction: str, way: str, hops: int) -> None:
    benchmark.group = f"{direction} {hops} hops, {len(tree.leaf):,} turns"
    scores = scores_of(len(tree.start))
    total, gained = np.empty_like(scores), np.empty(scores.shape[1])
    decay = decay_of(hops)
    height = tree.height if way == "kernel by height" else HOPS
    matrix = matrix_of(tree.parent)
    root = int(np.flatnonzero(tree.parent < 0)[0])
    share = (ALPHA / np.maximum(tree.children, 1)).astype(np.float32)
    if direction == "up":
        matrix = (
            matrix @ scipy.sparse.diags_array((1 / np.maximum(tree.children, 1)).astype(np.float32))
        ).T.tocsr()

    def kernel() -> FloatArray:
        total[:] = scores
        if direction == "down":
            propagate_along(frozen(scores), tree.parent, height, decay, total)
        else:
            propagate_up(frozen(scores), tree.parent, height, tree.children, decay, gained, total)
        return total[0]

    def numpy() -> FloatArray:
        moved = scores[0]
        result = moved.copy()
        for _ in range(hops):
            if direction == "down":
                moved = ALPHA * moved[tree.parent]
                moved[root] = 0
            else:
                moved = np.delete(moved, root)
                moved = share * np.bincount(np.delete(tree.parent, root), moved, len(share)).astype(
                    np.float32
                )
            result += moved
        return result

    def scipy_() -> FloatArray:
        moved = scores[0]
        result = moved.copy()
        for _ in range(hops):
            moved = ALPHA * (matrix @ moved)
            result += moved
        return result

    if way != "kernel by height":
        np.testing.assert_allclose(kernel(), scipy_(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(numpy(), scipy_(), rtol=1e-4, atol=1e-5)
    benchmark({"numpy": numpy, "scipy": scipy_}.get(way, kernel))


@pytest.mark.parametrize("way", ["kernel", "numpy", "scipy"])
def test_lateral(benchmark: BenchmarkFixture, tree: Tree, way: str) -> None:
    """Two hops each way, within sessions of 20 turns."""
    n = len(tree.leaf)
    benchmark.group = f"lateral, {n:,} turns"
    scores, decay = scores_of(n), decay_of(2)
    total = np.empty_like(scores)
    turn = np.arange(n, dtype=np.int32)
    before = frozen(np.where(turn % 20 == 0, -1, turn - 1).astype(np.int32))
    after = frozen(np.where((turn % 20 == 19) | (turn == n - 1), -1, turn + 1).astype(np.int32))
    matrices = [matrix_of(before), matrix_of(after)]

    def kernel() -> FloatArray:
        total[:] = scores
        propagate_along(frozen(scores), before, HOPS, decay, total)
        propagate_along(frozen(scores), after, HOPS, decay, total)
        return total[0]

    def numpy() -> FloatArray:
        result = scores[0].copy()
        for link in (before, after):
            moved = scores[0]
            for weight in decay:
                moved = np.where(link >= 0, moved[link], np.float32(0))
                result += weight * moved
        return result

    def scipy_() -> FloatArray:
        result = scores[0].copy()
        for matrix in matrices:
            moved = scores[0]
            for weight in decay:
                moved = matrix @ moved
                result += weight * moved
        return result

    np.testing.assert_allclose(kernel(), numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(kernel(), scipy_(), rtol=1e-4, atol=1e-5)
    benchmark({"kernel": kernel, "numpy": numpy, "scipy": scipy_}[way])
