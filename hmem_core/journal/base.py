"""The contract that every journal keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from hmem_core.errors import InvalidInput
from hmem_core.journal.entries import Entry, encode

__all__ = ["Bodies", "Journal", "Position", "Stored", "Verification", "encode_append"]


class Stored(NamedTuple):
    """An entry and its place in the journal; the first has ``seq == 1``."""

    seq: int
    entry: Entry


class Position(NamedTuple):
    """Where a journal stands."""

    head: int
    """Sequence number of the last entry; 0 for an empty journal."""
    rewritten: int
    """Sequence number of the last entry appended together with a rewrite of earlier ones; 0 if none was.
    State built from an earlier position may hold what the rewrite removed."""


class Verification(NamedTuple):
    """What `Journal.verify` found."""

    entries: int
    """Entries that were read, passed their checksum and were decoded."""
    problems: tuple[str, ...]
    """One sentence for each thing that is wrong; empty for a sound journal."""


class Journal(Protocol):
    """An ordered, durable list of entries with optimistic appends.

    Safe to use from several threads, and after a fork by parent and child; implementations that live on
    disk also from several processes. Every method but `close` raises `Closed` once the journal is closed,
    and `StorageError` if the disk or the database refuses.
    """

    def position(self) -> Position:
        """Where the journal stands now, other processes' appends included."""

    def read(self, after: int = 0) -> Iterator[Stored]:
        """Entries with ``seq > after``, in order, up to the head at the time of the first step.

        Holds no lock and no transaction between steps. A rewrite that happens meanwhile may be seen in
        part; `position` tells.

        Raises:
            Damaged: an entry fails its checksum, cannot be decoded, or is missing.
        """

    def fetch(self, seqs: Sequence[int]) -> list[Stored]:
        """The entries with these sequence numbers, in the order given.

        Raises:
            InvalidInput: the journal has no entry of that number.
            Damaged: as for `read`.
        """

    def append(
        self, expected: int, entries: Sequence[Entry], *, rewrite: Mapping[int, Entry] | None = None
    ) -> int:
        """Add `entries` after entry `expected`, all or none; returns the new head. Durable on return.

        `rewrite` replaces the bodies of earlier entries in the same transaction. The bytes they held are
        gone from every file of the journal only after `scrub`.

        Raises:
            Conflict: the head is not `expected`; nothing was written.
            StorageError: the disk refused; nothing was written.
            InvalidInput: `rewrite` names an entry that is not an earlier one, or comes with no new entry
                (readers notice a rewrite by the head's moving).
        """

    def scrub(self) -> None:
        """Remove the bytes of rewritten entries from every file. Idempotent; does nothing if none are left.

        A scrub that fails or is interrupted stays due: the next opening of the journal tries again.

        Raises:
            StorageError: bytes remain, because a reader is in the way or the disk is full; the rewrite
                itself stands.
        """

    def verify(self) -> Verification:
        """Read everything and say what is wrong with it, where other methods would raise `Damaged`."""

    def nbytes(self) -> int:
        """Bytes of the journal's files, or of its entries if it has none."""

    def close(self) -> None:
        """Release files and connections. Idempotent."""


class Bodies(NamedTuple):
    """The arguments of an append, checked and encoded."""

    new: list[bytes]
    rewritten: dict[int, bytes]


def encode_append(expected: int, entries: Sequence[Entry], rewrite: Mapping[int, Entry] | None) -> Bodies:
    """Encode what `Journal.append` was given, before anything is locked or written.

    Raises:
        InvalidInput: as for `Journal.append`.
    """
    rewrite = rewrite or {}
    if rewrite and not entries:
        raise InvalidInput("a rewrite needs an entry that tells of it; got none to append")
    for seq in rewrite:
        if not 1 <= seq <= expected:
            raise InvalidInput(f"cannot rewrite entry {seq}: earlier entries are those from 1 to {expected}")
    return Bodies(
        [encode(entry) for entry in entries], {seq: encode(entry) for seq, entry in rewrite.items()}
    )
