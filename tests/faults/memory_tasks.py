"""What the processes of the fault tests do to a whole memory."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import hmem_core.memory  # noqa: F401 - now, and not in every child anew
from tests.helpers import open_memory


def remember_on(path: str, seed: int) -> Iterator[list[int]]:
    """Add turns for ever, with checkpoints and reopenings between; yield the ids of each add."""
    rng = random.Random(seed)
    while True:
        with open_memory(Path(path)) as memory:
            for _ in range(rng.randrange(1, 12)):
                count = rng.choice((1, 1, 2, 30))
                first = len(memory.turns())
                texts = [f"turn {number}" for number in range(first, first + count)]
                yield list(memory.add(texts, session=f"s{first % 7}", key=f"k{first}").ids)
                if rng.random() < 0.3:
                    memory.checkpoint()


def remember_beside(path: str, name: str, count: int) -> Iterator[int]:
    """Add `count` turns one by one; each must be found by the search that follows it."""
    with open_memory(Path(path)) as memory:
        for number in range(count):
            turn = memory.add(f"{name} {number}", session=name).ids[0]
            if number % 50 == 0:
                found = memory.search(f"{name} {number}", k=1, where={"session": name})
                assert found
                assert turn in {one.id for one in memory.turns(session=name)}
        yield count


def remember_the_same(path: str, count: int) -> Iterator[list[int]]:
    """Add turns under keys that another process uses too."""
    with open_memory(Path(path)) as memory:
        yield [memory.add(f"shared {number}", key=f"key {number}").ids[0] for number in range(count)]


def add_and_tell(path: str, texts: list[str]) -> Iterator[int]:
    with open_memory(Path(path)) as memory:
        for text in texts:
            yield memory.add(text).ids[0]


def texts_seen(path: str) -> Iterator[list[str]]:
    with open_memory(Path(path), create=False) as memory:
        yield [turn.text for turn in memory.turns()]


def forget_and_hang(path: str, turn: int) -> Iterator[str]:
    with open_memory(Path(path), create=False) as memory:
        yield "begun"
        memory.forget(turn)
        yield "forgotten"
