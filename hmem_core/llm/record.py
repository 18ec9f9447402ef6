"""The record of an offline run: what was submitted, and what became of it, in one SQLite file.

::

    run        one row: a random name, when it began, and how the server wants to be spoken to
    batches    a batch: its number, dialect, the server's id once that is known, whether it was collected
    lines      which questions a batch holds, in order
    outcomes   what became of a line; only ever added to
    leftovers  files that the server keeps and nobody needs any more

A batch is written down before it is created, and its outcomes in the transaction that marks it collected. So
wherever a process is killed, the next one knows what may be under way.
"""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from hmem_core.errors import Damaged, StorageError
from hmem_core.llm.dialect import Dialect
from hmem_core.llm.outcomes import Outcome
from hmem_core.reports import Usage

__all__ = ["Batch", "BatchLine", "Record"]

_SCHEMA = 1
_APPLICATION = int.from_bytes(b"hmof", "big")
_TABLES = (
    "CREATE TABLE IF NOT EXISTS run (name TEXT NOT NULL, began INTEGER NOT NULL, dialect BLOB)",
    "CREATE TABLE IF NOT EXISTS batches (number INTEGER PRIMARY KEY AUTOINCREMENT, dialect BLOB NOT NULL, "
    "id TEXT, collected INTEGER NOT NULL DEFAULT 0)",
    "CREATE TABLE IF NOT EXISTS lines (batch INTEGER NOT NULL, place INTEGER NOT NULL, key BLOB NOT NULL, "
    "purpose TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, PRIMARY KEY (batch, place)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS outcomes (number INTEGER PRIMARY KEY, key BLOB NOT NULL, "
    "purpose TEXT NOT NULL, outcome BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS outcomes_by_key ON outcomes (key)",
    "CREATE TABLE IF NOT EXISTS leftovers (file TEXT PRIMARY KEY) WITHOUT ROWID",
)


class BatchLine(msgspec.Struct, frozen=True):
    """A question in a batch."""

    key: bytes
    purpose: str
    prompt_tokens: int
    """An estimate, for servers that do not say."""


class Batch(msgspec.Struct, frozen=True):
    """A batch that was not collected yet."""

    number: int
    dialect: Dialect
    id: str | None = None
    """The server's; None where it is not known whether there is such a batch."""


class Record:
    """The record of one run, held by one process at a time.

    `name` is the run's; `began` is when it did, in UTC microseconds.

    Raises:
        StorageError: another process holds it, or the disk refuses; from any method.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).expanduser()
        with self._explained():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self._path, timeout=0, isolation_level=None)
        try:
            with self._explained():
                self._db.execute("PRAGMA locking_mode = EXCLUSIVE")  # freed when the process ends, in any way
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute("PRAGMA secure_delete = ON")
            with self._writing() as db:
                self._recognise(db)
                for table in _TABLES:
                    db.execute(table)
                row = db.execute("SELECT name, began FROM run").fetchone()
                self.name: str
                self.began: int
                self.name, self.began = row or (uuid.uuid4().hex, time.time_ns() // 1000)
                if row is None:
                    db.execute("INSERT INTO run (name, began) VALUES (?, ?)", (self.name, self.began))
        except BaseException:
            self._db.close()
            raise

    def outcomes(self, key: bytes) -> list[Outcome]:
        """What became of a question, in order."""
        query = "SELECT outcome FROM outcomes WHERE key = ? ORDER BY number"
        with self._explained():
            rows = self._db.execute(query, (key,)).fetchall()
            return [msgspec.msgpack.decode(body, type=Outcome) for (body,) in rows]

    def spent(self) -> dict[str, Usage]:
        """What all outcomes took, by purpose."""
        purposes: dict[str, Usage] = {}
        with self._explained():
            for purpose, body in self._db.execute("SELECT purpose, outcome FROM outcomes ORDER BY number"):
                usage = msgspec.msgpack.decode(body, type=Outcome).usage
                purposes[purpose] = purposes.get(purpose, Usage()) + usage
        return purposes

    def add(self, key: bytes, purpose: str, outcome: Outcome) -> None:
        """Note what became of a question that was asked alone."""
        with self._writing() as db:
            _add(db, key, purpose, outcome)

    # -- batches -------------------------------------------------------------------------------------

    def begin(self, lines: Sequence[BatchLine], dialect: Dialect) -> Batch:
        """Note that a batch is about to be created."""
        with self._writing() as db:
            number = db.execute(
                "INSERT INTO batches (dialect) VALUES (?)", (msgspec.msgpack.encode(dialect),)
            ).lastrowid
            assert number is not None
            db.executemany(
                "INSERT INTO lines VALUES (?, ?, ?, ?, ?)",
                (
                    (number, place, line.key, line.purpose, line.prompt_tokens)
                    for place, line in enumerate(lines)
                ),
            )
        return Batch(number, dialect)

    def created(self, batch: Batch, id: str) -> Batch:
        """Note the server's id of a batch."""
        with self._writing() as db:
            db.execute("UPDATE batches SET id = ? WHERE number = ?", (id, batch.number))
        return msgspec.structs.replace(batch, id=id)

    def withdraw(self, batch: Batch) -> None:
        """Forget a batch that was never created; its number is not used again."""
        with self._writing() as db:
            db.execute("DELETE FROM lines WHERE batch = ?", (batch.number,))
            db.execute("DELETE FROM batches WHERE number = ?", (batch.number,))

    def open_batches(self) -> list[Batch]:
        """Those that may be under way, in order."""
        query = "SELECT number, dialect, id FROM batches WHERE NOT collected ORDER BY number"
        with self._explained():
            return [
                Batch(number, msgspec.msgpack.decode(dialect, type=Dialect), id)
                for number, dialect, id in self._db.execute(query)
            ]

    def lines(self, batch: Batch) -> list[BatchLine]:
        query = "SELECT key, purpose, prompt_tokens FROM lines WHERE batch = ? ORDER BY place"
        with self._explained():
            return [BatchLine(*row) for row in self._db.execute(query, (batch.number,))]

    def collect(
        self,
        batch: Batch,
        outcomes: Mapping[BatchLine, Outcome],
        dialect: Dialect,
        files: Iterable[str] = (),
    ) -> None:
        """Note what became of the lines of a batch, in which dialect to go on, and which files are left."""
        with self._writing() as db:
            for line, outcome in outcomes.items():
                _add(db, line.key, line.purpose, outcome)
            db.execute("UPDATE batches SET collected = 1 WHERE number = ?", (batch.number,))
            db.execute("UPDATE run SET dialect = ?", (msgspec.msgpack.encode(dialect),))
            db.executemany("INSERT OR IGNORE INTO leftovers VALUES (?)", ((file,) for file in files))

    def leftovers(self) -> list[str]:
        """Files that are still to be deleted."""
        with self._explained():
            return [file for (file,) in self._db.execute("SELECT file FROM leftovers")]

    def leave(self, files: Iterable[str]) -> None:
        """Note that files are to be deleted."""
        with self._writing() as db:
            db.executemany("INSERT OR IGNORE INTO leftovers VALUES (?)", ((file,) for file in files))

    def deleted(self, file: str) -> None:
        """Note that a file is gone."""
        with self._writing() as db:
            db.execute("DELETE FROM leftovers WHERE file = ?", (file,))

    def dialect(self) -> Dialect | None:
        """How the server wants to be spoken to, as far as it was found out."""
        with self._explained():
            (body,) = self._db.execute("SELECT dialect FROM run").fetchone()
            return None if body is None else msgspec.msgpack.decode(body, type=Dialect)

    def close(self) -> None:
        self._db.close()

    # -- SQLite --------------------------------------------------------------------------------------

    def _recognise(self, db: sqlite3.Connection) -> None:
        """Make an empty file a record; refuse any other that is none."""
        (owner,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if tables and owner != _APPLICATION:
            raise StorageError(f"{self._path} is a database of something else: choose another file")
        if version > _SCHEMA:
            raise StorageError(f"{self._path} was written by a newer hmem: upgrade hmem-core")
        db.execute(f"PRAGMA application_id = {_APPLICATION}")
        db.execute(f"PRAGMA user_version = {_SCHEMA}")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._explained():
            self._db.execute("BEGIN EXCLUSIVE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise StorageError(
                    f"another process works with {self._path}: let it end, or stop it"
                ) from error
            if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise Damaged(f"{self._path} is no record of an offline run, or damaged ({error})") from error
            raise StorageError(f"the record {self._path} cannot be used: {error}") from error
        except (msgspec.MsgspecError, TypeError) as error:
            raise Damaged(f"the record {self._path} is damaged ({error})") from error


def _add(db: sqlite3.Connection, key: bytes, purpose: str, outcome: Outcome) -> None:
    db.execute(
        "INSERT INTO outcomes (key, purpose, outcome) VALUES (?, ?, ?)",
        (key, purpose, msgspec.msgpack.encode(outcome)),
    )
