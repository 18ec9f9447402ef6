"""Conversations that run offline, in a process of their own that can be killed: `python -m` it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from functools import partial

from hmem_core.effects import Program
from hmem_core.llm.offline import OfflineDriver
from tests.llm.programs import Encoder, in_turn, model

CONVERSATIONS, ROUNDS = 200, 3


def conversations() -> dict[str, Callable[[], Program[list[str]]]]:
    return {f"c{n}": partial(in_turn, f"c{n}", ROUNDS) for n in range(CONVERSATIONS)}


async def main(url: str, state: str) -> None:
    async with OfflineDriver(model(base_url=url), Encoder().embed, state, poll=0.01) as driver:
        print(json.dumps(await driver.run(conversations())))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
