"""What is tried again, when, and what is given up at once."""

from __future__ import annotations

import asyncio
import random
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmem_core.errors import LLMError, LLMMissing, LLMRefused, LLMUnavailable, MalformedReply
from hmem_core.llm import client, retry, transport
from hmem_core.llm.dialect import Dialect
from hmem_core.llm.driver import AsyncDriver
from hmem_core.llm.retry import Failure, backoff, may_pass, retry_after
from hmem_core.llm.transport import Completion
from hmem_core.reports import Usage
from tests.llm.programs import Encoder, Told, asking, echo, model
from tests.llm.scripted import (
    Arrived,
    Fault,
    ScriptedServer,
    cut_off,
    dropped,
    dropped_after_headers,
    empty_content,
    filtered,
    hanging,
    malformed,
    no_choices,
    null_content,
    quota_exceeded,
    rate_limited,
    refused,
    too_long,
    truncated,
    unauthorized,
    unavailable,
    unsupported,
    wrong_type,
)


@pytest.fixture
def server(scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> ScriptedServer:
    monkeypatch.setattr(retry, "_FIRST", 0.002)
    scripted_server.answer = echo
    return scripted_server


def outcomes(server: ScriptedServer, *texts: str, **options: Any) -> tuple[list[Any], Usage]:
    """What becomes of asking these at once, and what it took."""

    async def scenario() -> tuple[list[Any], Usage]:
        async with AsyncDriver(Encoder().embed, model(server, **options)) as driver:
            programs = (driver.run(asking(text)) for text in texts)
            results = await asyncio.gather(*programs, return_exceptions=True)
            return results, driver.ledger.snapshot().total

    return asyncio.run(scenario())


# -- what is said about waiting ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "1"}, 1.0),
        ({"retry-after": formatdate(1030, usegmt=True)}, 30.0),
        ({"retry-after": formatdate(900, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Fri, 99 Foo 2026 99:99:99 GMT"}, None),
    ],
)
def test_how_long_a_server_asks_to_be_left_alone(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=1000.0) == seconds


@given(st.text())
def test_no_header_is_too_odd_to_read(text: str) -> None:
    seconds = retry_after({"retry-after": text}, now=0.0)
    assert seconds is None or seconds >= 0


@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_back_offs_double_up_to_a_limit_with_jitter(attempt: int, chance: random.Random) -> None:
    span = min(30.0, 0.5 * 2.0 ** min(attempt, 50))
    assert span / 2 <= backoff(attempt, chance) <= span


def test_a_server_may_say_itself_what_is_worth_a_retry() -> None:
    assert not may_pass(Failure("", status=500, headers={"x-should-retry": "false"}))
    assert may_pass(Failure("", status=400, headers={"x-should-retry": "true"}))


# -- what passes -------------------------------------------------------------------------------------

PASSING = [
    *(rate_limited(0.01, form) for form in ("seconds", "milliseconds")),
    rate_limited(None),
    *(unavailable(status) for status in (500, 502, 503, 529)),
    dropped(),
    dropped(reset=True),
    dropped_after_headers(),
    truncated(),
    malformed(),
    wrong_type(),
    no_choices(),
]


@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: fault.name)
def test_what_may_pass_is_tried_again(server: ScriptedServer, fault: Fault) -> None:
    server.faults.add(fault, at=[0, 1])
    results, usage = outcomes(server, "x")
    assert results == ["x"]
    assert len(server.asks) == 3
    assert (usage.calls, usage.retries, usage.failures) == (1, 2, 0)


@pytest.mark.parametrize("fault", [unavailable(500), dropped(), rate_limited(0.001)], ids=lambda f: f.name)
def test_retries_end(server: ScriptedServer, fault: Fault) -> None:
    server.faults.add(fault)
    (error,), usage = outcomes(server, "x", retries=2)
    assert isinstance(error, LLMUnavailable)
    assert len(server.asks) == 3  # the client's own retries would make it more
    assert (usage.calls, usage.retries, usage.failures) == (0, 2, 1)


def test_a_server_that_is_down_is_unavailable(server: ScriptedServer) -> None:
    server.down()
    (error,), _ = outcomes(server, "x", retries=1)
    assert isinstance(error, LLMUnavailable)


# -- what does not -----------------------------------------------------------------------------------

STAYING = [unauthorized(), quota_exceeded(), too_long()]


@pytest.mark.parametrize("fault", STAYING, ids=lambda fault: fault.name)
def test_what_would_not_pass_is_not_tried_again(server: ScriptedServer, fault: Fault) -> None:
    server.faults.add(fault)
    (error,), usage = outcomes(server, "x")
    assert isinstance(error, LLMRefused)
    assert len(server.asks) == 1
    assert (usage.retries, usage.failures) == (0, 1)


def test_errors_say_what_the_server_said(server: ScriptedServer) -> None:
    server.faults.add(unauthorized())
    (error,), _ = outcomes(server, "x")
    assert str(error) == "scripted refuses the request (401): Incorrect API key provided"


# -- pauses and deadlines ----------------------------------------------------------------------------


def test_a_pause_holds_no_permit(server: ScriptedServer) -> None:
    """With one permit, the others are served while the first waits for its next attempt."""
    server.faults.add(
        unavailable(500), when=lambda arrived: arrived.chat.text == "slow" and arrived.attempt == 0
    )
    retry._FIRST = 0.5
    results, _ = outcomes(server, "slow", "a", "b", "c", concurrency=1)
    assert results == ["slow", "a", "b", "c"]
    assert [arrived.chat.text for arrived in server.asks] == ["slow", "a", "b", "c", "slow"]


def test_too_many_requests_make_all_wait(server: ScriptedServer) -> None:
    """Of ten, the two under way are turned away; the rest are not sent into the same wall."""
    server.faults.add(rate_limited(0.1), at=[0, 1])
    texts = [str(i) for i in range(10)]
    results, usage = outcomes(server, *texts, concurrency=2)
    assert results == texts
    assert len(server.asks) == 12
    assert usage.retries == 2
    arrived = [one.arrived for one in server.asks]
    assert arrived[2] - arrived[0] >= 0.09
    assert {one.chat.text for one in server.asks[2:4]} == {"0", "1"}  # they keep their places


def test_a_pause_longer_than_the_deadline_is_begun_by_nobody(server: ScriptedServer) -> None:
    server.faults.add(rate_limited(3600))
    errors, usage = outcomes(server, *map(str, range(10)), concurrency=2)
    assert [type(error) for error in errors] == [LLMUnavailable] * 10
    assert len(server.asks) == 2
    assert (usage.retries, usage.failures) == (0, 10)


def test_a_server_that_was_away_is_tried_again(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_LONGEST_AWAY", 0.05)
    server.faults.add(rate_limited(3600), at=0)

    async def scenario() -> str:
        async with AsyncDriver(Encoder().embed, model(server)) as driver:
            with pytest.raises(LLMUnavailable):
                await driver.run(asking("x"))
            await asyncio.sleep(0.06)
            return await driver.run(asking("x"))

    assert asyncio.run(scenario()) == "x"


@pytest.mark.parametrize("fault", [hanging(), hanging(after_headers=True)], ids=lambda f: f.name)
def test_a_deadline_for_each_question(server: ScriptedServer, fault: Fault) -> None:
    server.faults.add(fault)
    (error,), usage = outcomes(server, "x", timeout=0.3)
    assert isinstance(error, LLMUnavailable)
    assert "no reply to test within 0.3 seconds" in str(error) or "cannot be reached" in str(error)
    assert len(server.asks) == 1
    assert usage.failures == 1


def test_time_in_the_queue_does_not_count(server: ScriptedServer) -> None:
    server.latency = 0.2
    texts = [str(i) for i in range(4)]
    results, _ = outcomes(server, *texts, concurrency=1, timeout=0.5)
    assert results == texts


# -- malformed replies -------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [null_content(), empty_content()], ids=lambda fault: fault.name)
def test_a_malformed_reply_is_asked_for_once_more(server: ScriptedServer, fault: Fault) -> None:
    server.faults.add(fault, at=0)
    results, usage = outcomes(server, "x")
    assert len(server.asks) == 2
    assert isinstance(results[0], str)
    assert (usage.calls, usage.retries) == (2, 0)


def test_the_repair_shows_the_model_its_error(server: ScriptedServer) -> None:
    replies: list[Any] = [{"wrong": 1}, {"text": "right"}]
    server.answer = lambda request: replies[request.number]
    results, _ = outcomes(server, "x")
    assert results == ["right"]
    first, second = (arrived.chat.messages for arrived in server.asks)
    assert second[: len(first)] == first
    assert "wrong" in second[len(first)]["content"]
    assert len(second) == len(first) + 2


def test_malformed_twice_is_given_up(server: ScriptedServer) -> None:
    server.answer = lambda request: "never JSON"
    (error,), usage = outcomes(server, "x")
    assert isinstance(error, MalformedReply)
    assert len(server.asks) == 2
    assert (usage.calls, usage.retries, usage.failures) == (2, 0, 1)


def test_a_reply_that_was_cut_gets_more_room(server: ScriptedServer) -> None:
    server.faults.add(cut_off(), at=0)
    results, _ = outcomes(server, "x")
    assert results == ["x"]
    first, second = server.asks
    assert first.chat.messages == second.chat.messages
    assert second.json["max_tokens"] == 2 * first.json["max_tokens"]


@pytest.mark.parametrize("fault", [refused(), filtered()], ids=lambda fault: fault.name)
def test_a_refusal_is_not_argued_with(server: ScriptedServer, fault: Fault) -> None:
    server.faults.add(fault)
    (error,), _ = outcomes(server, "x")
    assert isinstance(error, MalformedReply)
    assert len(server.asks) == 1


# -- dialects ----------------------------------------------------------------------------------------


def forms(server: ScriptedServer) -> list[str]:
    return [arrived.chat.response_format.get("type", "plain") for arrived in server.asks]


def test_a_server_without_schemas_is_asked_for_json_and_remembered(server: ScriptedServer) -> None:
    server.faults.add(unsupported())
    server.answer = lambda request: {"text": "ok"}

    async def scenario() -> None:
        async with AsyncDriver(Encoder().embed, model(server)) as driver:
            assert [await driver.run(asking(text)) for text in ("a", "b")] == ["ok", "ok"]

    asyncio.run(scenario())
    assert forms(server) == ["json_schema", "json_object", "json_object"]
    assert '"properties"' in server.asks[1].chat.messages[0]["content"]


def test_a_server_without_json_is_asked_in_words(server: ScriptedServer) -> None:
    server.faults.add(unsupported())
    server.faults.add(unsupported("json_object"))
    results, usage = outcomes(server, "x")
    assert results == ["x"]
    assert forms(server) == ["json_schema", "json_object", "plain"]
    assert usage.retries == 0


def test_many_at_once_find_out_together(server: ScriptedServer) -> None:
    server.faults.add(unsupported())
    texts = [str(i) for i in range(20)]
    results, _ = outcomes(server, *texts, concurrency=4)
    assert results == texts
    assert forms(server).count("json_schema") <= 4
    assert forms(server).count("json_object") == 20


def test_a_fixed_way_is_not_left(server: ScriptedServer) -> None:
    server.faults.add(unsupported())
    (error,), _ = outcomes(server, "x", structured="json_schema")
    assert isinstance(error, LLMRefused)
    assert len(server.asks) == 1


def test_models_that_know_other_parameters(server: ScriptedServer) -> None:
    def refuses(name: str, said: str) -> Fault:
        def applies(arrived: Arrived) -> bool:
            return name in arrived.json

        return Fault(f"no {name}", error=unsupported_parameter(said), done=False, applies=applies)

    server.faults.add(refuses("max_tokens", "'max_tokens' is not supported; use 'max_completion_tokens'"))
    server.faults.add(refuses("temperature", "'temperature' does not support 0.0 with this model"))
    results, _ = outcomes(server, "x", "y", concurrency=1, extra={"seed": 7})
    assert results == ["x", "y"]
    assert len(server.asks) == 4
    body = server.asks[-1].json
    assert (body["max_completion_tokens"], body["seed"]) == (1024, 7)
    assert "temperature" not in body


def unsupported_parameter(said: str) -> Any:
    from tests.llm.scripted.wire import Response

    return lambda: Response.error(400, f"Unsupported parameter: {said}", code="unsupported_parameter")


def test_a_400_for_another_reason_changes_nothing() -> None:
    failure = Failure("context length of this schema", status=400, code="context_length_exceeded")
    assert Dialect().after(failure, model()) is None
    assert Dialect().after(Failure("bad", status=400), model()) is None
    assert Dialect().after(Failure("response_format", status=500), model()) is None
    assert Dialect(structured="plain").after(Failure("response_format", status=400), model()) is None


def test_a_schema_in_words_without_a_system_message() -> None:
    from hmem_core.effects import Message

    body = Dialect(structured="plain").request(model(), [Message("user", "x")], {"schema": {}}, 5)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert "response_format" not in body


# -- the client library ------------------------------------------------------------------------------


def test_without_the_client_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(transport.importlib, "import_module", missing)

    async def scenario() -> None:
        async with AsyncDriver(Encoder().embed, model()) as driver:
            with pytest.raises(LLMMissing, match="pip install"):
                await driver.run(asking("x"))

    asyncio.run(scenario())


def test_an_unknown_exception_of_a_transport_reaches_the_program() -> None:
    async def scenario(*replies: Any) -> Any:
        async with AsyncDriver(Encoder().embed, model(), transport=Told(*replies)) as driver:
            return await driver.run(asking("x"))

    with pytest.raises(ZeroDivisionError):
        asyncio.run(scenario(ZeroDivisionError()))
    with pytest.raises(LLMError):
        asyncio.run(scenario(*[Completion(text="no")] * 2))
