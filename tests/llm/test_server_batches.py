"""Batches from one end to the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Literal

import openai
import pytest
from openai import AsyncOpenAI
from openai.types import Batch

from tests.llm.helpers import MODEL, connect
from tests.llm.scripted import (
    Arrived,
    Progress,
    Reply,
    ScriptedServer,
    dropped,
    dropped_after_headers,
    hanging,
    rate_limited,
)

CHAT: Literal["/v1/chat/completions"] = "/v1/chat/completions"


def line(name: str, text: str = "", url: str = CHAT, **body: Any) -> dict[str, Any]:
    said = (
        {"messages": [{"role": "user", "content": text or name}]} if url == CHAT else {"input": text or name}
    )
    return {"custom_id": name, "method": "POST", "url": url, "body": {"model": MODEL, **said, **body}}


async def submit(client: AsyncOpenAI, lines: list[Any], **options: Any) -> Batch:
    content = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines).encode()
    file = await client.files.create(file=("asks.jsonl", content), purpose="batch")
    return await client.batches.create(
        **{"input_file_id": file.id, "endpoint": CHAT, "completion_window": "24h", **options}
    )


async def finished(client: AsyncOpenAI, batch: Batch) -> tuple[Batch, list[str]]:
    """The batch at its end, and what it said on the way."""
    states: list[str] = [batch.status]
    while batch.status not in ("completed", "failed", "expired", "cancelled"):
        batch = await client.batches.retrieve(batch.id)
        states.append(batch.status)
    return batch, states


async def results(client: AsyncOpenAI, file_id: str | None) -> dict[str, Any]:
    """Lines of an output by their names; what a line says is its content, its error, or its status."""
    if file_id is None:
        return {}
    lines = [json.loads(one) for one in (await client.files.content(file_id)).text.splitlines()]
    said: dict[str, Any] = {}
    for one in lines:
        if one["response"] is None:
            said[one["custom_id"]] = one["error"]["code"]
        elif one["response"]["status_code"] != 200:
            said[one["custom_id"]] = one["response"]["status_code"]
        else:
            said[one["custom_id"]] = one["response"]["body"]["choices"][0]["message"]["content"]
    return said


def test_files_are_kept_listed_and_deleted(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            content = bytes(range(256)) * 5_000  # more than one read of the stream
            made = [
                await client.files.create(file=(f"{n}.jsonl", content), purpose="batch", timeout=30.0)
                for n in range(3)
            ]
            assert (made[0].filename, made[0].bytes, made[0].purpose) == ("0.jsonl", len(content), "batch")
            assert [file.id async for file in client.files.list(limit=2)] == [f.id for f in made[::-1]]
            assert (await client.files.content(made[1].id)).content == content
            assert (await client.files.retrieve(made[1].id)) == made[1]
            assert (await client.files.delete(made[1].id)).deleted
            with pytest.raises(openai.NotFoundError):
                await client.files.content(made[1].id)
            with pytest.raises(openai.NotFoundError):
                await client.files.delete(made[1].id)

    asyncio.run(scenario())


def test_completes(scripted_server: ScriptedServer) -> None:
    names = [f"ask-{n}" for n in range(5)]

    async def scenario() -> None:
        async with connect(scripted_server) as client:
            batch = await submit(client, [line(name) for name in names], metadata={"run": "7"})
            assert batch.metadata == {"run": "7"}
            assert scripted_server.asks == []
            batch, states = await finished(client, batch)
            assert states == ["validating", "in_progress", "finalizing", "completed"]
            assert batch.request_counts is not None
            assert (batch.request_counts.total, batch.request_counts.completed) == (5, 5)
            assert batch.completed_at is not None
            assert batch.error_file_id is None
            said = await results(client, batch.output_file_id)
            assert list(said) == names[::-1]  # not as they were given in
            assert said == {name: f"re: {name}" for name in names}
            assert [one.id async for one in client.batches.list()] == [batch.id]
            with pytest.raises(openai.ConflictError):
                await client.batches.cancel(batch.id)
            with pytest.raises(openai.NotFoundError):
                await client.batches.retrieve("batch_0")

    scripted_server.answer = lambda request: f"re: {request.text}"
    asyncio.run(scenario())
    assert [arrived.chat.text for arrived in scripted_server.asks] == names
    assert {(arrived.batch, arrived.answered) for arrived in scripted_server.asks} == {("batch_1", True)}
    assert (scripted_server.max_in_flight, scripted_server.in_flight) == (0, 0)


def test_fails_in_part(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            lines = [line("good"), line("busy"), line("lost"), line("late"), line("refused"), line("off")]
            batch, _ = await finished(client, await submit(client, [*lines, line("bad", stream=True)]))
            assert batch.request_counts is not None
            assert (batch.request_counts.completed, batch.request_counts.failed) == (2, 5)
            assert await results(client, batch.output_file_id) == {"good": "ok", "refused": None}
            expected = {"busy": 429, "lost": "request_timeout", "late": "request_timeout", "bad": 400}
            expected["off"] = "request_timeout"
            assert await results(client, batch.error_file_id) == expected

    plan = {"busy": rate_limited(), "lost": dropped(), "late": hanging(), "off": dropped_after_headers()}

    def asks(name: str) -> Callable[[Arrived], bool]:
        return lambda arrived: arrived.chat.text == name

    for name, fault in plan.items():
        scripted_server.faults.add(fault, when=asks(name))
    scripted_server.answer = lambda r: Reply(None, refusal="No.") if r.text == "refused" else "ok"
    asyncio.run(scenario())
    assert scripted_server.paid == 3


def test_all_of_it_may_fail(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            batch, _ = await finished(client, await submit(client, [line("a"), line("b")]))
            assert (batch.status, batch.output_file_id) == ("completed", None)
            assert await results(client, batch.error_file_id) == {"a": 429, "b": 429}

    scripted_server.faults.add(rate_limited())
    asyncio.run(scenario())


def test_expires_with_what_it_has(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            batch, states = await finished(client, await submit(client, [line(n) for n in "abcde"]))
            assert states == ["validating", "in_progress", "in_progress", "finalizing", "expired"]
            assert batch.expired_at is not None
            assert await results(client, batch.output_file_id) == dict.fromkeys("abcd", "ok")
            assert await results(client, batch.error_file_id) == {"e": "batch_expired"}

    states = ("validating", "in_progress", "in_progress", "finalizing", "expired")
    scripted_server.progress = Progress(states, lines=2)
    asyncio.run(scenario())
    assert scripted_server.paid == 4


def test_is_cancelled(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            batch = await submit(client, [line(n) for n in "abc"])
            await client.batches.retrieve(batch.id)
            batch, states = await finished(client, await client.batches.cancel(batch.id))
            assert states == ["cancelling", "cancelled"]
            assert await results(client, batch.output_file_id) == {"a": "ok"}
            assert await results(client, batch.error_file_id) == dict.fromkeys("bc", "batch_cancelled")

    scripted_server.progress = Progress(lines=1)
    asyncio.run(scenario())


def test_fails(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            batch, states = await finished(client, await submit(client, [line("a")]))
            assert states == ["validating", "failed"]
            assert batch.errors is not None
            assert batch.errors.data is not None
            assert batch.errors.data[0].code == "token_limit_exceeded"
            assert (batch.output_file_id, batch.error_file_id) == (None, None)
            batch, states = await finished(client, await submit(client, [line("a")]))
            assert states == ["completed"]

    scripted_server.progress = lambda n: Progress(("validating", "failed") if n == 0 else ("completed",))
    asyncio.run(scenario())
    assert scripted_server.paid == 1


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([], "empty_file"),
        (["{"], "invalid_json_line"),
        (["[]"], "invalid_json_line"),
        ([line("a"), line("a")], "duplicate_custom_id"),
        ([line("a", url="/v1/embeddings")], "mismatched_endpoint"),
        ([line("a"), line("b", model="other")], "mismatched_model"),
        ([{**line("a"), "body": []}], "mismatched_model"),
    ],
)
def test_a_wrong_input_fails_as_a_whole(scripted_server: ScriptedServer, lines: list[Any], code: str) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            batch, states = await finished(client, await submit(client, lines))
            assert states == ["validating", "failed"]
            assert batch.errors is not None
            assert [error.code for error in batch.errors.data or []] == [code]
            assert (await client.batches.retrieve(batch.id)).status == "failed"

    asyncio.run(scenario())
    assert scripted_server.asks == []


def test_refuses_what_is_no_batch(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            for wrong in ({"input_file_id": "file-0"}, {"endpoint": "/v1/responses"}):
                with pytest.raises(openai.BadRequestError):
                    await submit(client, [line("a")], **wrong)

    asyncio.run(scenario())
    assert scripted_server.batches == {}


def test_embeds_in_a_batch_and_may_lose_lines(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            url = "/v1/embeddings"
            lines = [line("a", url=url), line("b", url=url)]
            batch, _ = await finished(client, await submit(client, lines, endpoint=url))
            assert batch.output_file_id is not None
            output = (await client.files.content(batch.output_file_id)).text.splitlines()
        (one,) = map(json.loads, output)
        assert one["custom_id"] == "b"
        assert len(one["response"]["body"]["data"][0]["embedding"]) == 64

    scripted_server.progress = Progress(edit=lambda output: output.splitlines(keepends=True)[0])
    asyncio.run(scenario())
    assert len(scripted_server.requests("embeddings")) == 2


def test_a_batch_whose_answer_was_lost_can_be_found(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            with pytest.raises(openai.APIConnectionError):
                await submit(client, [line("a")], metadata={"run": "7"})
            (batch,) = [one async for one in client.batches.list() if one.metadata == {"run": "7"}]
            assert (await finished(client, batch))[0].status == "completed"

    scripted_server.faults.add(dropped(done=True), on="batches", times=1)
    asyncio.run(scenario())
    assert scripted_server.answered == 1
