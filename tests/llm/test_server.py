"""The scripted server as the official client sees it, and what it notes down."""

from __future__ import annotations

import asyncio
import base64
import gc
import os
import socket
import struct
import threading
from collections import Counter

import openai
import pytest

from tests.llm.helpers import MODEL, ask, connect, schema
from tests.llm.scripted import Arrived, ChatRequest, Reply, ScriptedServer, dropped, embedding


def test_completes_by_a_script(scripted_server: ScriptedServer) -> None:
    seen: list[ChatRequest] = []

    def answer(request: ChatRequest) -> str:
        seen.append(request)
        return f"{request.number}: {request.text}"

    async def scenario() -> None:
        async with connect(scripted_server) as client:
            first = await ask(client, "Hello, you!", extra_headers={"x-hmem-purpose": "annotate"})
            again = await ask(client, "Hello, you!", response_format=schema())
        assert [first.choices[0].message.content, again.choices[0].message.content] == [
            "0: Hello, you!",
            "1: Hello, you!",
        ]
        assert first.choices[0].finish_reason == "stop"
        assert first.choices[0].message.refusal is None
        assert first.usage is not None
        # "user", ":", "Hello", ",", "you", "!" and "0", ":", "Hello", ",", "you", "!"
        assert (first.usage.prompt_tokens, first.usage.completion_tokens, first.usage.total_tokens) == (
            6,
            6,
            12,
        )

    scripted_server.answer = answer
    asyncio.run(scenario())
    assert seen[0].prompt == "user: Hello, you!"
    assert (seen[0].purpose, seen[1].purpose) == ("annotate", None)
    assert seen[0].schema is None
    assert seen[1].schema == schema()["json_schema"]["schema"]
    first, second = scripted_server.asks
    assert (first.purpose, first.status, first.answered, first.paid) == ("annotate", 200, True, True)
    assert first.connection == second.connection
    assert first.finished is not None
    assert first.arrived <= first.finished <= second.arrived
    assert (scripted_server.answered, scripted_server.paid, scripted_server.max_in_flight) == (2, 2, 1)


def test_replies_in_detail(scripted_server: ScriptedServer) -> None:
    replies = [
        Reply({"city": "Porto"}, cached_tokens=5, prompt_tokens=7, completion_tokens=3),
        Reply(None, refusal="No."),
        Reply("", finish_reason="content_filter"),
        Reply("lost", fault=dropped(done=True)),
        Reply("one two three four"),
    ]
    scripted_server.answer = lambda request: replies[request.number]

    async def scenario() -> None:
        async with connect(scripted_server) as client:
            counted = await ask(client)
            refusal = await ask(client)
            empty = await ask(client)
            with pytest.raises(openai.APIConnectionError):
                await ask(client)
            cut = await ask(client, max_completion_tokens=2, n=2)
        assert counted.choices[0].message.content == '{"city": "Porto"}'
        assert counted.usage is not None
        assert counted.usage.prompt_tokens_details is not None
        assert counted.usage.prompt_tokens_details.cached_tokens == 5
        assert counted.usage.total_tokens == 10
        assert (refusal.choices[0].message.content, refusal.choices[0].message.refusal) == (None, "No.")
        assert (empty.choices[0].message.content, empty.choices[0].finish_reason) == ("", "content_filter")
        assert [(c.message.content, c.finish_reason) for c in cut.choices] == [("one two", "length")] * 2

    asyncio.run(scenario())
    assert [arrived.fault for arrived in scripted_server.asks] == [None, None, None, "dropped", None]
    assert (scripted_server.paid, scripted_server.answered) == (5, 4)


def test_counts_the_head_of_a_prompt_that_an_earlier_one_had() -> None:
    async def scenario(server: ScriptedServer) -> list[int | None]:
        head = " ".join(f"word{n}" for n in range(100))
        cached = []
        async with connect(server) as client:
            for text in (head, head + " and more", "other " + head, head):
                usage = (await ask(client, text)).usage
                assert usage is not None
                assert usage.prompt_tokens_details is not None
                cached.append(usage.prompt_tokens_details.cached_tokens)
        return cached

    with ScriptedServer(cache_block=32) as server:
        assert asyncio.run(scenario(server)) == [0, 96, 0, 96]


def test_embeds(scripted_server: ScriptedServer) -> None:
    texts = ["Ann lives in Porto", "Ann moved to Porto", "Анна 😀"]

    async def scenario() -> None:
        async with connect(scripted_server) as client:
            plain = await client.embeddings.create(model=MODEL, input=texts, encoding_format="float")
            packed = await client.embeddings.create(model=MODEL, input=texts)  # the client asks for base64
            raw = await client.embeddings.create(model=MODEL, input=texts[0], encoding_format="base64")
            short = await client.embeddings.create(model=MODEL, input="Ann", dimensions=8)
            with pytest.raises(openai.BadRequestError):
                await client.embeddings.create(model=MODEL, input=["Ann", ""])
        assert [item.index for item in plain.data] == [0, 1, 2]
        assert [item.embedding for item in plain.data] == [list(item.embedding) for item in packed.data]
        data: object = raw.data[0].embedding
        assert isinstance(data, str)
        assert list(struct.unpack("<64f", base64.b64decode(data))) == plain.data[0].embedding
        assert plain.data[0].embedding == pytest.approx(embedding(texts[0], 64), abs=1e-7)
        assert len(short.data[0].embedding) == 8
        assert plain.usage.prompt_tokens == 10

    asyncio.run(scenario())
    assert [arrived.status for arrived in scripted_server.requests("embeddings")] == [200, 200, 200, 200, 400]


def test_texts_with_common_words_are_alike() -> None:
    one, near, far = (
        embedding(text, 64) for text in ("Ann lives in Porto", "Ann lives in Rome", "blue cheese")
    )
    assert sum(x * x for x in one) == pytest.approx(1)
    assert sum(x * y for x, y in zip(one, near, strict=True)) > 0.5
    assert abs(sum(x * y for x, y in zip(one, far, strict=True))) < 0.5


def test_lists_models_and_refuses_what_it_does_not_know() -> None:
    async def scenario(server: ScriptedServer) -> None:
        async with connect(server) as client:
            assert [model.id async for model in client.models.list()] == ["small", "large"]
            assert (await client.models.retrieve("large")).id == "large"
            with pytest.raises(openai.NotFoundError):
                await client.models.retrieve("huge")
            with pytest.raises(openai.NotFoundError):
                await client.responses.create(model="small", input="hello")
            for wrong in ({"stream": True}, {"tools": [{"type": "function", "function": {"name": "f"}}]}):
                with pytest.raises(openai.BadRequestError, match="is not scripted"):
                    await ask(client, **wrong)
            with pytest.raises(openai.BadRequestError):
                await client.chat.completions.create(model="small", messages=[])
        async with connect(server, api_key="wrong") as client:
            with pytest.raises(openai.AuthenticationError):
                await client.models.list()

    with ScriptedServer(models=["small", "large"], api_key="test") as server:
        asyncio.run(scenario(server))
        assert server.paid == 0


def test_serves_hundreds_at_once(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server, timeout=30.0) as client:
            scripted_server.hold()
            asks = [asyncio.create_task(ask(client, f"number {n}")) for n in range(300)]
            await scripted_server.until(lambda: scripted_server.in_flight == 300, timeout=30)
            assert scripted_server.answered == 0
            scripted_server.release()
            contents = [completion.choices[0].message.content for completion in await asyncio.gather(*asks)]
        assert contents == [f"number {n}" for n in range(300)]

    scripted_server.answer = lambda request: request.text
    asyncio.run(scenario())
    assert scripted_server.max_in_flight == scripted_server.answered == 300
    assert sorted(arrived.in_flight for arrived in scripted_server.asks) == list(range(1, 301))
    assert scripted_server.in_flight == 0


def test_counts_no_more_in_flight_than_a_client_lets_out(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        permits = asyncio.Semaphore(4)
        async with connect(scripted_server) as client:

            async def one(n: int) -> None:
                async with permits:
                    await ask(client, str(n))

            scripted_server.hold()
            asks = asyncio.gather(*map(one, range(60)))
            await scripted_server.until(lambda: scripted_server.in_flight == 4)
            scripted_server.release()
            await asks

    asyncio.run(scenario())
    assert scripted_server.max_in_flight == 4
    assert len({arrived.connection for arrived in scripted_server.asks}) <= 4  # they are kept alive


def test_latency_runs_side_by_side(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            await asyncio.gather(*(ask(client, str(n)) for n in range(20)))

    scripted_server.latency = 0.05
    asyncio.run(scenario())
    asks = scripted_server.asks
    assert all(arrived.finished and arrived.finished - arrived.arrived >= 0.05 for arrived in asks)
    assert scripted_server.max_in_flight > 1


def test_notes_a_client_that_leaves(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        scripted_server.hold()
        async with connect(scripted_server) as client:
            task = asyncio.create_task(ask(client, "leaves"))
            await scripted_server.until(lambda: scripted_server.in_flight == 1)
            task.cancel()
            await scripted_server.until(lambda: scripted_server.asks[0].disconnected)
            with pytest.raises(openai.APITimeoutError):
                await ask(client, "tires", timeout=0.02)
            await scripted_server.until(lambda: scripted_server.asks[1].disconnected)
            scripted_server.release()
            await ask(client, "stays")

    asyncio.run(scenario())
    assert [arrived.answered for arrived in scripted_server.asks] == [False, False, True]
    assert scripted_server.in_flight == 0
    with pytest.raises(TimeoutError, match="'chat': 3"):
        scripted_server.wait(lambda: scripted_server.answered == 2, timeout=0.01)


def test_goes_down_and_comes_up_on_the_same_port(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            await ask(client, "before")
            for _ in range(2):
                scripted_server.down()
                for _ in range(2):
                    with pytest.raises(openai.APIConnectionError):
                        await ask(client, "while")
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection(("127.0.0.1", port)).close()
                scripted_server.up()
                await ask(client, "after")
            scripted_server.hold()
            cut = asyncio.create_task(ask(client, "during"))
            await scripted_server.until(lambda: scripted_server.in_flight == 1)
            scripted_server.down()
            with pytest.raises(openai.APIConnectionError):
                await cut

    port = scripted_server.port
    asyncio.run(scenario())
    assert [arrived.chat.text for arrived in scripted_server.asks] == ["before", "after", "after", "during"]
    assert scripted_server.port == port


def test_counts_attempts(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            for text in ("one", "two", "one", "one"):
                await ask(client, text)

    asyncio.run(scenario())
    assert [arrived.attempt for arrived in scripted_server.asks] == [0, 0, 1, 2]


def test_an_error_in_a_script_is_raised_at_the_end() -> None:
    def answer(request: ChatRequest) -> str:
        raise KeyError(request.text)

    async def fails(server: ScriptedServer) -> None:
        async with connect(server) as client:
            await ask(client, "unforeseen")

    async def scenario(server: ScriptedServer) -> None:
        with pytest.raises(openai.InternalServerError, match="the script raised KeyError"):
            await fails(server)

    with pytest.raises(ExceptionGroup) as raised, ScriptedServer(answer) as server:
        asyncio.run(scenario(server))
    assert [str(error) for error in raised.value.exceptions] == ["'unforeseen'"]
    with (
        pytest.raises(openai.InternalServerError),
        ScriptedServer(answer) as server,
    ):  # the test's own goes first
        asyncio.run(fails(server))


def test_leaves_nothing_behind() -> None:
    async def scenario(server: ScriptedServer) -> None:
        async with connect(server) as client:
            await asyncio.gather(*(ask(client, str(n)) for n in range(5)))

    def count() -> Counter[str]:
        gc.collect()
        named = "/proc/self/fd"
        files = len(os.listdir(named)) if os.path.isdir(named) else 0
        return Counter(threads=threading.active_count(), files=files)

    with ScriptedServer() as server:  # what the client's first use leaves open is not ours
        asyncio.run(scenario(server))
    before = count()
    for _ in range(2):
        with ScriptedServer() as server:
            asyncio.run(scenario(server))
            server.hold()
            waiting = socket.create_connection(("127.0.0.1", server.port))
            waiting.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 55\r\n\r\n"
                b'{"model": "m", "messages": [{"content": "still here"}]}'
            )
            server.wait(lambda: len(server.asks) == 6)
        waiting.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port)).close()
    assert count() == before


def test_a_record_shows_what_it_is() -> None:
    arrived = Arrived("chat", 0, "POST", "/v1/chat/completions", b"[1, 2")
    assert arrived.json is None
    assert (arrived.chat.messages, arrived.chat.prompt, arrived.chat.schema) == ([], "", None)
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    request = ChatRequest(0, 0, {"messages": [{"role": "user", "content": parts}, {"role": "assistant"}]}, {})
    assert (request.prompt, request.text) == ("user: one\ntwo\nassistant: ", "")
