"""Facts over HTTP: a scripted server whose model reads facts by a rule."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

import hmem_core as hmem
from hmem_core.effects import Ask, Message
from hmem_core.llm.prompts import fact_consistency, fact_extraction, question_facts
from tests.facts.model import NO_EVENTS, NO_SEGMENTS, Reader
from tests.facts.test_settling import CONTRADICTING, TURNS, by_status
from tests.helpers import hashing_encoder
from tests.llm.helpers import MODEL
from tests.llm.scripted import ChatRequest, ScriptedServer, rate_limited, unavailable

PROMPTS = (fact_extraction.PROMPT, fact_consistency.PROMPT, question_facts.PROMPT)
reader = Reader("replaces")


def answer(request: ChatRequest) -> Any:
    """What the reader replies, in the words of a model that likes to talk."""
    messages = tuple(Message(one["role"], one["content"]) for one in request.messages[:2])
    (prompt,) = [one for one in PROMPTS if one.system == messages[0].content]
    reply = reader(Ask(prompt.name, messages, prompt.reply))
    return f"Here you are:\n```json\n{msgspec.json.encode(reply).decode()}\n```"


def memory(server: ScriptedServer, location: Path | None = None, **llm: Any) -> hmem.Memory:
    return hmem.open(
        location,
        encoder=hashing_encoder(),
        llm=hmem.LLM(model=MODEL, base_url=server.url, api_key="test", **llm),
        segments=NO_SEGMENTS,
        events=NO_EVENTS,
        facts=hmem.FactOptions(extract=True, batch=4),
    )


def test_facts_are_read_over_http() -> None:
    with ScriptedServer(answer) as server, memory(server) as opened:
        opened.add([*TURNS[:6], *CONTRADICTING])
        opened.settle()
        stats = opened.stats()
        assert stats.waiting == 0
        assert stats.llm is not None
        assert {name: usage.calls for name, usage in stats.llm.purposes.items()} == {"fact_extraction": 2}
        assert by_status(opened)["Ann lives in Lisbon"] == "active"
        assert opened.facts.parse("What is it that Bo has?") == [hmem.FactSlots(subject="Bo", relation="has")]


def test_the_same_awaited() -> None:
    async def main(server: ScriptedServer) -> None:
        async with hmem.AsyncMemory(memory(server)) as opened:
            await opened.add(TURNS[:4])
            assert await opened.facts.parse("What is it that Bo has?") == [
                hmem.FactSlots(subject="Bo", relation="has")
            ]
            assert [unit.object for unit in await opened.facts.find("Ann", "lives in")] == ["Porto"]

    with ScriptedServer(answer) as server:
        asyncio.run(main(server))


def test_passing_faults_and_a_server_that_comes_back(tmp_path: Path) -> None:
    with ScriptedServer(answer) as server:
        with memory(server, tmp_path / "m", retries=4, timeout=5.0) as opened:
            server.faults.add(rate_limited(after=0.01), at=range(2))
            server.faults.add(unavailable(503), at=range(2, 3))
            opened.add(TURNS[:4])
            assert opened.stats().waiting == 0
        with memory(server, tmp_path / "m", retries=0, timeout=5.0) as opened:
            server.down()
            opened.add([*CONTRADICTING, "talk", "talk"])
            assert opened.stats().waiting == 4
            server.up()
            opened.settle()
            assert opened.stats().waiting == 0
            assert by_status(opened)["Ann lives in Porto"] == "superseded"
            assert by_status(opened)["Ann lives in Lisbon"] == "active"
