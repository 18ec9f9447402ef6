"""What was spent, and for what."""

from __future__ import annotations

import asyncio
import threading

import pytest

import hmem_core as hmem
from hmem_core.budgets import estimate_tokens
from hmem_core.llm.driver import AsyncDriver
from hmem_core.llm.ledger import Ledger
from hmem_core.options import LLM, Budget, Prices
from hmem_core.reports import Usage
from tests.llm.programs import Encoder, Told, asking, model
from tests.llm.scripted import Reply, ScriptedServer, no_usage


def spent(server: ScriptedServer, *purposes: str, **options: object) -> hmem.LedgerSnapshot:
    async def scenario() -> hmem.LedgerSnapshot:
        async with AsyncDriver(Encoder().embed, model(server, **options)) as driver:
            for number, purpose in enumerate(purposes):
                await driver.run(asking(str(number), purpose))
            return driver.ledger.snapshot()

    return asyncio.run(scenario())


def test_tokens_and_cost_by_purpose(scripted_server: ScriptedServer) -> None:
    scripted_server.answer = lambda request: Reply(
        {"text": "ok"}, prompt_tokens=1000, cached_tokens=400, completion_tokens=50
    )
    prices = Prices(input=10, cached=1, output=20)
    ledger = spent(scripted_server, "annotate", "judge", "judge", prices=prices)
    one = ledger.purposes["annotate"]
    assert (one.calls, one.input_tokens, one.cached_tokens, one.output_tokens) == (1, 1000, 400, 50)
    assert one.cost == pytest.approx((600 * 10 + 400 * 1 + 50 * 20) / 1e6)
    assert one.seconds > 0
    assert list(ledger.purposes) == ["annotate", "judge"]
    assert ledger.purposes["judge"].calls == 2
    assert ledger.total.cost == pytest.approx(3 * one.cost)


def test_no_prices_no_cost(scripted_server: ScriptedServer) -> None:
    scripted_server.answer = lambda request: {"text": "ok"}
    assert spent(scripted_server, "judge").total.cost is None


def test_tokens_are_estimated_where_the_server_does_not_say(scripted_server: ScriptedServer) -> None:
    scripted_server.answer = lambda request: '{"text": "ok"}'
    scripted_server.faults.add(no_usage())
    total = spent(scripted_server, "judge").total
    assert total.input_tokens == estimate_tokens("Echo.") + estimate_tokens("0")
    assert total.output_tokens == estimate_tokens('{"text": "ok"}')


def test_prices_without_a_price_for_cached_input() -> None:
    assert Prices(input=2, output=0).cost(1_000_000, 500_000, 0) == 2
    assert Prices(input=2, output=0, cached=0).cost(1_000_000, 500_000, 0) == 1


def test_adding_usage() -> None:
    one = Usage(calls=1, saved=2, retries=3, failures=4, input_tokens=5, cached_tokens=6, output_tokens=7)
    assert one + Usage() == one
    assert (one + one).output_tokens == 14
    assert (Usage(cost=0.5) + Usage()).cost == 0.5
    assert (Usage(cost=0.5) + Usage(cost=0.25)).cost == 0.75


def test_many_threads_lose_nothing() -> None:
    ledger = Ledger()

    def add() -> None:
        for _ in range(200):
            ledger.add("x", Usage(calls=1))

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.snapshot().total.calls == 1600


def test_a_cancelled_question_is_not_a_failure() -> None:
    async def scenario() -> Usage:
        class Slow(Told):
            async def complete(self, body: object) -> object:  # type: ignore[override]
                await asyncio.sleep(60)

        async with AsyncDriver(Encoder().embed, model(), transport=Slow()) as driver:  # type: ignore[arg-type]
            task = asyncio.create_task(driver.run(asking("x")))
            await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.wait([task])
            return driver.ledger.snapshot().total

    assert asyncio.run(scenario()).failures == 0


# -- options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"model": " "},
        {"concurrency": 0},
        {"concurrency": True},
        {"retries": -1},
        {"timeout": 0},
        {"timeout": float("inf")},
        {"temperature": 3},
        {"structured": "xml"},
        {"budget": Budget(money=1)},
    ],
)
def test_options_without_meaning_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(hmem.InvalidInput, match=next(iter(options))):
        model(**options)


@pytest.mark.parametrize("wrong", [-1, float("nan"), "1"])
def test_prices_and_budgets_are_numbers(wrong: object) -> None:
    with pytest.raises(hmem.InvalidInput):
        Prices(input=wrong, output=1)  # type: ignore[arg-type]
    with pytest.raises(hmem.InvalidInput):
        Budget(calls=wrong)  # type: ignore[arg-type]


def test_the_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from the environment")
    llm = LLM(model="m", base_url="http://localhost:1/v1", api_key="secret")
    assert repr(llm) == str(llm) == "<LLM m at http://localhost:1/v1>"
    assert (llm.key, LLM(model="m").key) == ("secret", "from the environment")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert LLM(model="m").key == "none"
