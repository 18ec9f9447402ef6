"""Memories of synthetic turns: texts of about 200 characters, random unit vectors of 384 numbers."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

import hmem_core as hmem

DIMENSION = 384
_SYLLABLES = [first + second for first in "bcdfghjklmnprstvz" for second in "aeiou"]


def texts(count: int, seed: int = 0) -> list[str]:
    """Sentences of made-up words; common words are common."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(20_000)]
    weights = [1 / (rank + 10) for rank in range(len(words))]
    drawn = rng.choices(words, weights, k=count * 32)
    return [" ".join(drawn[start : start + 32]) for start in range(0, count * 32, 32)]


def vectors(count: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, DIMENSION), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Encoder(hmem.FunctionEncoder):
    """Hands out prepared vectors, so that a benchmark measures the memory and not a model."""

    def __init__(self) -> None:
        self._ready = vectors(4096)
        super().__init__(self._draw, name="synthetic", dimension=DIMENSION)

    def _draw(self, given: list[str]) -> np.ndarray:
        start = hash(given[0]) % 1024
        return np.take(self._ready, range(start, start + len(given)), axis=0, mode="wrap")


def build(directory: Path, count: int) -> hmem.Memory:
    """A memory of `count` turns in sessions of 20."""
    memory = hmem.open(directory, encoder=Encoder())
    prepared = texts(count)
    for start in range(0, count, 2000):
        memory.add(
            [
                {
                    "content": text,
                    "session": f"s{(start + number) // 20}",
                    "speaker": ("Ann", "Bo")[number % 2],
                }
                for number, text in enumerate(prepared[start : start + 2000])
            ]
        )
    return memory
