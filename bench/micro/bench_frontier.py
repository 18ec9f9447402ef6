"""The segment tree of n turns of 384 numbers: built at once, and one turn more.

    pytest bench/micro/bench_frontier.py -o python_files='bench_*.py'

`HMEM_BENCH_LARGE=1` adds a million turns (1.5 GB). The obvious NumPy keeps a matrix of centroid sums of the
stored frontier and multiplies each turn with all of it. The turns drift through topics, and the tree follows
them (`auto_rule`); what it compared and how deep it got is in the extra info.
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hmem_kernels import frozen
from hmem_kernels.frontier import (
    COMPARED,
    DEPTH,
    NODES,
    Frontier,
    Tree,
    attach,
    auto_rule,
    new_frontier,
    new_tree,
)

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

DIMENSION = 384
SIZES = [1_000, 10_000, 100_000] + [1_000_000] * bool(os.environ.get("HMEM_BENCH_LARGE"))
SPREAD, FALL, LOW, HIGH = 0.5, 0.05, 0.05, 0.9
RULE = auto_rule(SPREAD, FALL, LOW, HIGH)
ROOM = 64


@pytest.fixture(scope="module", params=SIZES)
def rows(request: pytest.FixtureRequest) -> FloatArray:
    """Unit vectors that drift: topics of about 8 turns, within themes of about 64."""
    rng = np.random.default_rng(0)
    n = request.param
    rows = rng.standard_normal((n, DIMENSION), dtype=np.float32)
    for length in (8, 64):
        label = np.cumsum(rng.random(n) < 1 / length)
        rows += rng.standard_normal((label[-1] + 1, DIMENSION), dtype=np.float32)[label]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def kernel_build(rows: FloatArray) -> tuple[IntArray, Tree, Frontier]:
    n = len(rows)
    heights, tree = np.full(n, -1, np.int32), new_tree(2 * n, n)
    frontier = new_frontier(ROOM, rows.shape[1])
    assert attach(frozen(rows), heights, RULE, tree, frontier) == n
    return heights, tree, frontier


def numpy_build(rows: FloatArray) -> IntArray:
    """The heights only, by whole-frontier matrix products."""
    chosen = np.zeros(len(rows), np.int32)
    heights = np.zeros(1, np.int64)  # of the stored frontier, the leaf first
    sums = rows[:1].astype(np.float64)
    mean, squares = 0.0, 0.0
    for t in range(1, len(rows)):
        x = rows[t].astype(np.float64)
        level = np.clip(mean + SPREAD * np.sqrt(squares / max(t - 1, 1)), LOW, HIGH)
        similarities = sums @ x / (np.linalg.norm(sums, axis=1) * np.linalg.norm(x))
        chosen[t] = heights[-1] + 1
        above = [*heights[1:], heights[-1] + 1]
        for low, stop, similarity in zip(heights, above, similarities, strict=True):
            passing = similarity - level >= RULE.shape[np.minimum(np.arange(max(low, 1), stop), 64) - 1]
            if passing.any():
                chosen[t] = max(low, 1) + passing.argmax()
                break
        before = similarities[0] - mean
        mean += before / t
        squares += before * (similarities[0] - mean)
        kept = np.searchsorted(heights, chosen[t])
        if kept == len(heights) or heights[kept] != chosen[t]:
            kept -= 1
        heights = np.concatenate([[0, chosen[t]], heights[kept + 1 :]])
        sums = np.concatenate([[x], sums[kept:] + x])
    return chosen


def test_build_kernel(benchmark: BenchmarkFixture, rows: FloatArray) -> None:
    benchmark.group = f"tree of {len(rows):,} × {DIMENSION}"
    _, _, frontier = kernel_build(rows)
    sizes = frontier.sizes.tolist()
    benchmark.extra_info |= {
        "compared a turn": sizes[COMPARED] / len(rows),
        "nodes": sizes[NODES],
        "depth": sizes[DEPTH],
    }
    benchmark(kernel_build, rows)


def test_build_numpy(benchmark: BenchmarkFixture, rows: FloatArray) -> None:
    benchmark.group = f"tree of {len(rows):,} × {DIMENSION}"
    if len(rows) > 10_000:
        pytest.skip("minutes")
    np.testing.assert_array_equal(numpy_build(rows[:1000]), kernel_build(rows[:1000])[0])
    benchmark.pedantic(numpy_build, (rows,), rounds=1)


def test_one_turn_more(benchmark: BenchmarkFixture, rows: FloatArray) -> None:
    """The last turn, again and again on the frontier before it; flat in n."""
    benchmark.group = "one turn more"
    n = len(rows)
    tree, frontier = new_tree(2 * n, n), new_frontier(ROOM, DIMENSION)
    assert attach(frozen(rows[:-1]), np.full(n - 1, -1, np.int32), RULE, tree, frontier) == n - 1
    last = frozen(rows[-1:])
    depth = frontier.sizes[DEPTH]
    used = Frontier(frontier.node[:depth], frontier.sums[:depth], frontier.pairs, frontier.sizes)
    saved = Frontier(*(array.copy() for array in used))
    height = np.empty(1, np.int32)

    def again() -> None:
        for array, before in zip(used, saved, strict=True):
            array[:] = before
        height[0] = -1
        attach(last, height, RULE, tree, frontier)

    benchmark(again)
