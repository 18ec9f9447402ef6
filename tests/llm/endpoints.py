"""An endpoint that tests talk to without knowing whether a script or a model answers."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from hmem_core.effects import Ask, Message, Program
from hmem_core.options import LLM
from tests.llm.scripted import ChatRequest, ScriptedServer

SLOWEST = 300.0
"""Seconds that a small model on a busy machine may take for a question."""


class Endpoint:
    """Where a model answers.

    Attributes:
        url: Its address.
        model: The name of the model.
        server: The scripted server; None where a real model answers.
    """

    def __init__(self, url: str, model: str, server: ScriptedServer | None = None) -> None:
        self.url = url
        self.model = model
        self.server = server
        if server is not None:
            server.answer = sensible

    def llm(self, **options: Any) -> LLM:
        """How to reach it."""
        settings = {"timeout": SLOWEST, "concurrency": 2, **options}
        return LLM(model=self.model, base_url=self.url, api_key="test", **settings)


class Place(msgspec.Struct):
    city: str


class Count(msgspec.Struct):
    number: int


def where(name: str, city: str, max_tokens: int = 40) -> Ask:
    """A question that every model can answer; the answer names the city."""
    asked = f'{name} lives in {city}. In which city does {name} live? Reply with JSON: {{"city": "…"}}'
    return Ask("where", (Message("user", asked),), Place, max_tokens)


def asking(ask: Ask) -> Program[Any]:
    return (yield ask)


def living(name: str, city: str) -> Program[str]:
    reply: Place = yield where(name, city)
    return reply.city


def sensible(request: ChatRequest) -> Any:
    """What a good model would reply to the questions of these tests."""
    first, last = request.messages[0]["content"], request.messages[-1]["content"]
    shown = [json.loads(line) for line in last.splitlines() if line.startswith("{")]
    if "summary" in first:
        return {"summary": f"of {len(shown)} parts"}
    if "segments, from narrow ones" in first:
        return {"height": min(one["height"] for one in shown if "height" in one)}
    if "a segment that ended" in first:
        return {"compatible": True}
    if "How many" in last:
        return {"number": 7}
    asked = next(one["content"] for one in request.messages if "lives in" in one["content"])
    return {"city": asked.split("lives in ")[1].split(".")[0]}
