"""Token states for late interaction, narrow: a sign for each of a few hundred rotated numbers.

A state is rotated, so that no coordinate means more than another, cut to `BITS` coordinates at most, and
kept as their signs with one byte that makes dot products right on average (RaBitQ, arXiv 2405.12497). Queries
are rotated likewise, and rounded to `QUERY_BITS` bits. Of a turn's tokens, punctuation and function words are
left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hmem_core.columns.blocks import BLOCK_ROWS
from hmem_kernels import frozen
from hmem_kernels.maxsim import best_matches, rotate

__all__ = [
    "BITS",
    "MAX_STATES",
    "QueryStates",
    "StateColumns",
    "StateView",
    "pack_query",
    "pack_states",
    "words_of",
]

FloatArray = npt.NDArray[np.float32]
CodeArray = npt.NDArray[np.uint64]
ByteArray = npt.NDArray[np.uint8]
RowArray = npt.NDArray[np.int64]

BITS = 384
"""Signs of a state at most; fewer where vectors are narrower."""
MAX_STATES = 128
"""States of a turn at most: of longer ones, evenly chosen."""
QUERY_BITS = 4
_WORD = 64
_ROUNDS = 4
_SEED = 0x686D656D


class QueryStates(NamedTuple):
    """The states of a query's tokens, as `best_matches` reads them."""

    planes: CodeArray
    """uint64 of shape (tokens, `QUERY_BITS`, words)."""
    scale: FloatArray
    """float32 of shape (tokens, 3)."""


def words_of(dimension: int) -> int:
    """uint64 that hold the signs of a state in a memory whose vectors have so many numbers."""
    return min(-(-dimension // _WORD), BITS // _WORD)


def pack_states(states: FloatArray, words: int, content: npt.NDArray[np.bool_] | None = None) -> bytes | None:
    """States as the journal holds them: the signs of each, and after all of these a byte for each.

    Args:
        states: float32 of shape (tokens, width), rows of length 1; a row of zeros is left out.
        content: bool of shape (tokens,): tokens that are neither function words nor punctuation. The others
            are left out too, unless there is nothing else.

    Returns:
        None where there is nothing to keep.
    """
    kept = states.any(axis=1)
    if content is not None and (kept & content).any():
        kept &= content
    states = states[kept]
    if len(states) > MAX_STATES:
        states = states[np.arange(MAX_STATES) * len(states) // MAX_STATES]
    if not len(states):
        return None
    turned = _turned(states, words)
    codes = np.packbits(turned >= 0, axis=1, bitorder="little")
    length = np.linalg.norm(turned, axis=1) * np.sqrt(turned.shape[1]) / np.abs(turned).sum(axis=1)
    factors = np.clip(np.rint((length - 1) * 256), 0, 255).astype(np.uint8)
    packed: bytes = codes.tobytes() + factors.tobytes()
    return packed


def pack_query(states: FloatArray, words: int) -> QueryStates:
    """The states of a query, float32 of shape (tokens, width), rounded."""
    turned = _turned(states[states.any(axis=1)], words)
    low = turned.min(axis=1, initial=0.0)
    step = (turned.max(axis=1, initial=0.0) - low) / (2**QUERY_BITS - 1)
    numbers = np.rint((turned - low[:, None]) / np.where(step > 0, step, 1)[:, None]).astype(np.uint8)
    bits = numbers[:, None, :] >> np.arange(QUERY_BITS, dtype=np.uint8)[:, None] & 1
    planes = np.packbits(bits, axis=2, bitorder="little").view("<u8").astype(np.uint64)
    total = low * turned.shape[1] + step * numbers.sum(axis=1, dtype=np.int64)
    scale = np.stack([low, step, total], axis=1) / np.sqrt(turned.shape[1])
    return QueryStates(planes, scale.astype(np.float32))


def _turned(states: FloatArray, words: int) -> FloatArray:
    """States rotated, cut to 64 `words` coordinates, and scaled so that lengths stay right on average."""
    kept = words * _WORD
    full = max(-(-states.shape[1] // _WORD) * _WORD, kept)
    rows = np.zeros((len(states), full), np.float32)
    rows[:, : states.shape[1]] = states
    rotate(rows, _flips(full), 1 << (full.bit_length() - 1))
    return rows[:, :kept] * np.float32(np.sqrt(full / kept))


@lru_cache(maxsize=8)
def _flips(size: int) -> FloatArray:
    """The same random signs everywhere: stored codes rest on them."""
    draws = np.random.PCG64(_SEED).random_raw(_ROUNDS * size) >> np.uint64(63)
    return frozen(np.where(draws.reshape(_ROUNDS, size) > 0, 1, -1).astype(np.float32))


class _BlockView(NamedTuple):
    """States of one block of rows; those of row i are from ``offsets[i]`` to ``offsets[i + 1]``."""

    codes: CodeArray
    factors: ByteArray
    offsets: RowArray


class _Block:
    """States of at most `BLOCK_ROWS` rows, in arrays that grow at their ends."""

    __slots__ = ("_rows", "mapped", "view_")

    def __init__(self, words: int, view: _BlockView | None = None) -> None:
        self.mapped = view is not None
        if view is None:
            view = _BlockView(np.empty((0, words), np.uint64), np.empty(0, np.uint8), np.zeros(64, np.int64))
            self._rows = 0
        else:
            self._rows = view.offsets.size - 1
        self.view_ = view

    def view(self) -> _BlockView:
        codes, factors, offsets = self.view_
        tokens = int(offsets[self._rows])
        return _BlockView(codes[:tokens], factors[:tokens], offsets[: self._rows + 1])

    def append(self, codes: CodeArray, factors: ByteArray) -> None:
        held = self.view()
        first, last = held.factors.size, held.factors.size + factors.size
        self.mapped = False
        # Appending writes beyond what any view shows; growing leaves the old arrays to the views.
        self.view_ = _BlockView(
            _room(self.view_.codes, held.codes, last),
            _room(self.view_.factors, held.factors, last),
            _room(self.view_.offsets, held.offsets, self._rows + 2),
        )
        self.view_.codes[first:last] = codes
        self.view_.factors[first:last] = factors
        self.view_.offsets[self._rows + 1] = last
        self._rows += 1

    def trim(self) -> None:
        """Give back what growing took in advance."""
        codes, factors, offsets = self.view()
        self.view_ = _BlockView(codes.copy(), factors.copy(), offsets.copy())

    def erase(self, rows: Sequence[int]) -> None:
        """Leave these rows without states; the arrays are made anew, so that none keeps the bytes."""
        codes, factors, offsets = self.view()
        counts = np.diff(offsets)
        kept = np.ones(counts.size, np.bool_)
        kept[list(rows)] = False
        tokens = np.repeat(kept, counts)
        counts[~kept] = 0
        self.mapped = False
        self.view_ = _BlockView(codes[tokens], factors[tokens], np.concatenate([[0], np.cumsum(counts)]))


def _room(whole: npt.NDArray[Any], used: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """`whole` if `size` rows fit in and it may be written, else an array that holds what was `used`."""
    if size <= len(whole) and whole.flags.writeable:
        return whole
    grown = np.empty((max(size, 2 * len(used)), *whole.shape[1:]), whole.dtype)
    grown[: len(used)] = used
    return grown


class StateView(NamedTuple):
    """Token states of all rows, as one reader sees them."""

    blocks: Sequence[_BlockView]

    def best(self, query: QueryStates, rows: RowArray) -> FloatArray:
        """For each token of the query, its similarity with the nearest token of each row: float32 of shape
        (tokens, rows); NaN in rows without states."""
        best = np.empty((len(query.scale), rows.size), np.float32)
        blocks = rows // BLOCK_ROWS
        for number in np.unique(blocks).tolist():
            places = np.flatnonzero(blocks == number)
            found = np.empty((len(best), places.size), np.float32)
            codes, factors, offsets = self.blocks[number]
            best_matches(
                frozen(codes),
                frozen(factors),
                frozen(offsets),
                frozen(rows[places] - number * BLOCK_ROWS),
                frozen(query.planes),
                frozen(query.scale),
                found,
            )
            best[:, places] = found
        return best


class StateColumns:
    """Token states of all turns; turn number = row number. A turn may have none.

    Args:
        words: uint64 of a state's signs (see `words_of`).
    """

    __slots__ = ("_blocks", "_size", "words")

    def __init__(self, words: int) -> None:
        self.words = words
        self._blocks: list[_Block] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def fits(self, packed: bytes | None) -> bool:
        """Whether `packed` is something that `pack_states` made for these columns."""
        return packed is None or (len(packed) > 0 and len(packed) % (8 * self.words + 1) == 0)

    def append(self, packed: bytes | None) -> None:
        """Add the states of the next turn."""
        place = self._size % BLOCK_ROWS
        if place == 0:
            self._blocks.append(_Block(self.words))
        content = packed or b""
        tokens = len(content) // (8 * self.words + 1)
        codes = np.frombuffer(content, "<u8", tokens * self.words).reshape(tokens, self.words)
        self._blocks[-1].append(codes, np.frombuffer(content, np.uint8, tokens, codes.nbytes))
        self._size += 1
        if place == BLOCK_ROWS - 1:
            self._blocks[-1].trim()

    def erase(self, rows: Iterable[int]) -> None:
        """Leave these rows without states."""
        of_block: dict[int, list[int]] = {}
        for row in rows:
            of_block.setdefault(row // BLOCK_ROWS, []).append(row % BLOCK_ROWS)
        for number, places in of_block.items():
            self._blocks[number].erase(places)

    def view(self) -> StateView:
        """What a reader may use while turns are added."""
        return StateView([block.view() for block in self._blocks])

    def batch(self, block: int) -> pa.RecordBatch:
        """One block, for a checkpoint: a list of uint64 and one of bytes a row. Both share its memory."""
        codes, factors, offsets = self._blocks[block].view()
        lists = pa.LargeListArray.from_arrays(
            pa.array(offsets * self.words), pa.array(codes.reshape(-1), pa.uint64())
        )
        buffers = [None, pa.py_buffer(offsets.copy()), pa.py_buffer(factors)]
        binary = pa.LargeBinaryArray.from_buffers(pa.large_binary(), offsets.size - 1, buffers)
        return pa.RecordBatch.from_arrays([lists, binary], names=["codes", "factors"])

    @classmethod
    def restore(cls, words: int, batches: Sequence[pa.RecordBatch]) -> StateColumns:
        """The columns that `batch` wrote, over mapped memory.

        Raises:
            ValueError: the two lists of a row do not fit together.
        """
        columns = cls(words)
        for batch in batches:
            lists, binary = batch.column("codes"), batch.column("factors")
            codes = lists.values.to_numpy(zero_copy_only=True).reshape(-1, words)
            offsets = lists.offsets.to_numpy(zero_copy_only=True) // words
            data = binary.buffers()[2]
            factors = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
            factors = factors[: offsets[-1]]
            if len(codes) != offsets[-1] or factors.size != offsets[-1] or len(binary) != len(lists):
                raise ValueError("the token states of a block do not fit together")
            columns._blocks.append(_Block(words, _BlockView(codes, factors, offsets)))
            columns._size += len(lists)
        return columns

    def arrays(self) -> dict[str, Any]:
        """Every value, in a form that compares bit for bit."""
        views = [block.view() for block in self._blocks]
        return {
            f"states {number} {name}": part
            for number, view in enumerate(views)
            for name, part in view._asdict().items()
        }

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes of the arrays: (held, mapped). Offsets are always held."""
        held = mapped = 0
        for block in self._blocks:
            codes, factors, offsets = block.view()
            size = codes.nbytes + factors.nbytes
            held += offsets.nbytes
            held, mapped = (held, mapped + size) if block.mapped else (held + size, mapped)
        return held, mapped
