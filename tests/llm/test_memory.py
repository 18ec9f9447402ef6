"""A whole memory over a scripted server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import hmem_core as hmem
from tests.helpers import hashing_encoder
from tests.llm.helpers import MODEL
from tests.llm.scripted import ChatRequest, ScriptedServer, rate_limited, unavailable

TURNS = [f"topic{name} number {i}" for name in "abc" for i in range(8)]


def answer(request: ChatRequest) -> Any:
    shown = [
        json.loads(line) for line in request.messages[-1]["content"].splitlines() if line.startswith("{")
    ]
    if "summary" in request.messages[0]["content"]:
        return {"summary": f"what was said in {len(shown)} parts"}
    return {"height": min((one["height"] for one in shown if "height" in one), default=None)}


def memory(server: ScriptedServer, location: Path | None = None, **options: Any) -> dict[str, Any]:
    llm = hmem.LLM(model=MODEL, base_url=server.url, api_key="test", **options)
    segments = hmem.SegmentOptions(compatibility="batch")
    events = hmem.EventOptions(affiliation="cosine", describe=False)
    encoder = hashing_encoder()
    return {"location": location, "encoder": encoder, "llm": llm, "segments": segments, "events": events}


def test_add_settle_and_what_the_ledger_says() -> None:
    options = {"segments": hmem.SegmentOptions(tau=(0.9, 0.5), summarise_from=2)}
    with ScriptedServer(answer) as server, hmem.open(**memory(server) | options) as opened:
        server.latency = 0.02
        opened.add(
            [f"{name} {name} {i % 2}" for name in ("apple", "brick", "cloud", "drums") for i in range(6)]
        )
        opened.settle()
        stats = opened.stats()
        assert stats.waiting == 0
        assert stats.llm is not None
        assert stats.llm.total.calls == server.answered == len(server.asks)
        assert opened.segments.root().text.startswith("what was said in")
        assert server.max_in_flight >= 2  # summaries go out side by side


def test_a_server_that_is_down_and_comes_back() -> None:
    with ScriptedServer(answer) as server, hmem.open(**memory(server, retries=0, timeout=5.0)) as opened:
        server.down()
        opened.add(TURNS)
        assert len(opened.turns()) == len(TURNS)
        assert opened.search("topica number 3", view="dense")[0].text == "topica number 3"
        assert opened.stats().waiting > 0
        server.up()
        opened.settle()
        assert opened.stats().waiting == 0


def test_passing_faults_cost_nothing_but_retries() -> None:
    with ScriptedServer(answer) as server, hmem.open(**memory(server)) as opened:
        server.faults.add(rate_limited(after=0.01), at=range(0, 6, 2))
        server.faults.add(unavailable(503), at=range(1, 6, 2))
        opened.add(TURNS[:6])
        opened.settle()
        assert opened.stats().waiting == 0
        assert opened.segments.root().text.startswith("what was said")


@pytest.mark.parametrize("inside", ["loop", "thread"])
def test_from_inside_an_event_loop_and_awaited(inside: str) -> None:
    async def scenario(server: ScriptedServer) -> None:
        if inside == "loop":  # the blocking memory, called where a loop is running
            with hmem.open(**memory(server)) as opened:
                opened.add(TURNS)
                assert opened.settle() >= 0
                assert opened.stats().waiting == 0
        else:
            async with await hmem.AsyncMemory.open(**memory(server)) as opened:
                await asyncio.gather(*(opened.add(text, key=text) for text in TURNS[:8]))
                await opened.settle()
                assert (await opened.stats()).waiting == 0
                assert len(await opened.turns()) == 8

    with ScriptedServer(answer) as server:
        asyncio.run(scenario(server))


def test_what_a_model_decided_is_kept_without_it(tmp_path: Path) -> None:
    with ScriptedServer(answer) as server, hmem.open(**memory(server, tmp_path / "m")) as opened:
        opened.add(TURNS)
        opened.settle()
        text = opened.segments.root().text
    with hmem.open(tmp_path / "m", encoder=hashing_encoder()) as opened:
        assert opened.segments.root().text == text
        assert opened.stats().llm is None
