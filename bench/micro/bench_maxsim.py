"""Late interaction with n candidates of 35 tokens and a query of 12: packed states beside float32 and NumPy.

pytest bench/micro/bench_maxsim.py -o python_files='bench_*.py'
"""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hmem_core.columns.states import StateColumns, pack_query, pack_states, words_of

WIDTH, TOKENS, QUERY = 384, 35, 12
ROWS = 4_096
WORDS = words_of(WIDTH)


def unit(n: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, WIDTH), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


STATES = unit(ROWS * TOKENS, 0).reshape(ROWS, TOKENS, WIDTH)
ASKED = unit(QUERY, 1)


@pytest.fixture(scope="module")
def columns() -> StateColumns:
    columns = StateColumns(WORDS)
    for states in STATES:
        columns.append(pack_states(states, WORDS))
    return columns


def candidates(n: int) -> np.ndarray:
    return np.sort(np.random.default_rng(2).choice(ROWS, n, replace=False)).astype(np.int64)


@pytest.mark.parametrize("n", [64, 256, 1_024])
@pytest.mark.parametrize("way", ["packed", "numpy float32"])
def test_best_matches(benchmark: BenchmarkFixture, columns: StateColumns, n: int, way: str) -> None:
    benchmark.group = f"best matches of {QUERY} tokens in {n} x {TOKENS}"
    rows, view, query = candidates(n), columns.view(), pack_query(ASKED, WORDS)
    exact = (STATES[rows] @ ASKED.T).max(axis=1).T
    packed = view.best(query, rows)  # compiles, or loads, what is then timed
    assert np.abs(packed - exact).mean() < 0.1
    if way == "packed":
        benchmark(view.best, query, rows)
    else:
        benchmark(lambda: (STATES[rows] @ ASKED.T).max(axis=1).T)


def test_packing(benchmark: BenchmarkFixture) -> None:
    benchmark.group = f"packing a turn of {TOKENS} tokens, or a query of {QUERY}"
    benchmark(pack_states, STATES[0], WORDS)


def test_packing_a_query(benchmark: BenchmarkFixture) -> None:
    benchmark.group = f"packing a turn of {TOKENS} tokens, or a query of {QUERY}"
    benchmark(pack_query, ASKED, WORDS)
