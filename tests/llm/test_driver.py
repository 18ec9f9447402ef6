"""The asynchronous driver: many programs at once, their effects answered together."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from hmem_core.effects import Embed, Priority, Program, Together, gather
from hmem_core.errors import BudgetExceeded, Closed, EncoderError, LLMMissing, LLMRefused
from hmem_core.llm.driver import AsyncDriver
from hmem_core.llm.gate import Gate
from hmem_core.llm.transport import OpenAITransport
from hmem_core.options import Budget
from tests.helpers import hashed
from tests.llm.programs import (
    Encoder,
    Told,
    ask,
    asking,
    at_once,
    echo,
    embedding,
    in_turn,
    model,
)
from tests.llm.scripted import ScriptedServer, dropped, unauthorized


@pytest.fixture
def server(scripted_server: ScriptedServer) -> ScriptedServer:
    scripted_server.answer = echo
    return scripted_server


# -- asking ------------------------------------------------------------------------------------------


def test_many_programs_at_once_keep_to_the_limit(server: ScriptedServer) -> None:
    async def scenario() -> None:
        server.hold()
        async with AsyncDriver(Encoder().embed, model(server, concurrency=4)) as driver:
            running = asyncio.gather(*(driver.run(in_turn(f"p{i}", 3)) for i in range(10)))
            await server.until(lambda: server.in_flight == 4)
            server.release()
            results = await running
        assert results == [[f"p{i}.{j}" for j in range(3)] for i in range(10)]

    asyncio.run(scenario())
    assert len(server.asks) == 30
    assert server.max_in_flight == 4


def test_independent_questions_of_one_program_go_out_together(server: ScriptedServer) -> None:
    async def scenario() -> None:
        server.hold()
        async with AsyncDriver(Encoder().embed, model(server, concurrency=8)) as driver:
            task = asyncio.create_task(driver.run(at_once("p", 6)))
            await server.until(lambda: server.in_flight == 6)
            server.release()
            assert await task == [f"p.{i}" for i in range(6)]

    asyncio.run(scenario())


def test_one_failure_does_not_lose_the_others(server: ScriptedServer) -> None:
    def program() -> Program[list[Any]]:
        return (yield Together((ask("a"), ask("bad"), Embed(("text",)))))

    async def scenario() -> list[Any]:
        async with AsyncDriver(Encoder().embed, model(server)) as driver:
            return await driver.run(program())

    server.faults.add(unauthorized(), when=lambda arrived: arrived.chat.text == "bad")
    first, second, third = asyncio.run(scenario())
    assert first.text == "a"
    assert isinstance(second, LLMRefused)
    assert np.allclose(third, hashed(["text"]))


def test_the_same_question_is_sent_once_at_a_time(server: ScriptedServer) -> None:
    async def scenario() -> None:
        server.hold()
        async with AsyncDriver(Encoder().embed, model(server)) as driver:
            tasks = [asyncio.create_task(driver.run(asking("same", f"p{i % 2}"))) for i in range(4)]
            await server.until(lambda: server.in_flight == 1)
            tasks[0].cancel()  # the one that sent it; the others still wait for the reply
            await asyncio.wait([tasks[0]])
            server.release()
            assert await asyncio.gather(*tasks[1:]) == ["same"] * 3
            spent = driver.ledger.snapshot()
            assert (spent.total.calls, spent.total.saved) == (1, 3)
            assert await driver.run(asking("same")) == "same"

    asyncio.run(scenario())
    assert len(server.asks) == 2


def test_the_urgent_go_first(server: ScriptedServer) -> None:
    async def scenario() -> None:
        server.hold()
        async with AsyncDriver(Encoder().embed, model(server, concurrency=1)) as driver:
            tasks = [asyncio.create_task(driver.run(asking("first"), priority=Priority.BACKGROUND))]
            await server.until(lambda: server.in_flight == 1)
            for name, priority in [
                ("background", Priority.BACKGROUND),
                ("write", Priority.WRITE),
                ("search", Priority.SEARCH),
                ("write again", Priority.WRITE),
            ]:
                tasks.append(asyncio.create_task(driver.run(asking(name), priority=priority)))
                await asyncio.sleep(0)
            server.release()
            await asyncio.gather(*tasks)

    asyncio.run(scenario())
    assert [arrived.chat.text for arrived in server.asks] == [
        "first",
        "search",
        "write",
        "write again",
        "background",
    ]


def test_cancelling_withdraws_what_waits_and_disturbs_nobody_else(server: ScriptedServer) -> None:
    closed = []

    def tidy(name: str) -> Program[list[str]]:
        try:
            return (yield from at_once(name, 3))
        finally:
            closed.append(name)

    async def scenario() -> None:
        server.hold()
        async with AsyncDriver(Encoder().embed, model(server, concurrency=2)) as driver:
            given_up = asyncio.create_task(driver.run(tidy("gone")))
            stays = asyncio.create_task(driver.run(tidy("stays")))
            await server.until(lambda: server.in_flight == 2)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            assert closed == ["gone"]
            server.release()
            assert await stays == [f"stays.{i}" for i in range(3)]

    asyncio.run(scenario())
    sent = [arrived.chat.text for arrived in server.asks]
    assert sorted(sent) == ["gone.0", "gone.1", "stays.0", "stays.1", "stays.2"]  # gone.2 had not been sent


def test_a_budget_for_all_programs(server: ScriptedServer) -> None:
    async def scenario() -> list[Any]:
        async with AsyncDriver(Encoder().embed, model(server, budget=Budget(calls=5))) as driver:
            programs = (driver.run(in_turn(f"p{i}", 2)) for i in range(4))
            return await asyncio.gather(*programs, return_exceptions=True)

    results = asyncio.run(scenario())
    assert len(server.asks) == 5
    assert sum(isinstance(result, BudgetExceeded) for result in results) == 3
    assert sum(isinstance(result, list) for result in results) == 1


def test_without_a_model_nothing_is_asked() -> None:
    async def scenario() -> None:
        async with AsyncDriver(Encoder().embed) as driver:
            assert (await driver.run(embedding("a"))).shape == (1, 32)
            with pytest.raises(LLMMissing, match="test needs a language model"):
                await driver.run(asking("a"))

    asyncio.run(scenario())


def test_closing_gives_up_what_is_under_way(server: ScriptedServer) -> None:
    async def scenario() -> None:
        server.hold()
        driver = AsyncDriver(Encoder().embed, model(server, concurrency=1))
        tasks = [asyncio.create_task(driver.run(asking(str(i)))) for i in range(3)]
        await server.until(lambda: server.in_flight == 1)
        await driver.close()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(result) for result in results] == [Closed] * 3
        with pytest.raises(Closed):
            await driver.run(asking("late"))
        await driver.close()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())
    assert len(server.asks) == 1


# -- embedding ---------------------------------------------------------------------------------------


def test_texts_of_all_programs_are_embedded_in_one_batch_and_once() -> None:
    encoder = Encoder()

    async def scenario() -> None:
        async with AsyncDriver(encoder.embed) as driver:
            results = await asyncio.gather(
                *(driver.run(embedding(f"text {i % 7}", "all")) for i in range(50))
            )
        for i, rows in enumerate(results):
            assert np.allclose(rows, hashed([f"text {i % 7}", "all"]))

    asyncio.run(scenario())
    assert len(encoder.batches) == 1
    assert sorted(encoder.batches[0]) == sorted({"all", *(f"text {i}" for i in range(7))})


def test_batches_have_a_largest_size_and_effects_may_span_several() -> None:
    encoder = Encoder()
    texts = [f"text {i}" for i in range(25)] + ["text 3"]

    async def scenario() -> None:
        async with AsyncDriver(encoder.embed, largest_batch=10) as driver:
            urgent = driver.run(embedding("urgent"), priority=Priority.SEARCH)
            rows, first = await asyncio.gather(driver.run(embedding(*texts)), urgent)
        assert np.allclose(rows, hashed(texts))
        assert np.allclose(first, hashed(["urgent"]))

    asyncio.run(scenario())
    assert [len(batch) for batch in encoder.batches] == [10, 10, 7]
    assert encoder.batches[0][0] == "urgent"


def test_no_texts_have_no_rows() -> None:
    async def scenario() -> None:
        async with AsyncDriver(Encoder().embed) as driver:
            none, one = await asyncio.gather(driver.run(embedding()), driver.run(embedding("a")))
            assert (none.shape, one.shape) == ((0, 32), (1, 32))
            assert (await driver.run(embedding())).shape[0] == 0

    asyncio.run(scenario())


def test_a_text_the_encoder_cannot_take_fails_nobody_else() -> None:
    def embed(texts: Any) -> np.ndarray:
        if "bad" in texts:
            raise EncoderError("bad text")
        return hashed(texts)

    async def scenario() -> list[Any]:
        async with AsyncDriver(embed) as driver:
            programs = [embedding("a", "b", "a"), embedding("bad", "a"), embedding("c")]
            return await asyncio.gather(*map(driver.run, programs), return_exceptions=True)

    first, second, third = asyncio.run(scenario())
    assert np.allclose(first, hashed(["a", "b", "a"]))
    assert isinstance(second, EncoderError)
    assert np.allclose(third, hashed(["c"]))


def test_an_encoder_that_returns_nonsense_does_not_hang_the_program() -> None:
    async def scenario() -> None:
        async with AsyncDriver(lambda texts: []) as driver:
            with pytest.raises(IndexError):
                await driver.run(embedding("a"))

    asyncio.run(scenario())


def test_cancelled_texts_are_not_embedded() -> None:
    encoder = Encoder()

    async def scenario() -> None:
        async with AsyncDriver(encoder.embed) as driver:
            tasks = [asyncio.create_task(driver.run(embedding(name))) for name in ("gone", "stays")]
            await asyncio.sleep(0)
            tasks[0].cancel()
            await asyncio.wait(tasks)

    asyncio.run(scenario())
    assert encoder.batches == [["stays"]]


# -- both --------------------------------------------------------------------------------------------


def test_programs_are_the_same_however_they_are_run(server: ScriptedServer) -> None:
    def mixed(name: str) -> Program[Any]:
        rows, said = yield Together((Embed((name,)), ask(name)))
        more = yield from gather([in_turn(name, 2), at_once(said.text, 2)])
        return rows.shape, more

    async def scenario(together: bool) -> list[Any]:
        async with AsyncDriver(Encoder().embed, model(server)) as driver:
            programs = [driver.run(mixed(str(i))) for i in range(5)]
            return await asyncio.gather(*programs) if together else [await one for one in programs]

    assert asyncio.run(scenario(True)) == asyncio.run(scenario(False))


# -- the gate ----------------------------------------------------------------------------------------


def test_a_permit_given_and_cancelled_in_one_moment_is_not_lost() -> None:
    async def scenario() -> None:
        gate = Gate(1)

        async def hold() -> None:
            async with gate.turn(0):
                await asyncio.sleep(0)

        await gate.acquire(0, -1)
        waiting = asyncio.create_task(hold())
        await asyncio.sleep(0)
        gate.release()  # admits the task, which has not run yet
        waiting.cancel()
        await asyncio.wait([waiting])
        async with asyncio.timeout(5):
            await hold()

    asyncio.run(scenario())


def test_a_connection_that_breaks_is_tried_again(server: ScriptedServer) -> None:
    async def scenario() -> str:
        async with AsyncDriver(Encoder().embed, model(server)) as driver:
            return await driver.run(asking("x"))

    server.faults.add(dropped(), at=0)
    assert asyncio.run(scenario()) == "x"
    assert len(server.asks) == 2


def test_a_transport_of_ones_own() -> None:
    told = Told()

    async def scenario() -> str:
        async with AsyncDriver(Encoder().embed, model(), transport=told) as driver:
            return await driver.run(asking("x"))

    assert asyncio.run(scenario()) == "ok"
    assert told.bodies[0]["messages"][-1] == {"role": "user", "content": "x"}


def test_many_questions_at_once_share_a_few_clients(server: ScriptedServer) -> None:
    """Each with its own pool, since the work of a pool for one request grows with its connections."""

    async def scenario(concurrency: int) -> int:
        transport = OpenAITransport(model(server))
        lanes = transport._connection._lanes
        server.hold()
        async with AsyncDriver(
            Encoder().embed, model(server, concurrency=concurrency), transport=transport
        ) as driver:
            running = asyncio.gather(*(driver.run(asking(f"{concurrency}.{i}")) for i in range(50)))
            await server.until(lambda: server.in_flight == concurrency)
            server.release()
            assert await running == [f"{concurrency}.{i}" for i in range(50)]
            assert all(lane.busy == 0 for lane in lanes)
            return len(lanes)

    assert [asyncio.run(scenario(n)) for n in (16, 17, 40)] == [1, 2, 3]
