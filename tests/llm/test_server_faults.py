"""Every fault, as the official client tells of it."""

from __future__ import annotations

import asyncio
import json
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

import openai
import pytest

from tests.llm.helpers import MODEL, ask, connect, schema
from tests.llm.scripted import (
    Arrived,
    Fault,
    FaultPlan,
    ScriptedServer,
    cut_off,
    dropped,
    dropped_after_headers,
    edited,
    empty_content,
    filtered,
    hanging,
    malformed,
    no_choices,
    no_usage,
    null_content,
    quota_exceeded,
    rate_limited,
    refused,
    slow,
    too_long,
    truncated,
    unauthorized,
    unavailable,
    unsupported,
    wrong_type,
)

CONTENT = '{"city": "Porto", "country": "Portugal"}'

# The fault; what the client raises; the status, and whether the script was asked for a reply.
RAISED = [
    (rate_limited(), openai.RateLimitError, 429, False),
    (rate_limited(form="date"), openai.RateLimitError, 429, False),
    (quota_exceeded(), openai.RateLimitError, 429, False),
    (unavailable(500), openai.InternalServerError, 500, False),
    (unavailable(503), openai.InternalServerError, 503, False),
    (unavailable(529), openai.InternalServerError, 529, False),
    (unauthorized(), openai.AuthenticationError, 401, False),
    (unsupported("json_object"), openai.BadRequestError, 400, False),
    (too_long(3), openai.BadRequestError, 400, False),
    (malformed(), json.JSONDecodeError, 200, True),
    (truncated(), openai.APIConnectionError, 200, True),
    (dropped(), openai.APIConnectionError, None, False),
    (dropped(done=True), openai.APIConnectionError, None, True),
    (dropped(reset=True), openai.APIConnectionError, None, False),
    (dropped_after_headers(), openai.APIConnectionError, 200, True),
    (hanging(), openai.APITimeoutError, None, False),
    (hanging(after_headers=True), openai.APITimeoutError, 200, True),
]


@pytest.mark.parametrize(("fault", "error", "status", "paid"), RAISED)
def test_raises(
    scripted_server: ScriptedServer, fault: Fault, error: type[Exception], status: int | None, paid: bool
) -> None:
    async def scenario() -> Exception:
        async with connect(scripted_server) as client:
            timeout = 0.05 if fault.then == "hang" else 5.0
            with pytest.raises(error) as raised:
                await ask(client, response_format={"type": "json_object"}, timeout=timeout)
            await scripted_server.until(lambda: scripted_server.asks[0].finished is not None)
            return raised.value

    scripted_server.answer = lambda request: CONTENT
    scripted_server.faults.add(fault)
    raised = asyncio.run(scenario())
    assert type(raised) is error
    (arrived,) = scripted_server.asks
    assert (arrived.fault, arrived.status, arrived.paid) == (fault.name, status, paid)
    assert arrived.answered == (fault.name == "malformed")
    assert arrived.disconnected == (fault.then == "hang")
    if isinstance(raised, openai.APIStatusError):
        assert raised.status_code == status
        code = {"rate_limited": "rate_limit_exceeded", "quota_exceeded": "insufficient_quota"}
        code |= {"unauthorized": "invalid_api_key", "too_long": "context_length_exceeded"}
        assert raised.code == code.get(fault.name)


# The fault; content, refusal and reason to finish of the first choice.
CHANGED = [
    (null_content(), (None, None, "stop")),
    (empty_content(), ("", None, "stop")),
    (refused("No."), (None, "No.", "stop")),
    (cut_off(), ('{"city": "Porto"', None, "length")),
    (filtered(), (None, None, "content_filter")),
]


@pytest.mark.parametrize(("fault", "expected"), CHANGED)
def test_changes_the_reply(
    scripted_server: ScriptedServer, fault: Fault, expected: tuple[str | None, str | None, str]
) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            (choice,) = (await ask(client)).choices
        assert (choice.message.content, choice.message.refusal, choice.finish_reason) == expected

    scripted_server.answer = lambda request: CONTENT
    scripted_server.faults.add(fault)
    asyncio.run(scenario())
    assert scripted_server.answered == 1


def test_changes_the_answer(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            assert (await ask(client)).choices == []
            assert (await ask(client)).usage is None
            page: Any = await ask(client)
            assert isinstance(page, str)  # the client hands out what is no JSON as it came
            assert page.startswith("<html>")
            assert (await ask(client)).model == "another"
            assert (await ask(client)).choices[0].message.content == "ok"

    faults = [no_choices(), no_usage(), wrong_type(), edited(lambda answer: {**answer, "model": "another"})]
    for number, fault in enumerate(faults):
        scripted_server.faults.add(fault, at=number)
    asyncio.run(scenario())


def test_a_schema_may_be_unsupported(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            with pytest.raises(openai.BadRequestError, match="'json_schema' is not supported") as raised:
                await ask(client, response_format=schema())
            assert raised.value.param == "response_format"
            await ask(client, response_format={"type": "json_object"})
            await ask(client)

    scripted_server.faults.add(unsupported())
    asyncio.run(scenario())


def test_a_date_to_wait_for_is_not_before_it(scripted_server: ScriptedServer) -> None:
    async def scenario() -> str:
        async with connect(scripted_server) as client:
            with pytest.raises(openai.RateLimitError) as raised:
                await ask(client)
            return str(raised.value.response.headers["retry-after"])

    scripted_server.faults.add(rate_limited(after=0.5, form="date"))
    before = time()
    assert 0.5 <= parsedate_to_datetime(asyncio.run(scenario())).timestamp() - before < 3


def test_other_kinds_of_requests_fail_too(scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server) as client:
            with pytest.raises(openai.InternalServerError):
                await client.embeddings.create(model=MODEL, input="text")
            with pytest.raises(openai.APIConnectionError):
                await client.files.create(file=b"{}", purpose="batch")
            with pytest.raises(openai.InternalServerError):
                await client.models.list()
            await ask(client)

    scripted_server.faults.add(dropped_after_headers(), on="files")
    scripted_server.faults.add(unavailable(), on=None, when=lambda arrived: arrived.kind != "chat")
    asyncio.run(scenario())
    assert [file.content for file in scripted_server.files.values()] == [b"{}"]  # it was done all the same


def request(number: int, text: str = "", *, attempt: int = 0, kind: str = "chat") -> Arrived:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text or str(number)}]})
    return Arrived(kind, number, "POST", "/v1/chat/completions", body.encode(), attempt=attempt)


def met(plan: FaultPlan, *requests: Arrived) -> list[str | None]:
    return [fault.name if fault else None for fault in map(plan.pick, requests)]


def test_plans_by_number_by_test_and_by_count() -> None:
    plan = FaultPlan()
    plan.add(malformed(), at=1)
    plan.add(truncated(), at=range(3, 5))
    plan.add(unavailable(), when=lambda arrived: arrived.chat.text == "bad", times=2)
    plan.add(dropped(), on="embeddings")
    numbered = [request(number) for number in range(6)]
    assert met(plan, *numbered) == [None, "malformed", None, "truncated", "truncated", None]
    assert met(plan, *[request(9, "bad")] * 3) == ["unavailable", "unavailable", None]
    assert met(plan, request(0, kind="embeddings"), request(0, kind="files")) == ["dropped", None]
    assert met(plan, request(1, "bad")) == ["malformed"]  # the first rule
    plan.clear()
    assert met(plan, *numbered) == [None] * 6


def test_delays_add_up() -> None:
    plan = FaultPlan()
    plan.add(slow(0.1))
    plan.add(unavailable(), at=[1, 2])
    plan.add(slow(0.2), at=2)
    picked = [plan.pick(request(number)) for number in range(3)]
    assert [fault.name for fault in picked if fault] == ["slow", "unavailable", "unavailable"]
    assert [fault.delay for fault in picked if fault] == pytest.approx([0.1, 0.1, 0.3])


def test_chance_depends_on_what_is_said_and_not_on_its_order() -> None:
    def picked(seed: int, numbers: list[int], attempt: int = 0) -> set[str]:
        plan = FaultPlan()
        plan.add(unavailable(), chance=0.3, seed=seed)
        said = [request(place, str(number), attempt=attempt) for place, number in enumerate(numbers)]
        return {arrived.chat.text for arrived in said if plan.pick(arrived)}

    numbers = list(range(500))
    assert picked(1, numbers) == picked(1, numbers[::-1])
    assert 100 < len(picked(1, numbers)) < 200
    assert picked(1, numbers) != picked(2, numbers)
    assert picked(1, numbers) != picked(1, numbers, attempt=1)  # a retry has a chance of its own
