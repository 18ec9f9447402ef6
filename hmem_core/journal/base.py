"""The contract that every journal keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from hmem_core.journal.entries import Entry

__all__ = ["Journal", "Position", "Stored"]


class Stored(NamedTuple):
    """An entry and its place in the journal; the first has ``seq == 1``."""

    seq: int
    entry: Entry


class Position(NamedTuple):
    """Where a journal stands."""

    head: int
    """Sequence number of the last entry; 0 for an empty journal."""
    rewritten: int
    """Sequence number of the last append that rewrote earlier entries; 0 if none did. State built from a
    position before it may hold what the rewrite removed."""


class Journal(Protocol):
    """An ordered, durable list of entries with optimistic appends.

    Safe to use from several threads; implementations that live on disk also from several processes, and
    in a child after a fork.
    """

    def position(self) -> Position:
        """Where the journal stands now, other processes' appends included."""

    def read(self, after: int = 0) -> Iterator[Stored]:
        """Entries with ``seq > after``, in order.

        Raises:
            Damaged: an entry fails its checksum, cannot be decoded, or is missing.
        """

    def fetch(self, seqs: Sequence[int]) -> list[Stored]:
        """The entries with these sequence numbers, in the order given."""

    def append(
        self, expected: int, entries: Sequence[Entry], *, rewrite: Mapping[int, Entry] | None = None
    ) -> int:
        """Add `entries` after entry `expected`, all or none; returns the new head. Durable on return.

        `rewrite` replaces the bodies of earlier entries in the same transaction. The bytes they held are
        gone from every file of the journal only after `scrub`.

        Raises:
            Conflict: the head is not `expected`; nothing was written.
            StorageError: the disk refused; nothing was written.
        """

    def scrub(self) -> None:
        """Remove the bytes of rewritten entries from every file. Idempotent; does nothing if none are left.
        A journal that was interrupted between a rewrite and its scrub scrubs when it is opened next."""

    def nbytes(self) -> int:
        """Bytes of the journal's files, or of its entries if it has none."""

    def close(self) -> None:
        """Release files and connections. Idempotent."""
