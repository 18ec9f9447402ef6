"""A bench to run programs on over a batch endpoint, for tests of offline runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hmem_core as hmem
from hmem_core.effects import Program
from hmem_core.llm.offline import OfflineDriver
from hmem_core.options import LLM
from tests.llm.programs import Encoder, model
from tests.llm.scripted import Arrived, ScriptedServer

Programs = Mapping[str, Callable[[], Program[Any]]]


async def soon(seconds: float) -> None:
    await asyncio.sleep(0)


class Bench:
    """Runs programs over a server with one record; each time as a new process would."""

    def __init__(self, server: ScriptedServer, path: Path) -> None:
        self.server = server
        self.state = path / "offline"
        self.encoder = Encoder()
        self.ledger: hmem.LedgerSnapshot | None = None

    def run(self, programs: Programs, llm: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        async def scenario() -> dict[str, Any]:
            setting = {"sleep": soon, **options}
            chosen: LLM = model(self.server, **(llm or {}))
            async with OfflineDriver(chosen, self.encoder.embed, self.state, **setting) as driver:
                said = await driver.run(programs)
                self.ledger = driver.ledger.snapshot()
                return said

        return asyncio.run(scenario())

    def once(self, program: Program[Any], **options: Any) -> Any:
        return self.run({"only": lambda: program}, **options)["only"]

    @property
    def total(self) -> hmem.records.Usage:
        assert self.ledger is not None
        return self.ledger.total


def texts(server: ScriptedServer) -> list[str]:
    return [arrived.chat.text for arrived in server.asks]


def says(text: str) -> Callable[[Arrived], bool]:
    return lambda arrived: arrived.chat.text == text
