from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

from hmem_core.errors import Conflict, Damaged, InvalidInput, MemoryNotFound, StorageError
from hmem_core.journal import sqlite_file
from hmem_core.journal.entries import Entry
from hmem_core.journal.sqlite import SqliteJournal
from tests.faults.harness import Nursery
from tests.journal.contract import Open, PersistentContract, check_against_a_list, erased, forgotten, turn
from tests.journal.tasks import append_as_space_runs_out, fork_and_close, fork_beside_a_busy_thread


class TestSqlite(PersistentContract):
    @pytest.fixture
    def open(self, tmp_path: Path) -> Iterator[Open]:
        with ExitStack() as opened:
            yield lambda: opened.enter_context(closing(SqliteJournal(tmp_path / "journal", create=True)))


def check_in(directory: str, profile: settings) -> None:
    numbers = itertools.count()
    with ExitStack() as last:

        def fresh() -> Open:
            path = Path(directory) / str(next(numbers))

            def open() -> SqliteJournal:
                last.close()
                journal = SqliteJournal(path, create=True, synchronous="normal")
                return last.enter_context(closing(journal))

            return open

        check_against_a_list(fresh, profile)


def test_behaves_like_a_list() -> None:
    with TemporaryDirectory() as directory:
        check_in(directory, settings(max_examples=30, stateful_step_count=30, deadline=None))


@pytest.mark.soak
def test_behaves_like_a_list_for_long() -> None:
    with TemporaryDirectory() as directory:
        check_in(directory, settings(max_examples=2000, stateful_step_count=100, deadline=None))


# Opening


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def test_missing_is_not_damaged(path: Path) -> None:
    with pytest.raises(MemoryNotFound, match="journal"):
        SqliteJournal(path, create=False)
    assert not path.exists()


@pytest.mark.parametrize(
    "content", [b"", b"SQ", b"SQLite format 3\0", b"x" * 50, b"x" * 100_000, bytes(8192)]
)
def test_garbage_is_damaged(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(Damaged, match="journal"):
        SqliteJournal(path, create=False)
    assert path.read_bytes() == content
    if content:
        with pytest.raises(Damaged, match="journal"):
            SqliteJournal(path, create=True)
        assert path.read_bytes() == content


def test_a_file_left_empty_by_a_crash_is_filled(path: Path) -> None:
    path.touch()
    with closing(SqliteJournal(path, create=True)) as journal:
        assert journal.append(0, [turn(0)]) == 1


def test_a_file_without_tables_is_filled(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")  # as far as a creation that was killed may have come
    with pytest.raises(Damaged, match="interrupted"):
        SqliteJournal(path, create=False)
    with closing(SqliteJournal(path, create=True)) as journal:
        assert journal.append(0, [turn(0)]) == 1


@pytest.mark.parametrize("create", [False, True])
def test_a_log_without_its_file_is_damage(path: Path, create: bool) -> None:
    log = Path(f"{path}-wal")
    log.write_bytes(b"entries that were not yet in the file")
    with pytest.raises(Damaged, match="-wal"):
        SqliteJournal(path, create=create)
    assert log.exists()


def test_the_database_of_another_program_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")
    content = path.read_bytes()
    with pytest.raises(Damaged, match="not a hmem journal"):
        SqliteJournal(path, create=True)
    assert path.read_bytes() == content


def test_a_newer_schema_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SqliteJournal(path, create=True)):
        pass
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        sqlite_file.write_meta(db, sqlite_file.Meta(schema=99))
    with pytest.raises(StorageError, match=r"schema 99.*upgrade") as error:
        SqliteJournal(path, create=True)
    assert not isinstance(error.value, Damaged)


def test_a_directory_in_its_place_is_named(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StorageError, match=r"journal.*choose another place"):
        SqliteJournal(path, create=True)


def test_a_parent_that_is_missing_or_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for parent in ("missing", "file"):
        with pytest.raises(StorageError, match=rf"{parent}.*choose another place"):
            SqliteJournal(tmp_path / parent / "journal", create=True)


def test_a_read_only_file_is_named(path: Path) -> None:
    with closing(SqliteJournal(path, create=True)) as journal:
        journal._connection.execute("PRAGMA query_only = ON")  # chmod does not stop root
        with pytest.raises(StorageError, match=r"journal.*writable"):
            journal.append(0, [turn(0)])
        assert journal.position() == (0, 0)


@pytest.mark.parametrize(
    "name", ["a b", "100%", "what?#", "%41", "日本語", "👩‍👩‍👧", "a'b\"c", "a\\b", ":memory:"]
)
def test_any_name_will_do(tmp_path: Path, name: str) -> None:
    with closing(SqliteJournal(tmp_path / name, create=True)) as journal:
        journal.append(0, [turn(0)])
        assert {name, f"{name}-wal"} <= {file.name for file in tmp_path.iterdir()}
    with closing(SqliteJournal(tmp_path / name, create=False)) as journal:
        assert list(journal.read()) == [(1, turn(0))]


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 300])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StorageError, match="choose another place"):
        SqliteJournal(tmp_path / name, create=True)
    assert list(tmp_path.iterdir()) == []


def test_another_working_directory_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(SqliteJournal("journal", create=True)) as journal:
        journal.append(0, [turn(0)])
        monkeypatch.chdir("/")
        assert journal.nbytes() > 4096
        assert Path(journal.path) == tmp_path / "journal"


def test_synchronous_is_full_or_normal(path: Path) -> None:
    with pytest.raises(InvalidInput, match="off"):
        SqliteJournal(path, create=True, synchronous="off")
    assert not path.exists()


def test_a_closed_journal_is_one_file(path: Path) -> None:
    with closing(SqliteJournal(path, create=True)) as journal:
        journal.append(0, [turn(0)])
    assert [file.name for file in path.parent.iterdir()] == ["journal"]


# Growth


def test_the_log_does_not_grow_without_bound(path: Path) -> None:
    with closing(SqliteJournal(path, create=True, synchronous="normal")) as journal:
        readers = []
        for head in range(3000):
            journal.append(head, [turn(head)])
            if head % 500 == 0:
                readers.append(journal.read())
                next(readers[-1])  # a reader that rests must not keep the log from being emptied
        assert Path(f"{path}-wal").stat().st_size < 6_000_000


# Trouble


def test_a_lock_that_is_held_too_long_is_explained(path: Path) -> None:
    with closing(SqliteJournal(path, create=True, busy_timeout=0.05)) as journal:
        journal.append(0, [turn(0)])
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StorageError, match="longer than the busy timeout"):
                journal.append(1, [turn(1)])
            assert list(journal.read()) == [(1, turn(0))]
        assert journal.append(1, [turn(1)]) == 2


def test_a_full_database_is_explained(path: Path) -> None:
    with closing(SqliteJournal(path, create=True)) as journal:
        journal.append(0, [turn(0)])
        journal._connection.execute("PRAGMA max_page_count = 10")
        with pytest.raises(StorageError, match="free some space") as error:
            journal.append(1, [turn(n) for n in range(1000)], rewrite={1: erased(0)})
        assert not isinstance(error.value, Damaged)
        assert list(journal.read()) == [(1, turn(0))]
        assert journal.append(1, [turn(1)]) == 2
        assert journal.verify() == (2, ())


def test_a_full_disk_loses_nothing(path: Path) -> None:
    with Nursery(append_as_space_runs_out) as nursery:
        (head, message) = nursery.run(append_as_space_runs_out, str(path))
    assert "free some space" in message
    with closing(SqliteJournal(path, create=False)) as journal:
        assert journal.position() == (head, 0)
        assert journal.verify() == (head, ())


# Forks


def test_a_child_writes_on_after_its_parent_closed(path: Path) -> None:
    with Nursery(fork_and_close) as nursery:
        nursery.run(fork_and_close, str(path))
    with closing(SqliteJournal(path, create=False)) as journal:
        assert [entry.id for _, entry in journal.read()] == list(range(12))


def test_a_fork_beside_a_busy_thread(path: Path) -> None:
    with Nursery(fork_beside_a_busy_thread) as nursery:
        (appended,) = nursery.run(fork_beside_a_busy_thread, str(path), 30)
    with closing(SqliteJournal(path, create=False)) as journal:
        texts = [entry.text for _, entry in journal.read()]
    assert texts.count("thread") == appended
    assert texts.count("child") == 30


# Scrubbing

SECRET = "Zürich 日本 secret"
VECTOR = bytes(range(1, 200))


def files_holding_the_secret(directory: Path) -> list[str]:
    forms = [SECRET.encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be")]
    return [
        file.name
        for file in directory.iterdir()
        if any(form in file.read_bytes() for form in [*forms, VECTOR])
    ]


def tell_and_forget(journal: SqliteJournal) -> None:
    """A journal of a thousand entries, every tenth of them secret, and then not any more."""
    secrets = range(1, 1000, 10)
    journal.append(0, [turn(n, SECRET if n % 10 == 0 else "", VECTOR) for n in range(1000)])
    assert files_holding_the_secret(Path(journal.path).parent)
    empty = {seq: turn(seq - 1) for seq in range(1, 1001)}
    journal.append(1000, [forgotten(*secrets)], rewrite=empty)


def test_scrubbed_bytes_are_in_no_file(path: Path) -> None:
    with (
        closing(SqliteJournal(path, create=True)) as other,
        closing(SqliteJournal(path, create=True)) as journal,
    ):
        tell_and_forget(journal)
        other.fetch([1])
        journal.scrub()
        assert files_holding_the_secret(path.parent) == []
        assert {file.name for file in path.parent.iterdir()} == {"journal", "journal-wal", "journal-shm"}
        assert other.append(1001, [turn(1000)]) == 1002
        assert journal.verify() == (1002, ())


def test_a_scrub_gives_the_space_back(path: Path) -> None:
    with closing(SqliteJournal(path, create=True)) as journal:
        journal.append(0, [turn(n, "x" * 5000) for n in range(500)])
        journal.append(500, [forgotten()], rewrite={seq: erased(seq - 1) for seq in range(1, 501)})
        journal.scrub()
        assert journal.nbytes() < 200_000


def test_a_scrub_that_a_reader_blocks_stays_due(path: Path) -> None:
    with closing(SqliteJournal(path, create=True, busy_timeout=0.05)) as journal:
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            journal.append(0, [turn(0)])
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM entries").fetchall()
            journal.append(1, [forgotten(0)], rewrite={1: erased(0)})
            with pytest.raises(StorageError, match=r"old bytes remain.*reading"):
                journal.scrub()
            with closing(SqliteJournal(path, create=False, busy_timeout=0.05)) as beside:
                assert beside.position() == (2, 2)  # it opens all the same
            assert sqlite_file.read_meta(reader, str(path)).scrubbed == 0
        journal.scrub()
        assert sqlite_file.read_meta(journal._connection, str(path)).scrubbed == 2


def test_a_scrub_that_never_came_is_done_by_the_next_opening(path: Path) -> None:
    with closing(SqliteJournal(path, create=True)) as journal:
        tell_and_forget(journal)
    with closing(SqliteJournal(path, create=False)) as journal:
        assert files_holding_the_secret(path.parent) == []
        assert journal.position() == (1001, 1001)


def test_a_rewrite_during_a_scrub_needs_a_scrub_of_its_own(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        closing(SqliteJournal(path, create=True)) as journal,
        closing(SqliteJournal(path, create=True)) as other,
    ):
        journal.append(0, [turn(0), turn(1)])
        journal.append(2, [forgotten(0)], rewrite={1: erased(0)})
        checkpoint = journal._checkpoint

        def rewrite_beside(db: sqlite3.Connection) -> None:
            checkpoint(db)
            if other.position().head == 3:
                other.append(3, [forgotten(1)], rewrite={2: erased(1)})

        monkeypatch.setattr(journal, "_checkpoint", rewrite_beside)
        journal.scrub()
        meta = sqlite_file.read_meta(journal._connection, str(path))
        assert (meta.rewritten, meta.scrubbed) == (4, 3)


def test_two_may_scrub_at_once(path: Path) -> None:
    def rewrite_and_scrub(number: int) -> None:
        with closing(SqliteJournal(path, create=True, synchronous="normal")) as journal:
            for _ in range(15):
                append_after_others(journal, turn(number), rewrite=1)
                journal.scrub()

    with closing(SqliteJournal(path, create=True)) as journal:
        journal.append(0, [turn(0)])
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(rewrite_and_scrub, range(3)))
        assert journal.position() == (46, 46)


def test_creation_is_a_race_that_all_win(tmp_path: Path) -> None:
    def create(path: Path) -> int:
        with closing(SqliteJournal(path, create=True)) as journal:
            return append_after_others(journal, turn(0))

    with ThreadPoolExecutor(4) as pool:
        for number in range(10):
            assert sorted(pool.map(create, [tmp_path / str(number)] * 4)) == [1, 2, 3, 4]


def append_after_others(journal: SqliteJournal, entry: Entry, rewrite: int | None = None) -> int:
    while True:
        with suppress(Conflict):
            head = journal.position().head
            return journal.append(head, [entry], rewrite={rewrite: entry} if rewrite else None)
