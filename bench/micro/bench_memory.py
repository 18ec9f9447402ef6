"""How long a memory takes to add, search and open, without the encoder's share; and how large it is.

A group is one operation; its rows are sizes of the memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hmem_core as hmem
from bench.micro.synthetic import Encoder, build, texts

SIZES = [1_000, 10_000, 100_000]
if os.environ.get("HMEM_BENCH_LARGE"):
    SIZES.append(1_000_000)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    return {size: tmp_path_factory.mktemp("memory") / str(size) for size in SIZES}


@pytest.fixture(params=SIZES, ids=lambda size: f"{size:,}", scope="module")
def size(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def memory(size: int, places: dict[int, Path]) -> Iterator[hmem.Memory]:
    with build(places[size], size) as memory:
        memory.checkpoint()
        yield memory


@pytest.mark.benchmark(group="add one turn, durable on return")
def test_add_one(benchmark: Any, memory: hmem.Memory) -> None:
    text = texts(1, seed=1)[0]
    memory.add(text)
    benchmark(lambda: memory.add(text, session="new"))


@pytest.mark.benchmark(group="add 100 turns in one call")
def test_add_a_hundred(benchmark: Any, memory: hmem.Memory) -> None:
    given = texts(100, seed=2)
    benchmark.pedantic(lambda: memory.add(given, session="new"), rounds=15, warmup_rounds=1)


@pytest.mark.benchmark(group="search, k=8")
@pytest.mark.parametrize("view", ["dense", "lexical", "time", "events", "fused"])
def test_search(benchmark: Any, memory: hmem.Memory, view: str) -> None:
    query = " ".join(texts(1, seed=3)[0].split()[:6])
    benchmark(lambda: memory.search(query, k=8, view=view))


@pytest.mark.benchmark(group="search, k=8, where speaker")
def test_search_where(benchmark: Any, memory: hmem.Memory) -> None:
    query = " ".join(texts(1, seed=3)[0].split()[:6])
    benchmark(lambda: memory.search(query, k=8, where={"speaker": "Ann"}))


@pytest.mark.benchmark(group="context, 1,000 tokens")
def test_context(benchmark: Any, memory: hmem.Memory) -> None:
    benchmark(lambda: memory.context("anything", 1000))


@pytest.mark.benchmark(group="open from a checkpoint")
def test_open(benchmark: Any, size: int, tmp_path: Path) -> None:
    with build(tmp_path / "m", size) as memory:
        held = memory.stats()
        memory.checkpoint()
    encoder = Encoder()
    benchmark.pedantic(lambda: hmem.open(tmp_path / "m", encoder=encoder).close(), rounds=10, warmup_rounds=1)
    with hmem.open(tmp_path / "m", encoder=encoder) as memory:
        mapped = memory.stats()
    benchmark.extra_info |= {
        "bytes a turn held": round(held.memory_bytes / size),
        "bytes a turn held after opening": round(mapped.memory_bytes / size),
        "bytes a turn mapped": round(mapped.mapped_bytes / size),
        "bytes a turn on disk": round(mapped.disk_bytes / size),
    }
