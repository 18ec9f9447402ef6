"""An offline import, in a process that can be killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openai  # noqa: F401  # once, before the tasks are forked

import hmem_core as hmem
from hmem_core.embedding.function import FunctionEncoder
from hmem_core.ingest.offline import import_offline
from hmem_core.ingest.source import Item
from tests.helpers import hashed

CONVERSATIONS, TURNS = 20, 8


def messages(number: int) -> list[dict[str, Any]]:
    """A conversation; every other one does not say when it was held."""
    when = {"at": "2026-03-02"} if number % 2 else {}
    return [
        {"content": f"topic{turn // 4} of conversation {number}, remark {turn}", **when}
        for turn in range(TURNS)
    ]


def conversations(directory: Path) -> dict[Any, list[Item]]:
    return {
        directory / f"memory {number}": [
            Item(f"message {place}", message) for place, message in enumerate(messages(number))
        ]
        for number in range(CONVERSATIONS)
    }


def encoder(embed: Callable[[Sequence[str]], np.ndarray] = hashed) -> FunctionEncoder:
    return FunctionEncoder(embed, name="hashing", dimension=32)


def bring_in(url: str, directory: str, mode: str, batch: int = 5) -> Iterator[Any]:
    """Import all conversations; says how many turns and summaries came."""
    llm = hmem.LLM(model="scripted", base_url=url, api_key="test", timeout=20.0)
    segments = hmem.SegmentOptions(compatibility=mode, summarise_from=2)  # type: ignore[arg-type]
    done = import_offline(
        conversations(Path(directory)),
        llm,
        Path(directory) / "record",
        encoder=encoder(),
        segments=segments,
        batch=batch,
        poll=0.01,
    )
    for one in done.values():
        if isinstance(one, Exception):
            raise one
        yield [one.ingested.added, one.ingested.known, one.summarised, one.waiting]
