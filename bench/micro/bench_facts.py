"""Rewriting the fact graph: one that changes two units, in stores of any size; long cascades; localisation.

    pytest bench/micro/bench_facts.py -o python_files='bench_*.py'

`HMEM_BENCH_LARGE=1` adds a million units.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hmem_core.columns.facts import FactColumns
from hmem_kernels import frozen
from hmem_kernels.cascade import fall
from tests.facts.synthetic import graph
from tests.facts.test_localisation import look
from tests.facts.test_scale import told_anew
from tests.oracles import cascade as oracle

SIZES = [1_000, 10_000, 100_000] + [1_000_000] * bool(os.environ.get("HMEM_BENCH_LARGE"))


@pytest.fixture(scope="module", params=SIZES)
def store(request: pytest.FixtureRequest) -> FactColumns:
    return graph(request.param)


@pytest.mark.benchmark(group="one rewrite of two units")
def test_rewrite(benchmark: BenchmarkFixture, store: FactColumns) -> None:
    entry = benchmark(told_anew, store)
    assert len(entry.changes) == 2


@pytest.mark.benchmark(group="a chain of a tenth of the store falls")
@pytest.mark.parametrize("size", SIZES)
def test_cascade(benchmark: BenchmarkFixture, size: int) -> None:
    store = graph(size, chain=size // 10)
    entry = benchmark.pedantic(told_anew, (store,), rounds=3, warmup_rounds=1)
    assert len(entry.changes) == size // 10 + 2


@pytest.mark.benchmark(group="the kernel alone, on a chain of 500 units, beside the oracle")
@pytest.mark.parametrize("function", [fall, oracle.fall], ids=["kernel", "oracle"])
def test_fall(benchmark: BenchmarkFixture, function: object) -> None:
    store = graph(500, chain=499)
    support, fallen = store.support(), frozen(np.zeros(1, np.int32))
    status = store.units["status"].copy()
    status[0] = 2

    def once() -> int:
        reached = np.zeros(500, np.int32)
        return function(status.copy(), support, fallen, reached, reached.copy())  # type: ignore[operator]

    assert benchmark(once) == 499


@pytest.mark.parametrize("size", SIZES)
def test_localise(benchmark: BenchmarkFixture, size: int) -> None:
    """Every unit has the same category, so that all MicroGraphs share an anchor."""
    benchmark.group = "localisation, where all units have one category"
    store = graph(size, chain=20, category="of all")
    benchmark.extra_info["touched"] = look(store).touched
    found = benchmark(look, store)
    assert len(found.graphs) == 12
