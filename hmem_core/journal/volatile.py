"""A journal that lives and dies with the process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hmem_core.errors import Closed, Conflict, InvalidInput
from hmem_core.journal.base import Position, Stored, Verification, encode_append
from hmem_core.journal.entries import Entry, decode
from hmem_core.journal.forks import ForkSafe

__all__ = ["VolatileJournal"]


class VolatileJournal(ForkSafe):
    """Entries in a list. They are kept encoded, so that what is read is a copy that nobody else can change
    and `nbytes` is what a file would hold. After a fork, parent and child each have their own."""

    def __init__(self) -> None:
        self._bodies: list[bytes] = []
        self._rewritten = 0
        self._closed = False
        super().__init__()

    def position(self) -> Position:
        with self._lock:
            self._check_open()
            return Position(len(self._bodies), self._rewritten)

    def read(self, after: int = 0) -> Iterator[Stored]:
        head = self.position().head
        for seq in range(after + 1, head + 1):
            yield from self.fetch((seq,))

    def fetch(self, seqs: Sequence[int]) -> list[Stored]:
        with self._lock:
            self._check_open()
            head = len(self._bodies)
            for seq in seqs:
                if not 1 <= seq <= head:
                    raise InvalidInput(f"there is no entry {seq}: the journal ends at {head}")
            return [Stored(seq, decode(self._bodies[seq - 1])) for seq in seqs]

    def append(
        self, expected: int, entries: Sequence[Entry], *, rewrite: Mapping[int, Entry] | None = None
    ) -> int:
        bodies = encode_append(expected, entries, rewrite)
        with self._lock:
            self._check_open()
            if len(self._bodies) != expected:
                raise Conflict(expected, len(self._bodies))
            self._bodies += bodies.new
            for seq, body in bodies.rewritten.items():
                self._bodies[seq - 1] = body
            if bodies.rewritten:
                self._rewritten = len(self._bodies)
            return len(self._bodies)

    def scrub(self) -> None:
        """Nothing to do: a rewritten body is released at once."""
        with self._lock:
            self._check_open()

    def verify(self) -> Verification:
        return Verification(sum(1 for _ in self.read()), ())

    def nbytes(self) -> int:
        with self._lock:
            self._check_open()
            return sum(map(len, self._bodies))

    def close(self) -> None:
        """Drop the entries. Idempotent."""
        with self._lock:
            self._bodies.clear()
            self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the journal is closed")
