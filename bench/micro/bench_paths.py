"""All simple paths of at most three edges on 100,000 nodes of mean degree 4, and the best 24 of a subgraph.

    pytest bench/micro/bench_paths.py -o python_files='bench_*.py'

Beside networkx, rustworkx and igraph (the `bench` extra). All list the same paths, which is checked; they
differ in what they hand out: lists of Python integers, or here one array of nodes. networkx and rustworkx
have to be told where paths may end: the nodes within three edges of a source, found beforehand. `paths` in
the extra info is how many there are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hmem_kernels import frozen
from hmem_kernels.bestpaths import PARTS, SCORE, Graph, Qualities, best_paths
from hmem_kernels.paths import simple_paths

NODES, EDGES, HOPS = 100_000, 200_000, 3
FEW, MANY = 100, 10_000

Pairs = npt.NDArray[np.int32]


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    """An undirected graph without self loops and parallel edges, each edge once."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, NODES, (EDGES + 1000, 2), dtype=np.int32)
    drawn = np.sort(drawn[drawn[:, 0] != drawn[:, 1]], axis=1)
    return np.unique(drawn, axis=0)[:EDGES]


@pytest.fixture(scope="module")
def csr(pairs: Pairs) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    offsets = np.zeros(NODES + 1, np.int64)
    np.cumsum(np.bincount(both[:, 0], minlength=NODES), out=offsets[1:])
    return frozen(offsets), frozen(np.ascontiguousarray(both[:, 1]))


def sources(count: int) -> npt.NDArray[np.int32]:
    return np.random.default_rng(1).choice(NODES, count, replace=False).astype(np.int32)


def kernel(csr: Any, starts: npt.NDArray[np.int32], nodes: Any, ends: Any) -> int:
    every = frozen(np.empty(0, np.uint8))
    found, written = simple_paths(frozen(starts), *csr, every, 1, HOPS, nodes, ends)
    assert found == written
    return int(found)


def room(starts: int) -> tuple[Any, Any]:
    return np.empty(starts * 1000, np.int32), np.empty(starts * 300, np.int64)


def expected(csr: Any, starts: npt.NDArray[np.int32]) -> list[tuple[int, ...]]:
    nodes, ends = room(len(starts))
    count = kernel(csr, starts, nodes, ends)
    cuts = [0, *ends[:count].tolist()]
    flat = nodes.tolist()
    return sorted(tuple(flat[a:b]) for a, b in itertools.pairwise(cuts))


def check(found: Iterable[Iterable[int]], csr: Any) -> None:
    assert sorted(map(tuple, found)) == expected(csr, sources(FEW))


GROUP = f"simple paths of ≤ {HOPS} edges from {FEW} of {NODES:,} nodes"


def test_paths_kernel(benchmark: BenchmarkFixture, csr: Any) -> None:
    benchmark.group = GROUP
    buffers = room(FEW)
    benchmark.extra_info["paths"] = kernel(csr, sources(FEW), *buffers)
    benchmark(kernel, csr, sources(FEW), *buffers)


def measure(benchmark: BenchmarkFixture, run: Callable[[], list[Any]], csr: Any) -> None:
    benchmark.group = GROUP
    check(run(), csr)
    benchmark.pedantic(run, rounds=3)


def test_paths_rustworkx(benchmark: BenchmarkFixture, pairs: Pairs, csr: Any) -> None:
    rx = pytest.importorskip("rustworkx")
    graph = rx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(NODES))
    graph.add_edges_from_no_data([(int(a), int(b)) for a, b in pairs])
    goals = {start: targets_within(csr, start) for start in sources(FEW).tolist()}

    def run() -> list[Any]:
        return [
            path
            for start, near in goals.items()
            for path in rx.graph_all_simple_paths(graph, start, near, cutoff=HOPS)
        ]

    measure(benchmark, run, csr)


def targets_within(csr: Any, start: int) -> list[int]:
    """The nodes that a path of at most three edges can end at."""
    offsets, targets = csr
    seen, last = {start}, [start]
    for _ in range(HOPS):
        last = [int(n) for node in last for n in targets[offsets[node] : offsets[node + 1]] if n not in seen]
        seen.update(last)
    return sorted(seen - {start})


def test_paths_igraph(benchmark: BenchmarkFixture, pairs: Pairs, csr: Any) -> None:
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph(NODES, pairs.tolist())
    starts = sources(FEW).tolist()

    def run() -> list[Any]:
        return [path for start in starts for path in graph.get_all_simple_paths(start, maxlen=HOPS)]

    measure(benchmark, run, csr)


def test_paths_networkx(benchmark: BenchmarkFixture, pairs: Pairs, csr: Any) -> None:
    nx = pytest.importorskip("networkx")
    graph = nx.Graph(pairs.tolist())
    graph.add_nodes_from(range(NODES))
    goals = {start: targets_within(csr, start) for start in sources(FEW).tolist()}

    def run() -> list[Any]:
        return [
            path
            for start, near in goals.items()
            for path in nx.all_simple_paths(graph, start, near, cutoff=HOPS)
        ]

    measure(benchmark, run, csr)


@pytest.mark.parametrize("listing", [True, False], ids=["listed", "counted"])
def test_paths_from_many(benchmark: BenchmarkFixture, csr: Any, listing: bool) -> None:
    benchmark.group = f"simple paths of ≤ {HOPS} edges from {MANY:,} of {NODES:,} nodes"
    starts = sources(MANY)
    nodes, ends = room(MANY) if listing else room(0)
    every = frozen(np.empty(0, np.uint8))

    def run() -> int:
        return int(simple_paths(frozen(starts), *csr, every, 1, HOPS, nodes, ends)[0])

    benchmark.extra_info["paths"] = run()
    benchmark(run)


@pytest.mark.parametrize("bounded", [True, False], ids=["branch_and_bound", "enumerate_and_sort"])
def test_best_paths(benchmark: BenchmarkFixture, bounded: bool) -> None:
    """The 24 best of a subgraph of 400 units with 8 relations each; beside listing all."""
    benchmark.group = "best 24 paths of ≤ 3 edges among 400 units of mean degree 8"
    n, rng = 400, np.random.default_rng(2)
    edges = rng.integers(0, n, (4 * n, 2))
    edges = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(edges[:, 0], minlength=n), out=offsets[1:])
    kinds = ((edges.sum(axis=1) * 7919) % 3 == 0).astype(np.uint8)
    graph = Graph(frozen(offsets), frozen(edges[:, 1].astype(np.int32)), frozen(kinds))
    floats = rng.random((3, n), dtype=np.float32)
    qualities = Qualities(
        frozen(rng.random((2, n), dtype=np.float32)), *map(frozen, floats), frozen(np.arange(n))
    )
    starts, weights = frozen(np.arange(n, dtype=np.int32)), frozen(np.full(4, 0.25))
    keep = 24 if bounded else 150_000
    paths, sizes = np.empty((keep, HOPS + 1), np.int32), np.empty(keep, np.int32)
    parts = np.empty((keep, PARTS))

    def search() -> int:
        return int(best_paths(starts, graph, qualities, weights, paths, sizes, parts, 10**9)[1])

    def sort() -> None:
        every, nodes, ends = frozen(np.empty(0, np.uint8)), *room(n * 4)
        count, _ = simple_paths(starts, graph.offsets, graph.targets, every, 0, HOPS, nodes, ends)
        places = np.arange(HOPS + 1) + np.concatenate([[0], ends[: count - 1]])[:, None]
        there = places < ends[:count, None]
        units = np.where(there, nodes[np.minimum(places, ends[count - 1] - 1)], -1)
        lengths = there.sum(axis=1)
        match = np.where(there, qualities.match[:, units], 0).max(axis=2).mean(axis=0)
        others = [np.where(there, column[units], 0).sum(axis=1) / lengths for column in qualities[1:3]]
        rows = np.repeat(np.arange(n), np.diff(graph.offsets))
        kind_of = np.zeros((n, n), np.uint8)
        kind_of[rows, graph.targets] = graph.kinds
        steps = np.where(there[:, 1:], kind_of[units[:, :-1], units[:, 1:]], 0).sum(axis=1)
        dependency = np.where(lengths > 1, steps / np.maximum(lengths - 1, 1), 1.0)
        scores = 0.25 * (match + dependency + others[0] + others[1])
        top = np.sort(scores[units[np.arange(count), lengths - 1] >= units[:, 0]])[::-1][:24]
        sort.top = top  # type: ignore[attr-defined]

    if bounded:
        benchmark.extra_info["looked at"] = search()
        sort()
        np.testing.assert_allclose(parts[:, SCORE], sort.top, rtol=1e-6)  # type: ignore[attr-defined]
        benchmark(search)
    else:
        benchmark.pedantic(sort, rounds=3)
