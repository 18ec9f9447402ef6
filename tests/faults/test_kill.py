"""A writer that is killed at any instant loses nothing that it acknowledged."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from hmem_core.journal.sqlite import SqliteJournal
from tests.faults.harness import Nursery
from tests.faults.journal_tasks import expected, forget, turn, write_on


def test_a_writer_killed_a_hundred_times(tmp_path: Path) -> None:
    kill_writers(tmp_path / "journal", kills=100)


@pytest.mark.soak
def test_a_writer_killed_ten_thousand_times(tmp_path: Path) -> None:
    for number in range(100):
        kill_writers(tmp_path / f"journal {number}", kills=100)


def kill_writers(path: Path, kills: int) -> None:
    rng = random.Random(path.name)
    acknowledged = 0
    with Nursery(write_on) as nursery:
        for number in range(kills):
            child = nursery.start(write_on, str(path), number)
            time.sleep(rng.uniform(0, 0.03))
            child.kill()
            acknowledged = max([acknowledged, *child.said()])
            assert child.status == -signal.SIGKILL
            if rng.random() < 0.3:  # otherwise the next writer is the one who recovers
                check(path, acknowledged)
    assert acknowledged > 0
    check(path, acknowledged)


def check(path: Path, acknowledged: int) -> None:
    """The journal holds what was acknowledged, perhaps the batch after it, and nothing else."""
    journal = SqliteJournal(path, create=True)
    head = journal.position().head
    assert acknowledged <= head
    assert [(seq, entry) for seq, entry in journal.read()] == [
        (seq, expected(seq)) for seq in range(1, head + 1)
    ]
    journal.close()


def test_a_scrub_killed_at_any_point_is_finished_by_the_next_opening(tmp_path: Path) -> None:
    rng = random.Random(0)
    interrupted = 0
    with Nursery(forget) as nursery:
        for number in range(10):
            path = tmp_path / f"journal {number}"
            journal = SqliteJournal(path, create=True, synchronous="normal")
            journal.append(0, [turn("they moved to Porto", id=seq) for seq in range(1, 2000)])
            journal.close()

            child = nursery.start(forget, str(path))
            if number % 2:  # into the scrub, else anywhere
                child.hear()
            time.sleep(rng.uniform(0, 0.02))
            child.kill()
            interrupted += child.said() == ["rewritten"]

            journal = SqliteJournal(path, create=False)
            found = b"Porto" in b"".join(file.read_bytes() for file in tmp_path.glob(f"{path.name}*"))
            assert found == (journal.position().rewritten == 0)
            assert journal.verify() == (journal.position().head, ())
            journal.close()
    assert interrupted
