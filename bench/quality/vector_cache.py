"""An encoder that remembers on disk what it embedded, so that a second run of a measurement is quick."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from hmem_core.effects import Embedded, States
from hmem_core.embedding.base import Encoder, StateEncoder
from hmem_core.records import EncoderIdentity

__all__ = ["CachedEncoder"]

FloatArray = npt.NDArray[np.float32]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    encoder TEXT, text BLOB, vector BLOB NOT NULL, PRIMARY KEY (encoder, text)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS states (
    encoder TEXT, text BLOB, vector BLOB NOT NULL, states BLOB, tokens BLOB, PRIMARY KEY (encoder, text)
)
"""
_FIND = """
SELECT vector FROM vectors WHERE encoder = ?1 AND text = ?2
UNION ALL SELECT vector FROM states WHERE encoder = ?1 AND text = ?2 LIMIT 1
"""
_KEEP = "INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)"
_FIND_STATES = "SELECT vector, states, tokens FROM states WHERE encoder = ? AND text = ?"
_KEEP_STATES = "INSERT OR IGNORE INTO states VALUES (?, ?, ?, ?, ?)"
_PART = 256
"""Texts whose states are made and kept at once."""

_Row = tuple[bytes, bytes | None, bytes | None]


class CachedEncoder:
    """Gives the vectors of `encoder`, bit for bit, and the states of tokens rounded to float16, and asks it
    for each text once in a lifetime.

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
        self._file.executescript(_SCHEMA)
        self._name = _name(encoder.identity)

    @property
    def identity(self) -> EncoderIdentity:
        return self._encoder.identity

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """As `Encoder.embed`; a text whose states are known is not embedded again."""
        hashes = list(map(_hash, texts))
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

    def embed_states(self, texts: Sequence[str]) -> Embedded:
        """As `StateEncoder.embed_states`."""
        if not isinstance(self._encoder, StateEncoder):
            return Embedded(self.embed(texts), None)
        found: list[_Row] = []
        for start in range(0, len(texts), _PART):
            found += self._rows(self._encoder, texts[start : start + _PART])
        vectors = np.frombuffer(b"".join(row[0] for row in found), "<f4").astype(np.float32)
        vectors = vectors.reshape(len(texts), self.identity.dimension)
        if any(row[1] is None for row in found):
            return Embedded(vectors, None)
        return Embedded(vectors, tuple(_unpacked(row[1] or b"", row[2] or b"") for row in found))

    def _rows(self, encoder: StateEncoder, texts: Sequence[str]) -> list[_Row]:
        hashes = list(map(_hash, texts))
        with self._lock:
            rows = {one: self._file.execute(_FIND_STATES, (self._name, one)).fetchone() for one in hashes}
        absent = {one: text for one, text in zip(hashes, texts, strict=True) if rows[one] is None}
        if absent:
            made = encoder.embed_states(list(absent.values()))
            for place, one in enumerate(absent):
                vector = made.vectors[place].astype("<f4").tobytes()
                packed = (None, None) if made.states is None else _packed(made.states[place])
                rows[one] = (vector, *packed)
            with self._lock, self._file:
                self._file.executemany(_KEEP_STATES, [(self._name, one, *rows[one]) for one in absent])
        return [rows[one] for one in hashes]

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


def _hash(text: str) -> bytes:
    return xxhash.xxh3_128_digest(text.encode("utf-8", "surrogatepass"))


def _packed(states: States) -> tuple[bytes, bytes]:
    return states.vectors.astype("<f2").tobytes(), msgspec.msgpack.encode(states.tokens)


def _unpacked(vectors: bytes, tokens: bytes) -> States:
    texts = msgspec.msgpack.decode(tokens, type=tuple[str, ...])
    rows = np.frombuffer(vectors, "<f2").astype(np.float32)
    return States(rows.reshape(len(texts), -1) if texts else rows.reshape(0, 1), texts)


def _name(identity: EncoderIdentity) -> str:
    return f"{identity.name}/{identity.dimension}/{identity.weights}"
