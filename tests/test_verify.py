"""Finding damage in a memory's files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import hmem_core as hmem
from tests.helpers import open_memory


def filled(directory: Path) -> None:
    with open_memory(directory) as memory:
        memory.add([f"turn {number}" for number in range(5)])
        memory.checkpoint()


def damage(directory: Path, seq: int) -> None:
    with closing(sqlite3.connect(directory / "journal.sqlite")) as db, db:
        db.execute("UPDATE entries SET body = x'00' || substr(body, 2) WHERE seq = ?", (seq,))


def test_a_sound_memory_is_sound_open_or_closed(tmp_path: Path) -> None:
    filled(tmp_path)
    verified = hmem.verify(tmp_path)
    assert verified.sound
    assert (verified.entries, verified.problems) == (7, ())
    (checkpoint,) = verified.checkpoints
    assert (checkpoint.seq, checkpoint.problem) == (7, None)
    with open_memory(tmp_path) as memory:
        assert memory.verify() == verified


@pytest.mark.parametrize("seq", [1, 3, 6])
def test_a_damaged_entry_is_found_and_the_others_counted(tmp_path: Path, seq: int) -> None:
    filled(tmp_path)
    damage(tmp_path, seq)
    verified = hmem.verify(tmp_path)
    assert not verified.sound
    assert verified.entries == 6
    (problem,) = verified.problems
    assert f"entry {seq} " in problem


def test_a_file_that_is_no_journal_is_reported_not_raised(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "journal.sqlite").write_bytes(b"\0" * 4096)
    assert hmem.verify(tmp_path).problems
    with pytest.raises(hmem.Damaged):
        open_memory(tmp_path)


def test_a_memory_in_the_process_verifies_too() -> None:
    with open_memory() as memory:
        memory.add("one")
        assert memory.verify() == hmem.Verified(entries=3, problems=(), checkpoints=())
    with pytest.raises(hmem.Closed):
        memory.verify()


def test_no_memory_is_not_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(hmem.MemoryNotFound):
        hmem.verify(tmp_path / "none")
    assert not (tmp_path / "none").exists()
