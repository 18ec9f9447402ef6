"""Late interaction: how well the tokens of a query match those of a text, which are kept as sign bits.

Late interaction (ColBERT, arXiv 2004.12832) compares every token of a query with every token of a text, and
keeps for each token of the query the best match. A token of a text is kept as the signs of its rotated state
and one number for its length (RaBitQ, arXiv 2405.12497), a token of the query as whole numbers of a few
bits; their similarity is then a count of bits, and right on average.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hmem_kernels._kernel import frozen, kernel

__all__ = ["best_matches", "rotate"]

FloatArray = npt.NDArray[np.float32]
CodeArray = npt.NDArray[np.uint64]
ByteArray = npt.NDArray[np.uint8]
RowArray = npt.NDArray[np.int64]

_PAIRS = np.uint64(0x5555555555555555)
_FOURS = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_EACH = np.uint64(0x0101010101010101)


@kernel
def _ones(word: np.uint64) -> np.uint64:
    """How many bits are set. Compilers know this sequence and make one instruction of it."""
    word = word - ((word >> np.uint64(1)) & _PAIRS)
    word = (word & _FOURS) + ((word >> np.uint64(2)) & _FOURS)
    word = (word + (word >> np.uint64(4))) & _BYTES
    return (word * _EACH) >> np.uint64(56)


def _rotate_examples() -> Iterator[tuple[Any, ...]]:
    flips = frozen(np.array([[1, -1, 1, 1, -1, 1], [-1, -1, 1, -1, 1, 1]], np.float32))
    for n in (3, 0):
        yield np.linspace(-1.0, 2.0, n * 6, dtype=np.float32).reshape(n, 6), flips, 4


@kernel(examples=_rotate_examples)
def rotate(rows: FloatArray, flips: FloatArray, power: int) -> None:
    """Rotate every row in place, by rounds of sign flips and Hadamard matrices.

    rows   float32 (n, d), updated
    flips  float32 (rounds, d): 1 or -1
    power  a power of 2, d / 2 < power <= d: size of the Hadamard matrix, which mixes the first numbers of a
           row in the rounds 0, 2, …, and the last ones in the others
    """
    scale = np.float32(1.0 / math.sqrt(power))
    for i in range(rows.shape[0]):
        for number in range(flips.shape[0]):
            for j in range(rows.shape[1]):
                rows[i, j] *= flips[number, j]
            part = rows[i, :power] if number % 2 == 0 else rows[i, rows.shape[1] - power :]
            half = 1
            while half < power:
                for start in range(0, power, 2 * half):
                    for j in range(start, start + half):
                        a, b = part[j], part[j + half]
                        part[j], part[j + half] = a + b, a - b
                half *= 2
            for j in range(power):
                part[j] *= scale


def _examples() -> Iterator[tuple[Any, ...]]:
    codes = frozen(np.array([[0], [3], [2**64 - 1], [5]], np.uint64))
    factors = frozen(np.array([64, 0, 255, 80], np.uint8))
    offsets = frozen(np.array([0, 2, 2, 4], np.int64))
    planes = frozen(np.array([[[1], [2]], [[7], [2**63]]], np.uint64))
    scale = frozen(np.array([[-1.0, 0.5, 2.0], [0.25, 1.0, -3.0]], np.float32))
    for tokens, rows in ((4, 3), (0, 0)):
        some = frozen(np.arange(rows, dtype=np.int64)[::-1].copy())
        yield (
            codes[:tokens],
            factors[:tokens],
            offsets[: rows + 1],
            some,
            planes,
            scale,
            np.zeros((2, rows), np.float32),
        )


@kernel(examples=_examples)
def best_matches(
    codes: CodeArray,
    factors: ByteArray,
    offsets: RowArray,
    rows: RowArray,
    planes: CodeArray,
    scale: FloatArray,
    best: FloatArray,
) -> None:
    """Write the similarity of each token of the query with the token of each text that is nearest to it.

    codes    uint64 (tokens, w): 64 w signs of each token of all texts; a set bit is +1, any other -1
    factors  uint8 (tokens,): u stands for 1 + u / 256, by which a token's similarities are multiplied
    offsets  int64 (texts + 1,): the tokens of text i are those from offsets[i] to offsets[i + 1]
    rows     int64 (m,): the texts that are compared
    planes   uint64 (q, b, w): the numbers of each token of the query, bit plane after bit plane, lowest first
    scale    float32 (q, 3): number u stands for scale[0] + scale[1] u; scale[2] is the sum of all of these
    best     float32 (q, m), written; NaN for a text without tokens
    """
    words = codes.shape[1]
    for i in range(rows.size):
        first, last = offsets[rows[i]], offsets[rows[i] + 1]
        for q in range(planes.shape[0]):
            best[q, i] = np.float32(np.nan) if first == last else np.float32(-np.inf)
        for token in range(first, last):
            code = codes[token]
            factor = np.float32(1.0) + np.float32(factors[token]) / np.float32(256.0)
            ones = np.uint64(0)
            for j in range(words):
                ones += _ones(code[j])
            for q in range(planes.shape[0]):
                dot = np.uint64(0)
                for b in range(planes.shape[1]):
                    plane = planes[q, b]
                    common = np.uint64(0)
                    for j in range(words):
                        common += _ones(code[j] & plane[j])
                    dot += common << np.uint64(b)
                positive = scale[q, 0] * np.float32(ones) + scale[q, 1] * np.float32(dot)
                match = factor * (np.float32(2.0) * positive - scale[q, 2])
                if match > best[q, i]:
                    best[q, i] = match
