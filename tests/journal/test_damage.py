"""Bytes that change or vanish under a journal: it says so, or they did not matter."""

from __future__ import annotations

import random
import shutil
from contextlib import closing, suppress
from pathlib import Path

import pytest

from hmem_core.errors import Damaged
from hmem_core.journal.base import Stored
from hmem_core.journal.sqlite import SqliteJournal
from tests.journal.contract import erased, forgotten, turn

ENTRIES = [turn(n, f"turn {n}, which says something of its own", bytes([n % 256]) * 300) for n in range(150)]
ENTRIES[40] = turn(40, "a long one " * 2000)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Stored]]:
    """A closed journal with inner pages, overflow pages and a rewrite, and what it holds."""
    path = tmp_path_factory.mktemp("sound") / "journal"
    with closing(SqliteJournal(path, create=True)) as journal:
        journal.append(0, ENTRIES)
        journal.append(len(ENTRIES), [forgotten(7)], rewrite={8: erased(7)})
        journal.scrub()
        return path, list(journal.read())


def check(path: Path, content: list[Stored]) -> None:
    """Each way to read it gives what was written or says that it cannot."""
    try:
        with closing(SqliteJournal(path, create=False)) as journal:
            try:
                assert list(journal.read()) == content
            except Damaged:
                assert journal.verify().problems
            for stored in (content[0], content[40], content[-1]):
                with suppress(Damaged):
                    assert journal.fetch([stored.seq]) == [stored]
    except Damaged:
        pass


def flip(original: Path, offset: int, path: Path) -> None:
    content = bytearray(original.read_bytes())
    content[offset] ^= random.Random(offset).choice((0xFF, 1 << random.Random(offset).randrange(8)))
    path.write_bytes(content)


def offsets(size: int) -> list[int]:
    """The header, the table definitions at the end of the first page, and samples of the rest."""
    rng = random.Random(0)
    return [*range(100), *range(3700, 4096, 3), *rng.sample(range(4096, size), 150)]


def test_a_flipped_byte_is_noticed_or_harmless(sound: tuple[Path, list[Stored]], tmp_path: Path) -> None:
    original, content = sound
    for offset in offsets(original.stat().st_size):
        flip(original, offset, tmp_path / "journal")
        check(tmp_path / "journal", content)
        clean(tmp_path)


@pytest.mark.soak
def test_every_flipped_byte_is_noticed_or_harmless(sound: tuple[Path, list[Stored]], tmp_path: Path) -> None:
    original, content = sound
    for offset in range(original.stat().st_size):
        flip(original, offset, tmp_path / "journal")
        check(tmp_path / "journal", content)
        clean(tmp_path)


def test_a_truncated_file_is_damaged(sound: tuple[Path, list[Stored]], tmp_path: Path) -> None:
    original, _ = sound
    whole = original.read_bytes()
    path = tmp_path / "journal"
    for size in [*range(0, len(whole), 4096), *random.Random(0).sample(range(len(whole)), 30)]:
        path.write_bytes(whole[:size])
        with pytest.raises(Damaged, match="journal"), closing(SqliteJournal(path, create=False)) as journal:
            list(journal.read())
        clean(tmp_path)


def test_a_flipped_byte_in_an_entry_names_it(sound: tuple[Path, list[Stored]], tmp_path: Path) -> None:
    path = tmp_path / "journal"
    shutil.copy(sound[0], path)
    flip(path, path.read_bytes().index(b"turn 99,"), path)
    with closing(SqliteJournal(path, create=False)) as journal:
        with pytest.raises(Damaged, match=r"entry 100 fails its checksum.*restore"):
            list(journal.read())
        assert [seq for seq, _ in journal.fetch([99, 101])] == [99, 101]
        entries, problems = journal.verify()
        assert entries == len(sound[1]) - 1
        assert ["entry 100" in problem for problem in problems] == [True]


@pytest.mark.parametrize("seq", [1, 77, 151])
def test_a_missing_entry_is_named(sound: tuple[Path, list[Stored]], tmp_path: Path, seq: int) -> None:
    path = tmp_path / "journal"
    shutil.copy(sound[0], path)
    with closing(SqliteJournal(path, create=False)) as journal:
        journal._connection.execute("DELETE FROM entries WHERE seq = ?", (seq,))
        with pytest.raises(Damaged, match=f"entry {seq} is missing"):
            list(journal.read())
        with pytest.raises(Damaged, match=f"entry {seq} is missing"):
            journal.fetch([seq])
        assert journal.verify().entries == len(sound[1]) - 1


def test_two_entries_that_changed_places_are_noticed(
    sound: tuple[Path, list[Stored]], tmp_path: Path
) -> None:
    path = tmp_path / "journal"
    shutil.copy(sound[0], path)
    with closing(SqliteJournal(path, create=False)) as journal:
        for old, new in ((3, -1), (4, 3), (-1, 4)):
            journal._connection.execute("UPDATE entries SET seq = ? WHERE seq = ?", (new, old))
        with pytest.raises(Damaged, match="entry 3 fails its checksum"):
            list(journal.read())


def test_an_append_to_a_damaged_journal_does_not_hide_the_damage(
    sound: tuple[Path, list[Stored]], tmp_path: Path
) -> None:
    path = tmp_path / "journal"
    shutil.copy(sound[0], path)
    with closing(SqliteJournal(path, create=False)) as journal:
        journal._connection.execute("DELETE FROM entries WHERE seq = 151")
        journal.append(151, [turn(151)])
        with pytest.raises(Damaged, match="entry 151 is missing"):
            list(journal.read())


def test_a_damaged_log_leaves_a_beginning(tmp_path: Path) -> None:
    """SQLite takes the log to end where a checksum fails, as it must after a power cut."""
    path, copy = tmp_path / "journal", tmp_path / "copy"
    with closing(SqliteJournal(path, create=True)) as journal:
        for head in range(20):
            journal.append(head, [turn(head)])
        content = list(journal.read())
        files = {suffix: Path(f"{path}{suffix}").read_bytes() for suffix in ("", "-wal")}
    rng = random.Random(0)
    for offset in rng.sample(range(len(files["-wal"])), 50):
        copy.write_bytes(files[""])
        log = bytearray(files["-wal"])
        log[offset] ^= 0xFF
        Path(f"{copy}-wal").write_bytes(log)
        try:
            with closing(SqliteJournal(copy, create=False)) as journal:
                found = list(journal.read())
                assert found == content[: len(found)]
        except Damaged:
            pass
        for suffix in ("", "-wal", "-shm"):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)


def clean(directory: Path) -> None:
    for file in directory.iterdir():
        file.unlink()
