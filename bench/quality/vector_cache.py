"""An encoder that remembers on disk what it embedded, so that a second run of a measurement is quick."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import xxhash

from hmem_core.embedding.base import Encoder
from hmem_core.records import EncoderIdentity

__all__ = ["CachedEncoder"]

FloatArray = npt.NDArray[np.float32]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    encoder TEXT, text BLOB, vector BLOB NOT NULL, PRIMARY KEY (encoder, text)
) WITHOUT ROWID
"""
_FIND = "SELECT vector FROM vectors WHERE encoder = ? AND text = ?"
_KEEP = "INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)"


class CachedEncoder:
    """Gives the vectors of `encoder`, bit for bit, and asks it for each text once in a lifetime.

    A vector is found by the identity of the encoder, its weights included, and the hash of the text. Texts
    themselves are not kept. Several processes may share a directory: what one embeds is there at once and
    whole, or not at all.

    Args:
        directory: made if absent; holds ``vectors.sqlite``.
    """

    def __init__(self, encoder: Encoder, directory: Path) -> None:
        self._encoder = encoder
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._file = sqlite3.connect(directory / "vectors.sqlite", timeout=60, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = NORMAL")  # what a power cut takes is embedded again
        self._file.execute(_SCHEMA)
        self._name = _name(encoder.identity)

    @property
    def identity(self) -> EncoderIdentity:
        return self._encoder.identity

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """As `Encoder.embed`."""
        hashes = [xxhash.xxh3_128_digest(text.encode("utf-8", "surrogatepass")) for text in texts]
        with self._lock:
            known = {text: packed for text in set(hashes) if (packed := self._find(text)) is not None}
        absent = {hash_: text for hash_, text in zip(hashes, texts, strict=True) if hash_ not in known}
        if absent:
            made = self._encoder.embed(list(absent.values())).astype("<f4")
            new = {hash_: row.tobytes() for hash_, row in zip(absent, made, strict=True)}
            with self._lock, self._file:
                self._file.executemany(_KEEP, [(self._name, *item) for item in new.items()])
            known |= new
        vectors = np.frombuffer(b"".join(known[hash_] for hash_ in hashes), "<f4").astype(np.float32)
        return vectors.reshape(len(texts), self.identity.dimension)

    def _find(self, text: bytes) -> bytes | None:
        row = self._file.execute(_FIND, (self._name, text)).fetchone()
        return None if row is None else row[0]

    def close(self) -> None:
        """Close the file; the encoder stays as it is."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _name(identity: EncoderIdentity) -> str:
    return f"{identity.name}/{identity.dimension}/{identity.weights}"
