"""Valid replies, kept in a file so that the same question is never paid for twice."""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hmem_core.effects import Ask
from hmem_core.errors import StorageError
from hmem_core.options import LLM

__all__ = ["ReplyCache", "fingerprint"]

T = TypeVar("T")

_log = logging.getLogger("hmem.llm")

_TABLE = "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID"


def fingerprint(ask: Ask, llm: LLM, schema: dict[str, Any]) -> bytes:
    """The same for two questions whose replies may stand for one another.

    Args:
        schema: what `json_schema` makes of ``ask.schema``.
    """
    parts = (llm.model, ask.messages, schema, llm.temperature, llm.extra)
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).digest()


_left_behind: list[sqlite3.Connection | None] = []
"""Connections of a parent process: closing them here would disturb it."""


class ReplyCache:
    """Replies by fingerprint in an SQLite file, shared by all who open it. Safe to use from several threads.

    A cache must never be the reason that something fails: without it only money is lost. So where the file
    cannot be read or written it holds nothing, and the log says why, once.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).expanduser()
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._broken = False
        self.generation = 0
        """How often it was cleared."""

    def get(self, key: bytes) -> str | None:
        """The text of a reply, as the model gave it."""

        def read(db: sqlite3.Connection) -> str | None:
            row = db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            return None if row is None else str(row[0])

        return self._try(read)

    def put(self, key: bytes, reply: str, generation: int) -> None:
        """Keep a reply, unless the cache was cleared since `generation` was read."""

        def write(db: sqlite3.Connection) -> None:
            if generation == self.generation:
                db.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, reply))

        self._try(write)

    def clear(self) -> None:
        """Erase all replies from the file: they may quote what is to be forgotten.

        Raises:
            StorageError: the file could not be erased.
        """
        with self._lock:
            self.generation += 1
            if not self._path.exists():
                return
            try:
                self._db = self._db or self._open()
                self._db.execute("DELETE FROM replies")
                busy, _, _ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if busy:
                    raise sqlite3.OperationalError("another process reads it")
            except (sqlite3.Error, OSError) as error:
                raise StorageError(
                    f"the reply cache {self._path} may still hold what is to be forgotten, and could not be "
                    f"erased ({error}); delete it"
                ) from error

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def renew(self) -> None:
        """In a child after a fork: the connection is the parent's, and a thread may have held the lock."""
        self._lock = threading.Lock()
        _left_behind.append(self._db)
        self._db = None

    def _try(self, use: Callable[[sqlite3.Connection], T]) -> T | None:
        with self._lock:
            if self._broken:
                return None
            try:
                if self._db is None:
                    self._db = self._open()
                return use(self._db)
            except (sqlite3.Error, OSError, UnicodeError) as error:
                _log.warning("the reply cache %s is not used: %s", self._path, error)
                self._broken = True
                return None

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self._path, timeout=5, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA secure_delete = ON")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute(_TABLE)
        except BaseException:
            db.close()
            raise
        return db
