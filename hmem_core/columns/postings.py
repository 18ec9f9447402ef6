"""Postings by block: which turns have a term, and how often.

A block of turns has postings of its own, so a full block never changes and a checkpoint links its file. In
the last block new postings go to a tail, which is merged into the block's base before it grows long: adding a
turn costs its terms, and a reader copies a short tail. Terms are hashes (`columns.terms`). Erasing a turn
removes its postings, and the terms that only it had.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hmem_core.columns.blocks import BLOCK_ROWS
from hmem_kernels import frozen
from hmem_kernels.lexical import Postings, Tail, add_postings, bm25, latest_postings, merge_postings

__all__ = ["PostingColumns", "PostingView", "idf"]

HashArray = npt.NDArray[np.uint64]
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
MaskArray = npt.NDArray[np.uint8]

_TAIL_TURNS = 512
"""A tail of so many turns is merged into its block's base."""
_ALL_LIVE = frozen(np.empty(0, np.uint8))


def idf(found: npt.NDArray[np.int64], turns: int) -> FloatArray:
    """ln(1 + (N - n + ½) / (n + ½)) for terms that `found` of N turns have: BM25's weight, never negative.

    Returns float32 of the shape of `found`.
    """
    weights: FloatArray = np.log1p((turns - found + 0.5) / (found + 0.5)).astype(np.float32)
    return weights


def _empty_base() -> Postings:
    return Postings(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))


def _empty_tail(terms: int) -> Tail:
    return Tail(
        np.full(terms, -1, np.int32), np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32)
    )


def _grown(column: npt.NDArray[Any], size: int, fill: int = 0) -> npt.NDArray[Any]:
    """`column` with room for at least `size`; doubled, so that growing is amortised constant."""
    if size <= column.size:
        return column
    grown = np.full(max(size, 2 * column.size, 64), fill, dtype=column.dtype)
    grown[: column.size] = column
    return grown


class _Block:
    """Postings of one block. Turns are numbered within it."""

    __slots__ = ("_ids", "base", "mapped", "tail", "tail_turns", "terms", "used")

    def __init__(self, terms: HashArray | None = None, base: Postings | None = None) -> None:
        self.mapped = base is not None
        self.terms = np.empty(0, np.uint64) if terms is None else terms
        self.base = _empty_base() if base is None else base
        self.tail = _empty_tail(self.terms.size)
        self.used = 0
        self.tail_turns = 0
        self._ids: dict[int, int] | None = None

    def add(self, turn: int, hashes: HashArray, weights: FloatArray) -> None:
        if self._ids is None:
            self._ids = {value: number for number, value in enumerate(self.terms.tolist())}
        ids = self._ids
        numbers = np.array([ids.setdefault(value, len(ids)) for value in hashes.tolist()], np.int32)
        room = self.used + hashes.size
        self.tail = Tail(
            _grown(self.tail.latest, len(ids), -1),
            _grown(self.tail.earlier, room),
            _grown(self.tail.turns, room),
            _grown(self.tail.weights, room),
        )
        self.used = add_postings(frozen(numbers), frozen(weights), turn, self.used, self.tail)
        self.tail_turns += 1
        if self.tail_turns == _TAIL_TURNS:
            self.settle()

    def numbers(self, hashes: HashArray) -> IntArray:
        """The numbers of terms, -1 for those that the block does not know."""
        if self._ids is not None:
            return np.array([self._ids.get(value, -1) for value in hashes.tolist()], np.int32)
        found = np.searchsorted(self.terms, hashes)
        known = found < self.terms.size
        known[known] = self.terms[found[known]] == hashes[known]
        return np.where(known, found, -1).astype(np.int32)

    def settle(self, live: MaskArray = _ALL_LIVE) -> None:
        """Merge the tail into the base, terms ascending; drop the postings of turns that are not live."""
        if self.used == 0 and live.size == 0:
            return
        terms = self._all_terms()
        tail = self._exact_tail()
        room = self.base.turns.size + self.used
        merged = Postings(
            np.zeros(terms.size + 1, np.int64), np.empty(room, np.int32), np.empty(room, np.float32)
        )
        size = merge_postings(frozen(live), self.base.frozen(), tail.frozen(), merged)
        counts = np.diff(merged.offsets)
        order = np.argsort(terms, kind="stable")
        order = order[counts[order] > 0]
        offsets = np.zeros(order.size + 1, np.int64)
        np.cumsum(counts[order], out=offsets[1:])
        # Where the postings of the terms, in their new order, lie in the merged ones.
        places = np.arange(size) + np.repeat(merged.offsets[order] - offsets[:-1], counts[order])
        self.terms = terms[order]
        self.base = Postings(offsets, merged.turns[places], merged.weights[places])
        self.mapped = False
        self.tail, self.used, self.tail_turns, self._ids = _empty_tail(order.size), 0, 0, None

    def _all_terms(self) -> HashArray:
        if self._ids is None or len(self._ids) == self.terms.size:
            return self.terms
        return np.fromiter(self._ids, np.uint64, count=len(self._ids))

    def _exact_tail(self) -> Tail:
        """The tail without spare room, copied, so that adding to it later changes nothing in it."""
        terms = self.terms.size if self._ids is None else len(self._ids)
        latest = _grown(self.tail.latest, terms, -1)[:terms].copy()
        used = slice(0, self.used)
        return Tail(
            latest,
            self.tail.earlier[used].copy(),
            self.tail.turns[used].copy(),
            self.tail.weights[used].copy(),
        )

    def view(self) -> _BlockView:
        if self.used == 0:
            return _BlockView(self.terms, None, self.base.frozen(), _empty_tail(self.terms.size).frozen())
        return _BlockView(self.terms, self._ids, self.base.frozen(), self._exact_tail().frozen())


class _BlockView(NamedTuple):
    """One block as a reader sees it. The dict may learn more terms meanwhile; their numbers are too high."""

    terms: HashArray
    ids: dict[int, int] | None
    base: Postings
    tail: Tail

    def find(self, hashes: HashArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Numbers of the terms that the block knows, and which of `hashes` those are."""
        if self.ids is not None:
            numbers = np.array([self.ids.get(value, -1) for value in hashes.tolist()], np.int64)
            known = (numbers >= 0) & (numbers < self.tail.latest.size)
        else:
            numbers = np.searchsorted(self.terms, hashes)
            known = numbers < self.terms.size
            known[known] = self.terms[numbers[known]] == hashes[known]
        return numbers[known].astype(np.int32), known

    def found(self, numbers: IntArray) -> npt.NDArray[np.int64]:
        """How many turns have each term."""
        in_base = numbers < self.base.offsets.size - 1
        counts = np.zeros(numbers.size, np.int64)
        counts[in_base] = np.diff(self.base.offsets)[numbers[in_base]]
        for place, number in enumerate(numbers.tolist()):
            posting = int(self.tail.latest[number])
            while posting >= 0:
                counts[place] += 1
                posting = int(self.tail.earlier[posting])
        return counts

    def turns_of(self, number: int) -> IntArray:
        """The turns that have a term."""
        parts = []
        if number + 1 < self.base.offsets.size:
            parts.append(self.base.turns[self.base.offsets[number] : self.base.offsets[number + 1]])
        tail = []
        posting = int(self.tail.latest[number])
        while posting >= 0:
            tail.append(int(self.tail.turns[posting]))
            posting = int(self.tail.earlier[posting])
        return np.concatenate([*parts, np.array(tail, np.int32)])


class PostingView(NamedTuple):
    """Postings as one reader sees them."""

    blocks: Sequence[_BlockView]

    def having(self, hashes: HashArray, turns: int) -> tuple[npt.NDArray[np.uint64], FloatArray]:
        """Which of at most 64 terms each of the turns has, as bits: uint64 of shape (turns,); and the idf of
        each term, as if no turn were forgotten: float32 of shape (terms,)."""
        bits = np.zeros(turns, np.uint64)
        found = np.zeros(hashes.size, np.int64)
        for number, block in enumerate(self.blocks):
            rows = bits[number * BLOCK_ROWS : (number + 1) * BLOCK_ROWS]
            numbers, known = block.find(hashes)
            for place, term in zip(np.flatnonzero(known).tolist(), numbers.tolist(), strict=True):
                having = block.turns_of(term)
                rows[having] |= np.uint64(1 << place)
                found[place] += having.size
        return bits, idf(found, turns)

    def frequencies(self, hashes: HashArray) -> npt.NDArray[np.int64]:
        """How many turns have each of these distinct terms: int64 of shape (terms,)."""
        found = np.zeros(hashes.size, np.int64)
        for block in self.blocks:
            numbers, known = block.find(hashes)
            found[known] += block.found(numbers)
        return found

    def bm25(
        self,
        hashes: HashArray,
        lengths: FloatArray,
        live: MaskArray,
        allowed: MaskArray,
        *,
        k1: float,
        b: float,
    ) -> FloatArray:
        """BM25 scores of all turns: float32 of shape (turns,), 0 for turns that are not allowed.

        Frequencies and lengths are those of the whole memory, whatever is allowed, so that a filter does not
        change the score of a turn.

        Args:
            hashes: distinct terms of the query, uint64 of shape (terms,).
            lengths: lengths of the turns in terms, float32 of shape (turns,).
            live: 1 for turns that are not forgotten, uint8 of shape (turns,).
            allowed: 1 for turns to score, uint8 of shape (turns,).
        """
        scores = np.zeros(lengths.size, np.float32)
        turns = int(np.count_nonzero(live))
        total = float(lengths.sum(dtype=np.float64))
        if not hashes.size or not turns or not total:
            return scores
        found = np.zeros(hashes.size, np.int64)
        places = []
        for block in self.blocks:
            numbers, known = block.find(hashes)
            found[known] += block.found(numbers)
            places.append((numbers, known))
        weights = idf(found, turns)
        for number, (block, (numbers, known)) in enumerate(zip(self.blocks, places, strict=True)):
            rows = slice(number * BLOCK_ROWS, (number + 1) * BLOCK_ROWS)
            bm25(
                frozen(numbers),
                frozen(weights[known]),
                block.base,
                block.tail,
                frozen(lengths[rows]),
                frozen(allowed[rows]),
                total / turns,
                float(k1),
                float(b),
                scores[rows],
            )
        return scores


class Latest(NamedTuple):
    """Of some terms, how many turns have each, and the latest ones."""

    found: npt.NDArray[np.int64]
    turns: IntArray
    """int32 of shape (terms, most): the latest first, -1 where there are fewer."""


class PostingColumns:
    """Postings of all turns; turn number = row number."""

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        self._blocks: list[_Block] = []

    def append(self, row: int, hashes: HashArray, weights: FloatArray) -> None:
        """Add the terms of the next turn; none for a forgotten one."""
        place = row % BLOCK_ROWS
        if place == 0:
            self._blocks.append(_Block())
        if hashes.size:
            self._blocks[-1].add(place, hashes, weights)
        if place == BLOCK_ROWS - 1:
            self._blocks[-1].settle()

    def erase(self, rows: Iterable[int]) -> None:
        """Remove all postings of these turns."""
        for number, group in groupby(sorted(rows), lambda row: row // BLOCK_ROWS):
            live = np.ones(BLOCK_ROWS, np.uint8)
            live[[row % BLOCK_ROWS for row in group]] = 0
            self._blocks[number].settle(live)

    def latest(self, hashes: HashArray, most: int) -> Latest:
        """How frequent terms are of late, and the latest turns that have them.

        Only the last two blocks are looked into, so that the cost does not grow with the memory.
        """
        found, held = np.zeros(hashes.size, np.int64), np.zeros(hashes.size, np.int32)
        turns = np.full((hashes.size, most), -1, np.int32)
        for number, block in list(enumerate(self._blocks))[-1:-3:-1]:
            numbers = frozen(block.numbers(hashes))
            first = number * BLOCK_ROWS
            latest_postings(numbers, block.base.frozen(), block.tail.frozen(), first, found, held, turns)
        return Latest(found, turns)

    def view(self) -> PostingView:
        """What a reader may use while turns are added."""
        return PostingView([block.view() for block in self._blocks])

    def terms_batch(self, block: int) -> pa.RecordBatch:
        """The terms of one block, ascending, and how many turns have each, for a checkpoint."""
        self._blocks[block].settle()
        terms, base = self._blocks[block].terms, self._blocks[block].base
        return pa.RecordBatch.from_pydict({"term": pa.array(terms), "turns": pa.array(np.diff(base.offsets))})

    def postings_batch(self, block: int) -> pa.RecordBatch:
        """The postings of one block, term by term, for a checkpoint."""
        self._blocks[block].settle()
        base = self._blocks[block].base
        return pa.RecordBatch.from_pydict({"turn": pa.array(base.turns), "weight": pa.array(base.weights)})

    @classmethod
    def restore(cls, batches: Sequence[tuple[pa.RecordBatch, pa.RecordBatch]]) -> PostingColumns:
        """The postings that were written, over mapped memory: (terms, postings) of each block."""
        columns = cls()
        for terms, postings in batches:
            offsets = np.zeros(terms.num_rows + 1, np.int64)
            np.cumsum(terms.column("turns").to_numpy(), out=offsets[1:])
            if offsets[-1] != postings.num_rows:
                raise ValueError("terms and postings of a block do not fit together")
            base = Postings(offsets, postings.column("turn").to_numpy(), postings.column("weight").to_numpy())
            columns._blocks.append(_Block(terms.column("term").to_numpy(), base))
        return columns

    def arrays(self) -> dict[str, Any]:
        """Every value, in a form that compares bit for bit."""
        values: dict[str, Any] = {}
        for number in range(len(self._blocks)):
            for batch in (self.terms_batch(number), self.postings_batch(number)):
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    values[f"posting {number} {name}"] = column.to_numpy()
        return values

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes of the arrays: (held, mapped)."""
        held = mapped = 0
        for block in self._blocks:
            offsets, turns, weights = block.base
            held += offsets.nbytes + sum(column.nbytes for column in block.tail)
            size = block.terms.nbytes + turns.nbytes + weights.nbytes
            held, mapped = (held, mapped + size) if block.mapped else (held + size, mapped)
        return held, mapped
