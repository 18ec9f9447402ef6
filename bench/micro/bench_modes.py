"""A memory with a slow language model: wall time against the critical path, and event-loop lag.

The critical path is the number of rounds that depend on one another, times the latency of the model.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest

import hmem_core as hmem
from bench.micro.serving import served
from bench.micro.synthetic import Encoder, texts
from tests.llm.helpers import MODEL
from tests.llm.scripted import ChatRequest

LATENCY = 0.5
TURNS = 100


def answer(request: ChatRequest) -> Any:
    shown = [
        json.loads(line) for line in request.messages[-1]["content"].splitlines() if line.startswith("{")
    ]
    if "summary" in request.messages[0]["content"]:
        return {"summary": "what was said"}
    heights = [one["height"] for one in shown if "height" in one]
    return {"height": min(heights) if request.number % 7 else None}


def asked(stats: hmem.Stats) -> Counter[str]:
    """How many replies came, by purpose."""
    purposes = {} if stats.llm is None else stats.llm.purposes
    return Counter({name: usage.calls for name, usage in purposes.items()})


def options(url: str, mode: str) -> dict[str, Any]:
    return {
        "encoder": Encoder(),
        "segments": hmem.SegmentOptions(compatibility=mode),  # type: ignore[arg-type]
        # Events would have rounds of their own, which depend on what is replied.
        "events": hmem.EventOptions(affiliation="cosine", describe=False),
        "llm": hmem.LLM(model=MODEL, base_url=url, api_key="test", concurrency=32),
    }


@pytest.mark.benchmark(group="add 100 turns in one call with a model that takes 0.5 s")
@pytest.mark.parametrize("mode", ["cosine", "batch"])
def test_add_a_hundred(benchmark: Any, mode: str) -> None:
    with served(answer, LATENCY) as url, hmem.open(**options(url, mode)) as memory:
        memory.add(texts(20, seed=1))  # loads and connects the client
        before = asked(memory.stats())
        cpu = time.process_time()
        benchmark.pedantic(lambda: memory.add(texts(TURNS)), rounds=1)
        cpu = time.process_time() - cpu
        memory_stats = memory.stats()
    asks = asked(memory_stats) - before
    summaries = asks["segment_summary"]
    judged = asks["compatibility_batch"]
    rounds = judged + (
        1 if summaries else 0
    )  # each place depends on the one before; summaries go out together
    benchmark.extra_info |= {
        "asks": asks.total(),
        "rounds that depend on one another": rounds,
        "wall time over critical path": round(benchmark.stats.stats.median / max(rounds * LATENCY, 1e-9), 3),
        "CPU, ms": round(cpu * 1000),
        "waiting": memory_stats.waiting,
    }


@pytest.mark.benchmark(group="100 adds and 100 searches at once, awaited")
def test_event_loop_lag(benchmark: Any) -> None:
    lags: list[float] = []

    async def heartbeat() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            lags.append(time.perf_counter() - before - 0.001)

    async def scenario(url: str) -> hmem.Stats:
        prepared = texts(TURNS)
        async with await hmem.AsyncMemory.open(**options(url, "cosine")) as memory:
            await memory.add(prepared)
            beat = asyncio.create_task(heartbeat())
            adds = [memory.add(text, session="s") for text in prepared]
            searches = [memory.search(text, k=8) for text in prepared]
            await asyncio.gather(*adds, *searches)
            beat.cancel()
            return await memory.stats()

    with served(answer, 0.05) as url:
        stats = benchmark.pedantic(lambda: asyncio.run(scenario(url)), rounds=1)
    benchmark.extra_info |= {
        "lag, p99, ms": round(float(np.percentile(lags, 99)) * 1000, 1),
        "lag, most, ms": round(max(lags) * 1000, 1),
        "asks": asked(stats).total(),
    }
