"""Programs and options that tests of drivers share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np

from hmem_core.effects import Ask, Embed, Message, Program, gather
from hmem_core.llm.threads import ThreadDriver
from hmem_core.llm.transport import Completion
from hmem_core.options import LLM
from tests.helpers import hashed
from tests.llm.scripted import ChatRequest, ScriptedServer


class Said(msgspec.Struct):
    text: str


def ask(text: str, purpose: str = "test", **options: Any) -> Ask:
    return Ask(purpose, (Message("system", "Echo."), Message("user", text)), Said, **options)


def asking(text: str, purpose: str = "test") -> Program[str]:
    reply: Said = yield ask(text, purpose)
    return reply.text


def in_turn(name: str, rounds: int) -> Program[list[str]]:
    """Asks that depend on one another."""
    said = []
    for i in range(rounds):
        said.append((yield from asking(f"{name}.{i}")))
    return said


def at_once(name: str, n: int) -> Program[list[str]]:
    return gather([asking(f"{name}.{i}") for i in range(n)])


def embedding(*texts: str) -> Program[np.ndarray]:
    rows: np.ndarray = yield Embed(texts)
    return rows


def echo(request: ChatRequest) -> dict[str, str]:
    """The script of a server that says what it was told."""
    return {"text": request.text}


def model(server: ScriptedServer | None = None, **options: Any) -> LLM:
    where = {} if server is None else {"base_url": server.url}
    return LLM(**{"model": "scripted", "api_key": "test", "timeout": 20.0, **where, **options})


class Encoder:
    """The hashing encoder, which notes what it is given."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.batches.append(list(texts))
        return hashed(texts).astype(np.float32)


class Told:
    """A transport that replies what it is told to, and notes the requests. An exception is raised."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.bodies: list[Mapping[str, Any]] = []

    async def complete(self, body: Mapping[str, Any]) -> Completion:
        self.bodies.append(body)
        reply = self.replies.pop(0) if self.replies else Completion(text='{"text": "ok"}')
        if isinstance(reply, Exception):
            raise reply
        assert isinstance(reply, Completion)
        return reply

    async def close(self) -> None:
        pass


@contextmanager
def thread_driver(llm: LLM, encoder: Encoder | None = None, **options: Any) -> Iterator[ThreadDriver]:
    driver = ThreadDriver((encoder or Encoder()).embed, llm, **options)
    try:
        yield driver
    finally:
        driver.close()
