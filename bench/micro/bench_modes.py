"""A memory with a slow language model: wall time against the critical path, and event-loop lag.

The critical path is the number of rounds that depend on one another, times the latency of the model.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import numpy as np
import pytest

import hmem_core as hmem
from bench.micro.synthetic import Encoder, texts
from tests.llm.helpers import MODEL
from tests.llm.scripted import ChatRequest, ScriptedServer

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


def options(server: ScriptedServer, mode: str) -> dict[str, Any]:
    return {
        "encoder": Encoder(),
        "segments": hmem.SegmentOptions(compatibility=mode),  # type: ignore[arg-type]
        "llm": hmem.LLM(model=MODEL, base_url=server.url, api_key="test", concurrency=32),
    }


@pytest.mark.benchmark(group="add 100 turns in one call with a model that takes 0.5 s")
@pytest.mark.parametrize("mode", ["cosine", "batch"])
def test_add_a_hundred(benchmark: Any, mode: str) -> None:
    with ScriptedServer(answer) as server:
        server.latency = LATENCY
        with hmem.open(**options(server, mode)) as memory:
            memory.add(texts(20, seed=1))  # loads and connects the client
            before = len(server.asks)
            benchmark.pedantic(lambda: memory.add(texts(TURNS)), rounds=1)
            memory_stats = memory.stats()
        asks = server.asks[before:]
        summaries = sum("summary" in ask.chat.messages[0]["content"] for ask in asks if ask.chat)
        judged = len(asks) - summaries
    rounds = judged + (
        1 if summaries else 0
    )  # each place depends on the one before; summaries go out together
    benchmark.extra_info |= {
        "asks": len(asks),
        "rounds that depend on one another": rounds,
        "wall time over critical path": round(benchmark.stats.stats.median / max(rounds * LATENCY, 1e-9), 3),
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

    async def scenario(server: ScriptedServer) -> None:
        prepared = texts(TURNS)
        async with await hmem.AsyncMemory.open(**options(server, "cosine")) as memory:
            await memory.add(prepared)
            beat = asyncio.create_task(heartbeat())
            adds = [memory.add(text, session="s") for text in prepared]
            searches = [memory.search(text, k=8) for text in prepared]
            await asyncio.gather(*adds, *searches)
            beat.cancel()

    with ScriptedServer(answer) as server:
        server.latency = 0.05
        benchmark.pedantic(lambda: asyncio.run(scenario(server)), rounds=1)
    benchmark.extra_info |= {
        "lag, p99, ms": round(float(np.percentile(lags, 99)) * 1000, 1),
        "lag, most, ms": round(max(lags) * 1000, 1),
        "asks": len(server.asks),
    }
