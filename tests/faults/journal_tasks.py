"""What the processes of the fault tests do to a journal. Imports nothing that is slow or starts threads."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hmem_core.errors import Conflict
from hmem_core.journal.entries import Name, TurnAdded
from hmem_core.journal.sqlite import SqliteJournal


def turn(text: str, *, id: int = 0, size: int = 768) -> TurnAdded:
    return TurnAdded(recorded=1, at=1, id=id, role=Name(0, "user"), text=text, vector=bytes(size), height=1)


def expected(seq: int) -> TurnAdded:
    """The entry that `write_on` puts at `seq`, whichever process comes to do it."""
    return turn(f"entry {seq}", id=seq, size=seq % 5000)


def write_on(path: str, seed: int) -> Iterator[int]:
    """Append for ever, in batches, and yield each new head; now and then close and open again."""
    rng = random.Random(seed)
    while True:
        journal = SqliteJournal(path, create=True)
        head = journal.position().head
        for _ in range(rng.randrange(1, 20)):
            size = rng.choice((1, 1, 1, 2, 10, 100))
            head = journal.append(head, [expected(seq) for seq in range(head + 1, head + size + 1)])
            yield head
        journal.close()


def write_beside(path: str, name: str, count: int) -> Iterator[int]:
    """Append `count` entries one by one, catching up whenever another writer was first."""
    journal = SqliteJournal(path, create=True)
    head = 0
    for number in range(count):
        while True:
            try:
                head = journal.append(head, [turn(f"{name} {number}")])
                break
            except Conflict as conflict:
                head = conflict.found
    yield head
    journal.close()


def forget(path: str) -> Iterator[str]:
    """Rewrite every entry and yield; then scrub and yield again."""
    journal = SqliteJournal(path, create=False)
    head = journal.position().head
    empty = {seq: turn("", id=seq, size=0) for seq in range(1, head + 1)}
    journal.append(head, [turn("forgotten")], rewrite=empty)
    yield "rewritten"
    journal.scrub()
    yield "scrubbed"
