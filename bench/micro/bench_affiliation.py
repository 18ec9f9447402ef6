"""Finding the events of n turns, and scoring events over the links of n turns, beside NumPy.

pytest bench/micro/bench_affiliation.py -o python_files='bench_*.py'
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hmem_kernels import frozen
from hmem_kernels.affiliation import affiliate, lend_events, score_events

DIMENSION = 384
RECENT = 128
SIZES = [1_000, 10_000, 100_000] + [1_000_000] * bool(os.environ.get("HMEM_BENCH_LARGE"))
WEIGHTS = frozen(np.array([1.0, 0.5, 0.25], np.float32))


@pytest.mark.parametrize("turns", [1, 1_000])
@pytest.mark.parametrize("way", ["kernel", "numpy"])
def test_affiliate(benchmark: BenchmarkFixture, turns: int, way: str) -> None:
    """Among the 128 events that got turns last."""
    benchmark.group = f"find the events of {turns:,} turns"
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((turns, DIMENSION), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    level = frozen(np.full(turns, 0.1, np.float32))
    known = rng.standard_normal((RECENT, DIMENSION), dtype=np.float32)

    def kernel() -> Any:
        nothing = frozen(np.full((turns, 0), -1, np.int32))
        sums = np.zeros((RECENT + turns, DIMENSION), np.float32)
        sums[:RECENT] = known
        order, norm = np.arange(RECENT, dtype=np.int32), np.zeros(len(sums), np.float32)
        before, chosen = frozen(np.full(turns, -1, np.int32)), np.zeros(turns, np.int32)
        bonus = np.float32(0.0)
        affiliate(
            frozen(rows), level, before, nothing, nothing, bonus, RECENT, RECENT, order, sums, norm, chosen
        )
        return chosen

    def numpy() -> Any:
        sums = np.concatenate([known, np.zeros((turns, DIMENSION), np.float32)])
        events, order, chosen = RECENT, list(range(RECENT)), []
        for row in rows:
            near = sums[order]
            values = near @ row / np.linalg.norm(near, axis=1)
            place = int(np.argmax(values))
            best = order[place] if values[place] >= 0.1 else events
            events += best == events
            order = [best, *(event for event in order if event != best)][:RECENT]
            sums[best] += row
            chosen.append(best)
        return np.array(chosen)

    assert kernel().tolist() == numpy().tolist()
    benchmark({"kernel": kernel, "numpy": numpy}[way])


@pytest.mark.parametrize("turns", SIZES)
@pytest.mark.parametrize("way", ["kernel", "numpy"])
def test_score(benchmark: BenchmarkFixture, turns: int, way: str) -> None:
    """Events of eight turns: odds and dot products added up, and the score of the best lent to each turn."""
    benchmark.group = f"score the events of {turns:,} turns"
    rng = np.random.default_rng(0)
    count = turns // 8
    turn = frozen(np.arange(turns, dtype=np.int32))
    event = frozen(rng.integers(0, count, turns).astype(np.int32))
    odds, cosines = (frozen(rng.random(turns, dtype=np.float32)) for _ in range(2))
    length, allowed = frozen(np.full(turns, 1.2, np.float32)), frozen(np.ones(turns, np.uint8))
    previous = frozen(np.arange(-1, turns - 1, dtype=np.int32))

    def kernel() -> Any:
        total, dots, counted = np.zeros(count), np.zeros(count), np.zeros(count, np.int32)
        links = (turn, event, length, odds, cosines, allowed, previous, WEIGHTS)
        score_events(*links, total, dots, counted)
        lent = np.full(turns, -np.inf, np.float32)
        lend_events(turn, event, frozen((total / np.maximum(counted, 1)).astype(np.float32)), lent)
        return lent, dots

    def numpy() -> Any:
        total = np.bincount(event, odds[turn] * allowed[turn], count)
        counted = np.bincount(event, allowed[turn], count)
        context, following = np.zeros(turns, np.float32), turn
        for weight in WEIGHTS:
            context += weight * np.where(following >= 0, cosines[following], 0)
            following = np.where(following >= 0, previous[following], -1)
        lent = np.full(turns, -np.inf, np.float32)
        np.maximum.at(lent, turn, (total / np.maximum(counted, 1)).astype(np.float32)[event])
        return lent, np.bincount(event, context / length, count)

    for found, wanted in zip(kernel(), numpy(), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4)
    benchmark({"kernel": kernel, "numpy": numpy}[way])
