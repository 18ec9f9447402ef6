"""Simple paths against the slow way and against networkx."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hmem_kernels import frozen
from hmem_kernels.bestpaths import Graph
from hmem_kernels.paths import simple_paths
from tests.oracles import paths as oracle


@st.composite
def graphs(draw, most_nodes=7):
    """Offsets, targets and kinds: self loops, parallel edges and isolated nodes among them."""
    n = draw(st.integers(0, most_nodes))
    node = st.integers(0, max(n - 1, 0))
    edges = draw(st.lists(st.tuples(node, node, st.integers(0, 1)), max_size=3 * n if n else 0))
    if draw(st.booleans()):
        edges += [(b, a, kind) for a, b, kind in edges]
    return csr(n, edges)


def csr(n, edges):
    order = sorted(range(len(edges)), key=lambda place: edges[place][0])
    offsets = np.zeros(n + 1, np.int64)
    for a, _, _ in edges:
        offsets[a + 1 :] += 1
    targets = np.array([edges[place][1] for place in order], np.int32)
    kinds = np.array([edges[place][2] for place in order], np.uint8)
    return Graph(frozen(offsets), frozen(targets), frozen(kinds))


def listed(function, starts, graph, wanted=(), fewest=0, most=3, room=(4000, 1000), width=np.int64):
    nodes, ends = np.zeros(room[0], np.int32), np.zeros(room[1], np.int64)
    found, written = function(
        frozen(np.array(starts, np.int32)),
        frozen(graph.offsets.astype(width)),
        graph.targets,
        frozen(np.array(wanted, np.uint8)),
        fewest,
        most,
        nodes,
        ends,
    )
    cuts = [0, *ends[:written].tolist()]
    return found, [tuple(nodes[a:b].tolist()) for a, b in itertools.pairwise(cuts)]


@settings(max_examples=300, deadline=None)
@given(graphs(), st.data())
def test_simple_paths_like_the_oracle(graph, data) -> None:
    n = len(graph.offsets) - 1
    starts = data.draw(st.lists(st.integers(0, n - 1), max_size=4)) if n else []
    wanted = data.draw(st.one_of(st.just([]), st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    fewest, most = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 5))
    room = data.draw(st.sampled_from([(0, 0), (7, 50), (400, 3), (20_000, 5000)]))
    width = data.draw(st.sampled_from([np.int32, np.int64]))
    given = (starts, graph, wanted, fewest, most, room, width)
    assert listed(simple_paths, *given) == listed(lambda *a: oracle.simple_paths(*a), *given)


@settings(max_examples=200, deadline=None)
@given(graphs(), st.integers(1, 4))
def test_simple_paths_like_networkx(graph, most) -> None:
    n = len(graph.offsets) - 1
    other = nx.MultiDiGraph()
    other.add_nodes_from(range(n))
    rows = np.repeat(np.arange(n), np.diff(graph.offsets)).tolist()
    other.add_edges_from(zip(rows, graph.targets.tolist(), strict=True))
    for start in range(n):
        for goal in set(range(n)) - {start}:
            wanted = [node == goal for node in range(n)]
            expected = sorted(map(tuple, nx.all_simple_paths(other, start, goal, cutoff=most)))
            found, paths = listed(simple_paths, [start], graph, wanted, 1, most, (20_000, 5000))
            assert (found, sorted(paths)) == (len(expected), expected)


def test_what_does_not_fit_is_counted_and_nothing_is_written_beyond() -> None:
    graph = csr(9, [(a, b, 0) for a in range(9) for b in range(9)])
    total = sum(9 * 8 * 7 * 6 // divisor for divisor in (1, 6, 42)) + 9
    assert listed(simple_paths, range(9), graph, room=(0, 0)) == (total, [])
    found, some = listed(simple_paths, range(9), graph, room=(9, 100))
    assert (found, some) == (total, [(0,), (0, 1), (0, 1, 2)])
    assert listed(simple_paths, range(9), graph, room=(100_000, 2))[1] == [(0,), (0, 1)]
