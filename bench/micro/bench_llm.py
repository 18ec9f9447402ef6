"""How long programs take that wait for a language model, against the time no driver can go below.

The model is a scripted server on the loopback, in a process of its own, that takes 100 ms for a reply. A
program here is three rounds that depend on one another; a round embeds a text and asks three questions side
by side. So the critical path of any number of programs is 0.3 s, where the limit on concurrency lets all
questions out. What comes on top of it is mostly the client library's 2 ms of computing for a request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import numpy as np
import pytest

from bench.micro.serving import served
from bench.micro.synthetic import DIMENSION
from hmem_core.effects import Ask, Embed, Message, Program, drive, gather
from hmem_core.llm.driver import AsyncDriver
from hmem_core.llm.ledger import Ledger
from hmem_core.llm.threads import ThreadDriver
from hmem_core.options import LLM
from tests.llm.scripted import ChatRequest

LATENCY = 0.1
ROUNDS = 3
WIDTH = 3
PROGRAMS = (1, 10, 40)


class Said(msgspec.Struct):
    text: str


class Encoder:
    """Takes 5 ms for a call, whatever is in it, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.calls += 1
        time.sleep(0.005)
        return np.ones((len(texts), DIMENSION), dtype=np.float32)


def question(text: str) -> Program[str]:
    reply: Said = yield Ask("bench", (Message("user", text),), Said)
    return reply.text


def program(name: str) -> Program[int]:
    asked = 0
    for number in range(ROUNDS):
        yield Embed((f"{name} {number}",))
        asked += len((yield from gather(question(f"{name} {number} {i}") for i in range(WIDTH))))
    return asked


def answer(request: ChatRequest) -> dict[str, str]:
    return {"text": "ok"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(answer, LATENCY) as url:
        yield url


def model(url: str, count: int) -> LLM:
    return LLM(model="scripted", base_url=url, api_key="x", concurrency=count * WIDTH)


def measure(benchmark: Any, ledger: Ledger, once: Callable[[], Any]) -> None:
    benchmark.pedantic(once, rounds=5, warmup_rounds=1)
    benchmark.extra_info |= {
        "asks": ledger.snapshot().total.calls // 6,
        "÷ critical path": round(benchmark.stats.stats.median / (ROUNDS * LATENCY), 2),
    }


@pytest.mark.benchmark(group="programs over a model of 100 ms: 3 rounds of 3 questions")
@pytest.mark.parametrize("count", PROGRAMS)
def test_async_driver(benchmark: Any, url: str, count: int) -> None:
    encoder, runs = Encoder(), 0

    async def all_of_them(driver: AsyncDriver) -> None:
        await asyncio.gather(*(driver.run(program(f"{runs} {i}")) for i in range(count)))

    with asyncio.Runner() as runner:
        driver = AsyncDriver(encoder.embed, model(url, count))

        def once() -> None:
            nonlocal runs
            runs += 1
            runner.run(all_of_them(driver))

        measure(benchmark, driver.ledger, once)
        runner.run(driver.close())
    benchmark.extra_info["embedding calls"] = encoder.calls // runs


@pytest.mark.benchmark(group="programs over a model of 100 ms: 3 rounds of 3 questions")
@pytest.mark.parametrize("count", PROGRAMS)
def test_blocking_in_as_many_threads(benchmark: Any, url: str, count: int) -> None:
    encoder, runs = Encoder(), 0
    driver = ThreadDriver(encoder.embed, model(url, count))
    with ThreadPoolExecutor(count) as pool:

        def once() -> None:
            nonlocal runs
            runs += 1
            list(pool.map(driver.run, [program(f"{runs} {i}") for i in range(count)]))

        measure(benchmark, driver.ledger, once)
    driver.close()
    benchmark.extra_info["embedding calls"] = encoder.calls // runs


@pytest.mark.benchmark(group="programs over a model of 100 ms: 3 rounds of 3 questions")
@pytest.mark.parametrize("count", PROGRAMS)
def test_in_the_loop_of_an_application(benchmark: Any, url: str, count: int) -> None:
    """As `AsyncMemory` runs them, with four threads for the programs' own work; and how late that loop is."""
    encoder, runs = Encoder(), 0
    late: list[float] = []

    async def watch() -> None:
        while True:
            due = time.perf_counter() + 0.001
            await asyncio.sleep(0.001)
            late.append(max(0.0, time.perf_counter() - due))

    async def all_of_them(driver: ThreadDriver, steps: ThreadPoolExecutor) -> None:
        watching = asyncio.create_task(watch())
        await asyncio.gather(*(driver.run_in(steps, program(f"{runs} {i}")) for i in range(count)))
        watching.cancel()

    driver = ThreadDriver(encoder.embed, model(url, count))
    with asyncio.Runner() as runner, ThreadPoolExecutor(4) as steps:

        def once() -> None:
            nonlocal runs
            runs += 1
            runner.run(all_of_them(driver, steps))

        measure(benchmark, driver.ledger, once)
    driver.close()
    benchmark.extra_info |= {
        "embedding calls": encoder.calls // runs,
        "loop late, p99 in ms": round(float(np.quantile(late, 0.99)) * 1e3, 1),
        "loop late, max in ms": round(max(late) * 1e3, 1),
    }


@pytest.mark.benchmark(group="one embedding, without a model to wait for")
@pytest.mark.parametrize("way", ["called", "through the thread"])
def test_embed(benchmark: Any, way: str) -> None:
    def embed(texts: Sequence[str]) -> np.ndarray:
        return np.ones((len(texts), DIMENSION), dtype=np.float32)

    def one() -> Program[Any]:
        return (yield Embed(("text",)))

    if way == "called":
        benchmark(lambda: drive(one(), lambda effect: embed(effect.texts)))
        return
    driver = ThreadDriver(embed, LLM(model="none"))
    benchmark(lambda: driver.run(one()))
    driver.close()
