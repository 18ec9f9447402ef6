"""A scripted model in a process of its own, so that its computing is not measured as ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from typing import Any

from tests.llm.scripted import ChatRequest, ScriptedServer

__all__ = ["served"]


def _serve(pipe: Connection, answer: Callable[[ChatRequest], Any], latency: float) -> None:
    with ScriptedServer(answer) as server:
        server.latency = latency
        pipe.send(server.url)
        pipe.recv()


@contextmanager
def served(answer: Callable[[ChatRequest], Any], latency: float) -> Iterator[str]:
    """The address of a server that answers so, after so many seconds, as long as the block runs."""
    ours, theirs = Pipe()
    process = get_context("spawn").Process(target=_serve, args=(theirs, answer, latency))
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send("enough")
        process.join()
