"""`AsyncMemory`: the same methods, and an event loop that stays free."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import hmem_core as hmem
from hmem_core.aio import AsyncSegments
from hmem_core.retrieval.outline import Segments
from tests.helpers import hashing_encoder


def test_the_same_methods_awaited(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with await hmem.AsyncMemory.open(tmp_path / "m", encoder=hashing_encoder()) as memory:
            added = await memory.add(["one thing", "another thing"], session="s")
            assert added.ids == (0, 1)
            assert (await memory.search("one thing", k=1))[0].turns == (0,)
            assert (await memory.get(1)).text == "another thing"
            assert len(await memory.turns()) == 2
            assert "one thing" in (await memory.context("one thing", 100)).text
            assert (await memory.forget(0)).ids == (0,)
            assert (await memory.stats()).turns == 1
            assert await memory.checkpoint()
        with pytest.raises(hmem.Closed):
            await memory.search("one thing")

    asyncio.run(scenario())


def test_every_method_of_memory_is_there() -> None:
    public = {name for name in vars(hmem.Memory) if not name.startswith("_")}
    assert public <= {name for name in vars(hmem.AsyncMemory) if not name.startswith("_")}


def test_every_method_of_its_segments_is_there() -> None:
    names = [{name for name in vars(kind) if not name.startswith("_")} for kind in (Segments, AsyncSegments)]
    assert names[0] == names[1]


def test_segments_are_walked_without_the_event_loop() -> None:
    async def scenario() -> None:
        async with await hmem.AsyncMemory.open(encoder=hashing_encoder()) as memory:
            assert await memory.segments.root() is None
            await memory.add(["kettle one", "kettle two", "violin"])
            walked = [segment async for segment in memory.segments.walk(min_size=1)]
            root = await memory.segments.root()
            assert root == walked[0]
            assert [one.id for one in walked[1:] if one.parent == root.id] == list(root.children)
            assert await memory.segments.by_span(0, 2) == await memory.segments.get(root.id) == root
            assert (await memory.segments.of_turn(2))[-1] == root
            assert await memory.segments.text(root.id, turns=9) == root.text
            assert [one.id for one in await memory.segments.children(root.id)] == list(root.children)
            with pytest.raises(hmem.SegmentNotFound):
                async for _ in memory.segments.walk(99):
                    pass

    asyncio.run(scenario())


@pytest.mark.parametrize("call", ["add", "search"])
def test_the_event_loop_runs_while_the_encoder_works(call: str) -> None:
    # The encoder waits until the event loop has turned: if the loop were blocked, this would never end.
    turned = threading.Event()

    def encode(texts: list[str]) -> list[list[float]]:
        assert turned.wait(60), "the event loop was blocked"
        return [[1.0, 0.0]] * len(texts)

    async def scenario() -> None:
        encoder = hmem.FunctionEncoder(encode, name="waits", dimension=2)
        async with await hmem.AsyncMemory.open(encoder=encoder) as memory:
            method = memory.add if call == "add" else memory.search
            task = asyncio.create_task(method("text"))
            for _ in range(10):
                await asyncio.sleep(0.001)
            turned.set()
            await task

    asyncio.run(scenario())


def test_a_cancelled_add_is_stored_whole_or_not_at_all() -> None:
    started, go_on = threading.Event(), threading.Event()

    def encode(texts: list[str]) -> list[list[float]]:
        started.set()
        assert go_on.wait(60)
        return [[1.0, 0.0]] * len(texts)

    async def scenario() -> int:
        encoder = hmem.FunctionEncoder(encode, name="waits", dimension=2)
        memory = await hmem.AsyncMemory.open(encoder=encoder)
        task = asyncio.create_task(memory.add(["a", "b", "c"]))
        await asyncio.to_thread(started.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        async with memory:
            await memory.add("d")
            return len(await memory.turns())

    assert asyncio.run(scenario()) in (1, 4)


def test_many_adds_and_searches_at_once() -> None:
    async def scenario() -> None:
        async with await hmem.AsyncMemory.open(encoder=hashing_encoder(512)) as memory:
            added = await asyncio.gather(*(memory.add(f"turn {i % 20}", key=f"k{i % 20}") for i in range(60)))
            assert {i for one in added for i in one.ids} == set(range(20))
            found = await asyncio.gather(*(memory.search(f"turn {i}", k=1) for i in range(20)))
            assert [hits[0].text for hits in found] == [f"turn {i}" for i in range(20)]

    asyncio.run(scenario())
