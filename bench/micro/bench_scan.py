"""The top 10 of n rows of 384 numbers: the scan beside the obvious NumPy.

    pytest bench/micro/bench_scan.py -o python_files='bench_*.py'

`HMEM_BENCH_LARGE=1` adds a million rows (1.5 GB). NumPy's threads and the scan's are both left at their
defaults; `OPENBLAS_NUM_THREADS=1 HMEM_THREADS=1` compares one thread with one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hmem_core.columns.scanning import top_k

FloatArray = npt.NDArray[np.float32]

DIMENSION = 384
K = 10
SIZES = [1_000, 10_000, 100_000] + [1_000_000] * bool(os.environ.get("HMEM_BENCH_LARGE"))
QUERY = np.random.default_rng(1).standard_normal(DIMENSION, dtype=np.float32)


@pytest.fixture(scope="module", params=SIZES)
def rows(request: pytest.FixtureRequest) -> FloatArray:
    return np.random.default_rng(0).standard_normal((request.param, DIMENSION), dtype=np.float32)


@pytest.fixture(scope="module")
def mapped(rows: FloatArray, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FloatArray]:
    """The same rows in a file mapped read-only, as a checkpoint is."""
    path: Path = tmp_path_factory.mktemp("scan") / "rows"
    rows.tofile(path)
    yield np.memmap(path, np.float32, "r", shape=rows.shape)
    path.unlink()


def numpy_top(rows: FloatArray) -> list[int]:
    scores = rows @ QUERY
    best = np.argpartition(scores, -K)[-K:]
    return best[np.argsort(-scores[best])].tolist()


def scan_top(rows: FloatArray) -> list[int]:
    return top_k([rows], QUERY, K).rows.tolist()


def scan_top_masked(rows: FloatArray) -> list[int]:
    live = np.ones(len(rows), np.uint8)
    return top_k([rows], QUERY, K, live).rows.tolist()


@pytest.mark.parametrize("top", [numpy_top, scan_top, scan_top_masked])
def test_top(benchmark: BenchmarkFixture, rows: FloatArray, top: Callable[[FloatArray], list[int]]) -> None:
    benchmark.group = f"top {K} of {len(rows):,} × {DIMENSION}"
    assert top(rows) == numpy_top(rows)  # and compiles, or loads, what is then timed
    benchmark(top, rows)


@pytest.mark.parametrize("top", [numpy_top, scan_top])
def test_top_mapped(
    benchmark: BenchmarkFixture, mapped: FloatArray, top: Callable[[FloatArray], list[int]]
) -> None:
    benchmark.group = f"top {K} of {len(mapped):,} × {DIMENSION}"
    assert top(mapped) == numpy_top(mapped)
    benchmark(top, mapped)
