"""Events over HTTP: a scripted server whose model knows the topics of all turns."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

import hmem_core as hmem
from hmem_core.effects import Ask, Message
from hmem_core.llm.prompts import event_affiliation, event_description, event_timeline, turn_analysis
from tests.events.judge import NO_SEGMENTS, Judge
from tests.helpers import hashing_encoder
from tests.llm.helpers import MODEL
from tests.llm.scripted import ChatRequest, ScriptedServer, rate_limited, unavailable

PROMPTS = (turn_analysis.PROMPT, event_affiliation.PROMPT, event_description.PROMPT, event_timeline.PROMPT)
TURNS = [f"topic{name} number {i}" for name in "abca" for i in range(8)]
judge = Judge(lambda turn: re.findall(r"topic(\w+)", turn["text"]))


def answer(request: ChatRequest) -> Any:
    """What the judge replies, in the words of a model that likes to talk."""
    messages = tuple(Message(one["role"], one["content"]) for one in request.messages[:2])
    (prompt,) = [one for one in PROMPTS if one.system == messages[0].content]
    reply = judge(Ask(prompt.name, messages, prompt.reply))
    return f"Here you are:\n```json\n{msgspec.json.encode(reply).decode()}\n```"


def memory(server: ScriptedServer, location: Path | None = None, **llm: Any) -> hmem.Memory:
    return hmem.open(
        location,
        encoder=hashing_encoder(),
        llm=hmem.LLM(model=MODEL, base_url=server.url, api_key="test", **llm),
        segments=NO_SEGMENTS,
        events=hmem.EventOptions(sure=2.0, far=-1.0, batch=8),
    )


def test_events_are_made_over_http_and_independent_questions_go_out_together() -> None:
    with ScriptedServer(answer) as server, memory(server) as opened:
        server.latency = 0.02
        opened.add(TURNS)
        opened.settle()
        stats = opened.stats()
        assert stats.waiting == 0
        assert stats.llm is not None
        assert set(stats.llm.purposes) == {"turn_analysis", "event_affiliation", "event_description"}
        assert stats.llm.total.calls == len(server.asks) == 4 + 4 + 3
        assert server.max_in_flight >= 4
        assert [event.summary for event in opened.events.all()] == [
            "This is about a.",
            "This is about c.",
            "This is about b.",
        ]
        assert [event.turns for event in opened.events.of_turn(30)] == [(*range(8), *range(24, 32))]


def test_passing_faults_and_a_server_that_comes_back(tmp_path: Path) -> None:
    with ScriptedServer(answer) as server:
        with memory(server, tmp_path / "m", retries=4, timeout=5.0) as opened:
            server.faults.add(rate_limited(after=0.01), at=range(0, 6, 3))
            server.faults.add(unavailable(503), at=range(1, 6, 3))
            opened.add(TURNS[:8])
            assert opened.stats().waiting == 0
        with memory(server, tmp_path / "m", retries=0, timeout=5.0) as opened:
            server.down()
            opened.add(TURNS[8:])
            assert opened.stats().waiting == 24
            server.up()
            opened.settle()
            assert opened.stats().waiting == 0
            assert len(list(opened.events.all())) == 3
