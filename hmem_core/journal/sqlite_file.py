"""The SQLite file of a journal: how it is laid out, recognised, created, and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
import struct
import time
from pathlib import Path
from typing import Literal, NamedTuple

import xxhash

from hmem_core.errors import Damaged, MemoryNotFound, StorageError
from hmem_core.journal.entries import SCHEMA

__all__ = ["Meta", "Synchronous", "Trouble", "explain", "open_file", "read_meta", "seal", "write_meta"]

Synchronous = Literal["full", "normal"]

APPLICATION_ID = int.from_bytes(b"hmem", "big")
"""In the header of the file, where `file(1)` looks too."""

TABLES = (
    "CREATE TABLE entries (seq INTEGER PRIMARY KEY, checksum BLOB NOT NULL, body BLOB NOT NULL)",
    # One row. The head is kept apart from the entries, so that a page of them lost at the end is noticed.
    "CREATE TABLE meta (schema INTEGER NOT NULL, head INTEGER NOT NULL, rewritten INTEGER NOT NULL, "
    "scrubbed INTEGER NOT NULL, checksum BLOB NOT NULL)",
)

PRAGMAS = (
    "secure_delete = ON",  # on every connection, or the one that lacks it leaves old bytes in free pages
    "journal_size_limit = 4194304",  # after a long transaction the log shrinks again
    "mmap_size = 0",  # a mapped file that is truncated kills the process with SIGBUS
    "cell_size_check = ON",  # find damage where a page is loaded
    "trusted_schema = OFF",  # a file that was tampered with runs no code
)

_DAMAGE = {
    sqlite3.SQLITE_CORRUPT,
    # Our statements are fixed: where one does not fit, the file is not what we wrote.
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
}

_LOCKED = "another process or thread kept it locked for longer than the busy timeout; try again or stop it"
_UNWRITABLE = "make the file and its directory writable, or choose another place"
_REMEDIES = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_FULL: "free some space and try again",
    sqlite3.SQLITE_IOERR: "the disk is full, over quota or failing: free some space, check it, and try again",
    sqlite3.SQLITE_READONLY: _UNWRITABLE,
    sqlite3.SQLITE_CANTOPEN: _UNWRITABLE,
    sqlite3.SQLITE_PERM: _UNWRITABLE,
}


Trouble = (sqlite3.Error, UnicodeDecodeError)
"""What the `sqlite3` module raises; the second where a message of SQLite quotes damaged text."""


def explain(error: Exception, path: str) -> StorageError:
    """What one of `Trouble` means to the owner of the journal at `path`."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return Damaged(
            f"{path} is not a hmem journal, or its first bytes are damaged: restore it from a backup"
        )
    if code in _DAMAGE or isinstance(error, UnicodeDecodeError):
        return Damaged(f"the journal {path} is damaged ({error}); restore it from a backup")
    remedy = _REMEDIES.get(code, "what was stored before is unharmed")
    return StorageError(f"the journal {path} cannot be used ({error}): {remedy}")


def seal(seq: int, body: bytes) -> bytes:
    """Checksum of a body in its place."""
    return xxhash.xxh3_64_digest(body, seed=seq)


class Meta(NamedTuple):
    """What a journal knows of itself."""

    schema: int = SCHEMA
    """Version of the newest entry in the file."""
    head: int = 0
    rewritten: int = 0
    scrubbed: int = 0
    """The `rewritten` of which no old byte is left in the files; a scrub is due while it is behind. A flag
    would not do: a scrub could take down the one that a rewrite put up while it worked."""

    def checksum(self) -> bytes:
        return seal(0, struct.pack("<4q", *self))  # entries have numbers from 1


def read_meta(db: sqlite3.Connection, path: str) -> Meta:
    """The journal's own row.

    Raises:
        Damaged: it is missing or fails its checksum.
        StorageError: a newer version of hmem wrote to the file.
    """
    row = db.execute("SELECT schema, head, rewritten, scrubbed, checksum FROM meta").fetchone()
    try:
        meta = Meta(*row[:4])
        sound = meta.checksum() == row[4]
    except (TypeError, struct.error):  # no row, or a column that is not the integer it was
        sound = False
    if not sound:
        raise Damaged(f"the journal {path} is damaged (its head is lost); restore it from a backup")
    if meta.schema > SCHEMA:
        raise StorageError(
            f"the journal {path} was written by a newer hmem (schema {meta.schema}, this one reads up to "
            f"{SCHEMA}): upgrade hmem-core"
        )
    return meta


def write_meta(db: sqlite3.Connection, meta: Meta) -> None:
    db.execute(
        "UPDATE meta SET schema = ?, head = ?, rewritten = ?, scrubbed = ?, checksum = ?",
        (*meta, meta.checksum()),
    )


def open_file(
    path: str, *, create: bool, synchronous: Synchronous, busy_timeout: float
) -> sqlite3.Connection:
    """A connection in autocommit mode to the journal at `path`, which is made if it is not there.

    Raises:
        MemoryNotFound: there is no file, and `create` is false.
        Damaged: the file is not a journal.
        StorageError: it cannot be opened.
    """
    log, size = _size(path + "-wal"), _size(path)  # in this order: the file is begun before the log
    if log and not size:
        # SQLite would delete the log.
        raise Damaged(f"{path}-wal is there, but nothing is in {path}; restore both from a backup")
    if size is None and not create:
        raise MemoryNotFound(f"no memory at {path}")
    mode = "rwc" if create else "rw"
    try:
        db = sqlite3.connect(
            f"{Path(path).as_uri()}?mode={mode}",
            uri=True,
            timeout=busy_timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            db.text_factory = bytes  # a damaged row may hold text that is not UTF-8
            for pragma in PRAGMAS:
                db.execute(f"PRAGMA {pragma}")
            db.execute(f"PRAGMA synchronous = {synchronous}")
            if not _recognise(db, path) and not create:
                raise Damaged(
                    f"{path} is empty: making the journal was interrupted, or its content was lost; "
                    "create it anew or restore it from a backup"
                )
            _enter_wal(db, path, busy_timeout)
            if create:
                _initialise(db, path)
        except BaseException:
            db.close()
            raise
    except Trouble as error:
        raise explain(error, path) from error
    return db


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise StorageError(f"the journal {path} cannot be opened ({error}): {_UNWRITABLE}") from error


def _recognise(db: sqlite3.Connection, path: str) -> bool:
    """True for a journal, false for a file in which nothing was ever stored."""
    # In this order: another process may lay the file out between the two, and writes both at once.
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    if application == APPLICATION_ID:
        return True
    if application or tables:
        raise Damaged(f"{path} is not a hmem journal; it is left as it is")
    return False


def _enter_wal(db: sqlite3.Connection, path: str, busy_timeout: float) -> None:
    """Turn on the write-ahead log; does nothing to a file that has it."""
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            # Where two processes create at once, SQLite reports the lock here without waiting for it.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
    if mode != b"wal":
        raise StorageError(f"the journal {path} needs a write-ahead log: put it on a local file system")


def _initialise(db: sqlite3.Connection, path: str) -> None:
    """Lay out a file that is still empty; of several processes, one does."""
    db.execute("BEGIN IMMEDIATE")
    if not _recognise(db, path):
        for table in TABLES:
            db.execute(table)
        meta = Meta()
        db.execute("INSERT INTO meta VALUES (?, ?, ?, ?, ?)", (*meta, meta.checksum()))
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute("COMMIT")
    directory = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(directory)  # so that the file's name, too, survives a power cut
    finally:
        os.close(directory)
