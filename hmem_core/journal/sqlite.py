"""The default journal: one SQLite file, in write-ahead-log mode."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from hmem_core.errors import Closed, Conflict, Damaged, InvalidInput, StorageError
from hmem_core.journal.base import Position, Stored, Verification, encode_append
from hmem_core.journal.entries import SCHEMA, Entry, decode
from hmem_core.journal.forks import ForkSafe
from hmem_core.journal.sqlite_file import (
    Synchronous,
    Trouble,
    explain,
    open_file,
    read_meta,
    seal,
    write_meta,
)

__all__ = ["SqliteJournal"]

PAGE_BYTES = 4 << 20
"""`read` fetches entries until it has this many bytes of them."""

PROBLEMS = 100
"""`verify` stops counting here."""


class SqliteJournal(ForkSafe):
    """A journal in one file, shared by any number of threads and processes of one machine.

    A commit of the last moment is lost only if the machine, not the process, stops, and only with
    ``synchronous="normal"``, which appends several times faster. While a journal is open, or after a
    crash, its newest entries lie in ``path + "-wal"``: copy both files or neither.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool,
        synchronous: Synchronous = "full",
        busy_timeout: float = 30.0,
    ) -> None:
        """Open the journal at `path`, or make it if `create` is true and there is none.

        Operations wait up to `busy_timeout` seconds for another process. If a scrub is due, it is done.

        Raises:
            MemoryNotFound: there is no file, and `create` is false.
            Damaged: the file is not a journal, or its head is lost.
            StorageError: the file cannot be opened or made, or a newer hmem wrote it.
            InvalidInput: `synchronous` is neither ``"full"`` nor ``"normal"``.
        """
        if synchronous not in ("full", "normal"):
            raise InvalidInput(f'synchronous is "full" or "normal", not {synchronous!r}')
        self.path = os.path.abspath(path)  # the working directory may have changed at the next connection
        self._synchronous: Synchronous = synchronous
        self._busy_timeout = busy_timeout
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        super().__init__()
        try:
            with self._lock:
                self._connection = self._connect(create=create)
            self.position()
            with suppress(StorageError):  # it stays due; a full disk must not keep anyone from reading
                self.scrub()
        except BaseException:
            self.close()
            raise

    def position(self) -> Position:
        with self._using() as db:
            meta = read_meta(db, self.path)
        return Position(meta.head, meta.rewritten)

    def read(self, after: int = 0) -> Iterator[Stored]:
        head = self.position().head
        while after < head:
            for row in self._page(after, head):
                yield self._unseal(after + 1, row)
                after += 1

    def fetch(self, seqs: Sequence[int]) -> list[Stored]:
        query = "SELECT seq, checksum, body FROM entries WHERE seq = ?"
        with self._using() as db:
            head = read_meta(db, self.path).head
            for seq in seqs:
                if not 1 <= seq <= head:
                    raise InvalidInput(f"there is no entry {seq}: the journal ends at {head}")
            rows = [db.execute(query, (seq,)).fetchone() for seq in seqs]
        return [self._unseal(seq, row) for seq, row in zip(seqs, rows, strict=True)]

    def append(
        self, expected: int, entries: Sequence[Entry], *, rewrite: Mapping[int, Entry] | None = None
    ) -> int:
        bodies = encode_append(expected, entries, rewrite)
        with self._using() as db, _transaction(db):
            meta = read_meta(db, self.path)
            if meta.head != expected:
                raise Conflict(expected, meta.head)
            head = expected + len(bodies.new)
            db.executemany(
                "INSERT INTO entries (seq, checksum, body) VALUES (?, ?, ?)",
                ((seq, seal(seq, body), body) for seq, body in enumerate(bodies.new, expected + 1)),
            )
            db.executemany(
                "UPDATE entries SET checksum = ?, body = ? WHERE seq = ?",
                ((seal(seq, body), body, seq) for seq, body in bodies.rewritten.items()),
            )
            rewritten = head if bodies.rewritten else meta.rewritten
            write_meta(db, meta._replace(schema=SCHEMA, head=head, rewritten=rewritten))
        return head

    def scrub(self) -> None:
        with self._using() as db:
            meta = read_meta(db, self.path)
        if meta.scrubbed == meta.rewritten:
            return
        try:
            with self._using() as db:
                self._checkpoint(db)  # a reader in the way is found before the costly copy
                db.execute("VACUUM")
                self._checkpoint(db)
                with _transaction(db):
                    now = read_meta(db, self.path)
                    write_meta(db, now._replace(scrubbed=max(now.scrubbed, meta.rewritten)))
        except Damaged:
            raise
        except StorageError as error:
            raise StorageError(
                "the entries are rewritten, but old bytes remain in the files until the next scrub or the "
                f"next opening of the journal: {error}"
            ) from error

    def verify(self) -> Verification:
        sound = 0
        problems: list[str] = []
        try:
            for seq in range(1, self.position().head + 1):
                try:
                    self.fetch((seq,))  # one by one: a damaged page hides no more than its own entries
                    sound += 1
                except Damaged as error:
                    problems.append(str(error))
                if len(problems) == PROBLEMS:
                    break
            with self._using() as db:
                findings = [
                    row[0].decode(errors="replace")
                    for row in db.execute(f"PRAGMA integrity_check({PROBLEMS})")
                ]
            problems += [finding for finding in findings if finding != "ok"]
        except Damaged as error:
            problems.append(str(error))
        return Verification(sound, tuple(problems))

    def nbytes(self) -> int:
        with self._using():
            total = 0
            for suffix in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    total += os.stat(self.path + suffix).st_size
            return total

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._disconnect()

    def _connect(self, *, create: bool) -> sqlite3.Connection:
        return open_file(
            self.path, create=create, synchronous=self._synchronous, busy_timeout=self._busy_timeout
        )

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _before_fork(self) -> None:
        self._disconnect()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone; errors of SQLite leave as ours."""
        with self._lock:
            if self._closed:
                raise Closed(f"the journal {self.path} is closed")
            if self._connection is None:
                self._connection = self._connect(create=False)
            try:
                yield self._connection
            except Trouble as error:
                raise explain(error, self.path) from error

    def _page(self, after: int, head: int) -> list[Any]:
        """The rows that follow entry `after`: at least one, if only to be found missing."""
        query = "SELECT seq, checksum, body FROM entries WHERE seq > ? AND seq <= ? ORDER BY seq"
        rows: list[Any] = []
        size = 0
        with self._using() as db:
            cursor = db.execute(query, (after, head))
            for row in cursor:
                rows.append(row)
                size += len(row[2]) if isinstance(row[2], bytes) else 0
                if size >= PAGE_BYTES:
                    break
            cursor.close()  # ends the read transaction, which would keep the log from being emptied
        return rows or [None]

    def _unseal(self, seq: int, row: Any) -> Stored:
        """The entry in `row`, which ought to be number `seq`."""
        if row is None or row[0] != seq:
            raise self._damaged(seq, "is missing")
        _, checksum, body = row
        if not isinstance(body, bytes) or checksum != seal(seq, body):
            raise self._damaged(seq, "fails its checksum")
        try:
            return Stored(seq, decode(body))
        except Damaged as error:
            raise self._damaged(seq, f"is not an entry that this version knows ({error})") from error

    def _damaged(self, seq: int, what: str) -> Damaged:
        return Damaged(f"the journal {self.path} is damaged (entry {seq} {what}); restore it from a backup")

    def _checkpoint(self, db: sqlite3.Connection) -> None:
        """Move everything from the log into the file and empty the log."""
        deadline = time.monotonic() + self._busy_timeout
        while True:
            (busy, *_) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy:
                return
            if time.monotonic() > deadline:
                raise StorageError(
                    f"another connection has been reading {self.path} for longer than the busy timeout; "
                    "end its transaction or its process"
                )
            time.sleep(0.005)  # SQLite waits for readers, but not for another checkpoint


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # some errors have rolled back already
            db.execute("ROLLBACK")
        raise
