"""The best paths against sorting all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmem_kernels import frozen
from hmem_kernels.bestpaths import PARTS, SCORE, Qualities, best_paths
from tests.kernels.test_paths import csr, graphs
from tests.oracles import bestpaths as oracle


def best(function, starts, graph, qualities, weights, keep, most, limit=1_000_000):
    paths, sizes = np.full((keep, most + 1), -9, np.int32), np.zeros(keep, np.int32)
    parts = np.zeros((keep, PARTS))
    weights = frozen(np.array(weights, np.float64))
    kept, looked = function(
        frozen(np.array(starts, np.int32)), graph, qualities, weights, paths, sizes, parts, limit
    )
    return paths[:kept].tolist(), sizes[:kept].tolist(), parts[:kept], looked


eighths = st.integers(0, 8).map(lambda n: n / 8)


def qualities_of(draw, n, wanted, values=eighths):
    def column(values):
        return np.array(draw(st.lists(values, min_size=n, max_size=n)), np.float32)

    match = np.array([column(values) for _ in range(wanted)], np.float32).reshape(wanted, n)
    moment = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), np.int64)
    columns = (match, column(st.sampled_from([0, 1])), column(values), column(values), moment)
    return Qualities._make(map(frozen, columns))


@settings(max_examples=300, deadline=None)
@given(graphs(), st.data())
def test_best_paths_like_the_oracle(graph, data) -> None:
    n = len(graph.offsets) - 1
    values = data.draw(st.sampled_from([eighths, st.sampled_from([0.5, 1.0]), st.just(1.0)]))
    qualities = qualities_of(data.draw, n, data.draw(st.integers(0, 3)), values)
    weights = data.draw(
        st.sampled_from([[0.25] * 4, [1, 0, 0, 0], [0, 1, 0, 0.5], [0.5, 0.125, 2, 1], [0] * 4])
    )
    starts = data.draw(st.lists(st.integers(0, n - 1), unique=True)) if n else []
    keep, most = data.draw(st.integers(0, 8)), data.draw(st.integers(0, 4))
    found = best(best_paths, starts, graph, qualities, weights, keep, most)
    expected = best(lambda *a: oracle.best_paths(*a), starts, graph, qualities, weights, keep, most)
    assert found[:2] == expected[:2]
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-12)


@pytest.mark.parametrize("wanted", [1, 3])
def test_best_paths_prunes_and_yet_finds_the_best_of_a_large_graph(wanted) -> None:
    n, rng = 150, np.random.default_rng(wanted)
    edges = [(int(a), int(b), int(rng.random() < 0.5)) for a, b in rng.integers(0, n, (n * 4, 2))]
    graph = csr(n, edges + [(b, a, kind) for a, b, kind in edges])
    columns = (
        rng.random((wanted, n)).astype(np.float32),
        (rng.random(n) < 0.9).astype(np.float32),
        rng.random(n).astype(np.float32),
        rng.random(n).astype(np.float32),
        rng.integers(0, 9, n),
    )
    qualities = Qualities._make(map(frozen, columns))
    found = best(best_paths, range(n), graph, qualities, [0.25] * 4, 24, 3)
    expected = best(lambda *a: oracle.best_paths(*a), range(n), graph, qualities, [0.25] * 4, 24, 3)
    assert found[:2] == expected[:2]
    assert found[3] < expected[3] / 3, "what was looked at, of what there is"
    assert (np.diff(found[2][:, SCORE]) <= 0).all()


def test_a_lone_match_is_beaten_by_a_chain_of_dependencies_alone() -> None:
    """Adding what is merely near to a unit that answers makes a path worse, adding what rests on it not."""
    match = np.array([[1, 0, 0]], np.float32)
    flat = np.ones(3, np.float32)
    qualities = Qualities._make(map(frozen, (match, flat, flat, flat, np.arange(3))))
    graph = csr(3, [(0, 1, 0), (0, 2, 1)])
    paths, _, parts, _ = best(best_paths, [0], graph, qualities, [0.25] * 4, 3, 3)
    assert paths == [[0, 2, -1, -1], [0, -1, -1, -1], [0, 1, -1, -1]]
    assert parts[:, SCORE].tolist() == [1, 1, 0.75]


def test_the_limit_bounds_what_is_looked_at_and_the_best_so_far_are_kept() -> None:
    n = 60
    graph = csr(n, [(a, b, 1) for a in range(n) for b in range(n)])
    flat = np.ones(n, np.float32)
    qualities = Qualities._make(
        map(frozen, (np.ones((1, n), np.float32), flat, flat, flat, np.zeros(n, np.int64)))
    )
    paths, _, parts, looked = best(best_paths, range(n), graph, qualities, [0.25] * 4, 5, 3, limit=1000)
    assert looked == 1000 + n
    assert (parts[:, SCORE] == 1).all()
    assert paths[0] == [0, -1, -1, -1]
    everything = best(best_paths, range(n), graph, qualities, [0.25] * 4, 5, 3, limit=10**9)
    assert everything[3] > 10**6, "all tie, and nothing can be cut"
