"""What many tests need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import numpy as np
import xxhash

import hmem_core as hmem
from hmem_core.effects import Embedded, States
from hmem_core.embedding.function import FunctionEncoder

DIMENSION = 32


def hashed(texts: Sequence[str], dimension: int = DIMENSION) -> np.ndarray:
    """Vectors of hashed words and of their three-letter pieces: texts that share words are close."""
    rows = np.zeros((len(texts), dimension))
    for row, text in enumerate(texts):
        for word in text.lower().split():
            word = word.strip(".,;:!?'\"")
            for piece in {word, *(word[i : i + 3] for i in range(len(word) - 2))}:
                digest = xxhash.xxh3_64_intdigest(piece.encode("utf-8", "replace"))
                rows[row, digest % dimension] += 1.0 if digest >> 63 else -1.0
    return rows


def hashing_encoder(dimension: int = DIMENSION, name: str = "hashed") -> FunctionEncoder:
    """A quick deterministic encoder without a model."""
    return FunctionEncoder(
        lambda texts: hashed(texts, dimension), name=f"{name}-{dimension}", dimension=dimension
    )


class HashingStates:
    """A quick deterministic encoder with token states: a token is a word, its state the vector of that word.

    `runs` counts the texts that were given to it, with states or without.
    """

    def __init__(self, dimension: int = DIMENSION, name: str = "states") -> None:
        self._encoder = hashing_encoder(dimension, name)
        self.runs: list[tuple[str, bool]] = []

    @property
    def identity(self) -> hmem.EncoderIdentity:
        return self._encoder.identity

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.runs += [(text, False) for text in texts]
        return self._encoder.embed(texts)

    def embed_states(self, texts: Sequence[str]) -> Embedded:
        self.runs += [(text, True) for text in texts]
        tokens = [tuple(text.split()) for text in texts]
        states = tuple(States(self._encoder.embed(words), words) for words in tokens)
        return Embedded(self._encoder.embed(texts), states)


class Clock:
    """A clock that moves one second at each reading."""

    def __init__(self, start: int = 1_767_225_600_000_000) -> None:  # 2026-01-01
        self._readings: Iterator[int] = count(start, 1_000_000)

    def __call__(self) -> int:
        return next(self._readings)


def open_memory(location: Path | None = None, **options: object) -> hmem.Memory:
    """A memory with the hashing encoder."""
    options.setdefault("encoder", hashing_encoder())
    return hmem.open(location, **options)  # type: ignore[arg-type]


def files_holding(directory: Path, text: str) -> list[Path]:
    """Files below `directory` in whose bytes `text` stands, as UTF-8 or UTF-16."""
    forms = [text.encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be")]
    found = []
    for path in directory.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if any(form in content for form in forms):
                found.append(path)
    return found
