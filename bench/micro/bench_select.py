"""The best 10 nodes of a tree, none above another, and standardising scores, beside NumPy and SciPy.

    pytest bench/micro/bench_select.py -o python_files='bench_*.py'

`HMEM_BENCH_LARGE=1` adds a million turns. The obvious NumPy sorts all nodes and walks down the order.
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats
from pytest_benchmark.fixture import BenchmarkFixture

from hmem_kernels import frozen
from hmem_kernels.frontier import NODES, Tree, attach, fixed_rule, new_frontier, new_tree
from hmem_kernels.propagate import propagate_along
from hmem_kernels.select import add_standardised, select_nodes

FloatArray = npt.NDArray[np.float32]

SIZES = [1_000, 10_000, 100_000] + [1_000_000] * bool(os.environ.get("HMEM_BENCH_LARGE"))
K = 10
NO_MASK = frozen(np.zeros(0, np.uint8))


@pytest.fixture(scope="module", params=SIZES)
def tree(request: pytest.FixtureRequest) -> Tree:
    """A new segment every 8 turns or so, at heights as of a branching tree."""
    n = request.param
    rng = np.random.default_rng(0)
    highest = 1 + np.log2(np.arange(1, n + 1)).astype(np.int32)
    heights = np.minimum(rng.geometric(7 / 8, n), highest).astype(np.int32)
    heights[0] = 0
    tree, frontier = new_tree(2 * n, n), new_frontier(64, 1)
    assert attach(frozen(np.ones((n, 1), np.float32)), heights, fixed_rule(0.0), tree, frontier) == n
    *columns, leaf = tree
    return Tree(*(frozen(column[: frontier.sizes[NODES]]) for column in columns), frozen(leaf))


@pytest.mark.parametrize("propagated", [False, True], ids=["independent", "propagated"])
@pytest.mark.parametrize("way", ["kernel", "numpy, sorted", "numpy, partitioned"])
def test_select(benchmark: BenchmarkFixture, tree: Tree, way: str, propagated: bool) -> None:
    """With scores that are independent, or that nodes have inherited, so that the best lie together."""
    n = len(tree.start)
    benchmark.group = f"select {K} of {n:,} nodes, scores {'propagated' if propagated else 'independent'}"
    scores = np.random.default_rng(1).standard_normal(n, dtype=np.float32)
    if propagated:
        decay = frozen(np.array([0.5, 0.25, 0.125], np.float32))
        total = scores[None].copy()
        propagate_along(frozen(scores[None]), tree.parent, frozen(np.zeros(0, np.int32)), decay, total)
        scores = total[0]
    scores = frozen(scores)
    ranked, chosen = np.empty(n, np.int32), np.empty(K, np.int32)

    def kernel() -> list[int]:
        return chosen[: select_nodes(scores, tree.start, tree.end, NO_MASK, ranked, chosen)].tolist()

    def walk(order: npt.NDArray[np.int64]) -> list[int]:
        shown: list[int] = []
        for node in order.tolist():
            first, last = tree.start[node], tree.end[node]
            if all(last < tree.start[other] or tree.end[other] < first for other in shown):
                shown.append(node)
                if len(shown) == K:
                    break
        return shown

    def sorted_() -> list[int]:
        return walk(np.argsort(-scores, kind="stable"))

    def partitioned() -> list[int]:
        """Of as many candidates as the kernel ranks at first; if they are too few, by sorting."""
        best = np.argpartition(scores, -4 * K)[-4 * K :]
        shown = walk(best[np.lexsort((best, -scores[best]))])
        return shown if len(shown) == K else sorted_()

    assert kernel() == sorted_() == partitioned()
    benchmark({"kernel": kernel, "numpy, sorted": sorted_, "numpy, partitioned": partitioned}[way])


@pytest.mark.parametrize("way", ["kernel", "numpy", "scipy"])
def test_standardise(benchmark: BenchmarkFixture, tree: Tree, way: str) -> None:
    """With a mask, as after a filter."""
    n = len(tree.leaf)
    benchmark.group = f"standardise {n:,} scores"
    rng = np.random.default_rng(1)
    scores = frozen(rng.standard_normal(n, dtype=np.float32))
    live = frozen((rng.random(n) < 0.9).astype(np.uint8))
    total = np.zeros(n, np.float32)

    def kernel() -> FloatArray:
        total[:] = 0
        add_standardised(scores, live, 0.5, total)
        return total

    def numpy() -> FloatArray:
        shown = live > 0
        part = scores[shown].astype(np.float64)
        total[:] = 0
        total[shown] += 0.5 * (part - part.mean()) / part.std()
        return total

    def scipy_() -> FloatArray:
        shown = live > 0
        total[:] = 0
        total[shown] += 0.5 * scipy.stats.zscore(scores[shown].astype(np.float64))
        return total

    expected = numpy().copy()
    np.testing.assert_allclose(kernel(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(scipy_(), expected, rtol=1e-5, atol=1e-6)
    benchmark({"kernel": kernel, "numpy": numpy, "scipy": scipy_}[way])
