"""A memory with a model: blocking calls, many threads, event loops, forks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import hmem_core as hmem
from hmem_core.effects import Embed, Priority, Program
from hmem_core.llm import threads
from hmem_core.options import Budget
from tests.helpers import hashing_encoder, open_memory
from tests.llm.programs import Encoder, Told, asking, echo, in_turn, model, thread_driver
from tests.llm.scripted import ScriptedServer


@pytest.fixture
def server(scripted_server: ScriptedServer) -> ScriptedServer:
    scripted_server.answer = echo
    return scripted_server


def background_threads() -> list[str]:
    return [
        thread.name for thread in threading.enumerate() if thread.name.startswith(("hmem-llm", "hmem-embed"))
    ]


def test_without_a_model_no_thread_is_started() -> None:
    with open_memory() as memory:
        memory.add("text")
        memory.search("text")
        assert background_threads() == []
        assert memory.stats().llm is None


def test_a_memory_with_a_model(server: ScriptedServer, tmp_path: Path) -> None:
    with open_memory(tmp_path / "m", llm=model(server)) as memory:
        assert background_threads() == []
        assert memory.add(["one thing", "another thing"]).ids == (0, 1)
        assert memory.search("one thing", k=1)[0].text == "one thing"
        assert "another" in memory.context("another thing").text
        assert memory._run(asking("hello"), Priority.WRITE) == "hello"
        spent = memory.stats().llm
        assert spent is not None
        assert spent.purposes["test"].calls == 1
        assert sorted({name.split("_")[0] for name in background_threads()}) == ["hmem-embed", "hmem-llm"]
    assert background_threads() == []
    with pytest.raises(hmem.Closed):
        memory.search("one thing")


def test_many_threads_share_batches_and_the_limit(server: ScriptedServer) -> None:
    encoder = Encoder()
    server.hold()
    with thread_driver(model(server, concurrency=3), encoder) as driver:

        def both(name: str) -> Program[Any]:
            yield Embed((name,))
            return (yield from in_turn(name, 2))

        with ThreadPoolExecutor(12) as pool:
            running = [pool.submit(driver.run, both(str(i))) for i in range(12)]
            server.wait(lambda: server.in_flight == 3)
            server.release()
            assert [one.result() for one in running] == [[f"{i}.0", f"{i}.1"] for i in range(12)]
    assert server.max_in_flight == 3
    assert len(server.asks) == 24
    assert sum(map(len, encoder.batches)) == 12


def test_blocking_calls_work_inside_a_running_event_loop(server: ScriptedServer) -> None:
    async def scenario() -> None:
        with open_memory(llm=model(server)) as memory:
            memory.add("Ann lives in Porto")
            assert memory.search("Ann", k=1)[0].text == "Ann lives in Porto"
            assert memory._run(asking("hello"), Priority.WRITE) == "hello"

    asyncio.run(scenario())
    asyncio.run(scenario())


def test_errors_reach_the_caller(server: ScriptedServer) -> None:
    def fails(texts: list[str]) -> Any:
        raise RuntimeError("no")

    with hmem.open(encoder=hmem.FunctionEncoder(fails, dimension=3), llm=model(server)) as memory:
        with pytest.raises(hmem.EncoderError):
            memory.add("text")
        with pytest.raises(hmem.InvalidInput):
            memory.search("")


def test_closing_ends_calls_under_way(server: ScriptedServer) -> None:
    server.hold()
    with thread_driver(model(server)) as driver, ThreadPoolExecutor(3) as pool:
        running = [pool.submit(driver.run, asking(str(i))) for i in range(3)]
        server.wait(lambda: server.in_flight == 3)
        driver.close()
        for one in running:
            with pytest.raises(hmem.Closed):
                one.result(30)
        with pytest.raises(hmem.Closed):
            driver.run(asking("late"))
        driver.close()


def test_a_budget_is_shared_by_all_threads(server: ScriptedServer) -> None:
    with thread_driver(model(server, budget=Budget(calls=7))) as driver, ThreadPoolExecutor(5) as pool:
        running = [pool.submit(driver.run, in_turn(str(i), 2)) for i in range(5)]
        errors = [one.exception(30) for one in running]
    assert sum(isinstance(error, hmem.BudgetExceeded) for error in errors) >= 2
    assert len(server.asks) == 7


def test_a_driver_that_is_dropped_ends_its_thread() -> None:
    driver = threads.ThreadDriver(Encoder().embed, model(), transport=Told)
    assert driver.run(asking("x")) == "ok"
    assert driver._home is not None
    thread = driver._home.thread
    del driver
    thread.join(30)
    assert not thread.is_alive()


def test_an_interrupt_withdraws_the_question(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.hold()

    def interrupted(timeout: float | None = None) -> Any:
        server.wait(lambda: server.in_flight == 1)
        raise KeyboardInterrupt

    with thread_driver(model(server)) as driver:
        submit = driver._submit

        def submitted(*args: Any) -> Any:
            future = submit(*args)
            future.result = interrupted  # type: ignore[method-assign]
            return future

        monkeypatch.setattr(driver, "_submit", submitted)
        with pytest.raises(KeyboardInterrupt):
            driver.run(asking("x"))
        server.wait(lambda: server.asks[0].finished is not None)
        assert server.asks[0].disconnected


# -- AsyncMemory -------------------------------------------------------------------------------------


def test_an_async_memory_waits_for_the_model_without_a_thread(server: ScriptedServer) -> None:
    """More calls are under way at once than there are threads for them."""

    async def scenario() -> None:
        server.hold()
        memory = await hmem.AsyncMemory.open(encoder=hashing_encoder(), llm=model(server, concurrency=20))
        async with memory:
            driver = memory._object._driver
            assert driver is not None
            running = [asyncio.create_task(driver.run_in(memory._threads, asking(str(i)))) for i in range(20)]
            await server.until(lambda: server.in_flight == 20)
            await memory.add("meanwhile")
            assert (await memory.search("meanwhile"))[0].text == "meanwhile"
            running[0].cancel()
            await asyncio.wait([running[0]])
            server.release()
            assert await asyncio.gather(*running[1:]) == [str(i) for i in range(1, 20)]
        with pytest.raises(hmem.Closed):
            await memory.search("meanwhile")

    asyncio.run(scenario())


def test_cancelling_in_the_middle_of_a_step_lets_the_step_end() -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def program() -> Program[None]:
        try:
            begun.set()
            assert go_on.wait(30)
            yield Embed(("text",))
        finally:
            ended.set()

    async def scenario() -> None:
        with ThreadPoolExecutor(1) as steps, thread_driver(model(), transport=Told) as driver:
            task = asyncio.create_task(driver.run_in(steps, program()))
            await asyncio.to_thread(begun.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not ended.is_set()
            go_on.set()
            assert await asyncio.to_thread(ended.wait, 30)

    asyncio.run(scenario())


def test_closing_an_async_memory_lets_calls_end(server: ScriptedServer) -> None:
    async def scenario() -> None:
        memory = await hmem.AsyncMemory.open(encoder=hashing_encoder(), llm=model(server))
        running = [asyncio.create_task(memory.add(str(i))) for i in range(20)]
        await asyncio.sleep(0)
        await memory.close()
        assert sorted(added.ids[0] for added in await asyncio.gather(*running)) == list(range(20))

    asyncio.run(scenario())


# -- processes ---------------------------------------------------------------------------------------

FORKED = """
import os, sys, warnings
import hmem_core as hmem
from tests.llm.programs import asking, echo, model
from tests.llm.scripted import ScriptedServer
from tests.helpers import open_memory

warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of any fork beside threads
with ScriptedServer(echo) as server:
    with open_memory(llm=model(server, cache=sys.argv[1])) as memory:
        memory.add("text")
        assert memory._run(asking("before"), 0) == "before"
        child = os.fork()
        if child == 0:
            try:
                assert memory.search("text")[0].text == "text"
                assert memory._run(asking("in the child"), 0) == "in the child"
                assert memory._run(asking("before"), 0) == "before"
                assert memory.stats().llm.total.saved == 1
                memory.close()
            except BaseException as error:
                print("child:", repr(error), flush=True)
                os._exit(1)
            os._exit(0)
        assert memory._run(asking("in the parent"), 0) == "in the parent"
        assert os.waitpid(child, 0)[1] == 0
        assert memory._run(asking("after"), 0) == "after"
    sent = sorted(one.chat.text for one in server.asks)
    assert sent == ["after", "before", "in the child", "in the parent"]
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_has_a_thread_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKED, str(tmp_path / "replies.sqlite")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stdout + done.stderr


def test_a_process_that_closes_nothing_ends_quietly() -> None:
    code = (
        "from tests.llm.programs import *\n"
        "driver = ThreadDriver(Encoder().embed, model(), transport=Told)\n"
        "driver.run(asking('x')); driver.run(embedding('x')); print('done')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


def test_a_model_loads_nothing_before_it_is_asked() -> None:
    code = (
        "import sys, hmem_core as hmem\n"
        "with hmem.open(encoder=lambda texts: [[1.0]] * len(texts), llm=hmem.LLM(model='m')) as memory:\n"
        "    memory.add('text')\n"
        "    print('openai' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "False\n", done.stderr
