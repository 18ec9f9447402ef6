"""The exceptions of hmem, all below `HmemError`.

    HmemError
    ├── InvalidInput (ValueError)      an argument is wrong; the message names value, limit and remedy
    ├── NotFound (LookupError)         nothing of that name here
    │   ├── MemoryNotFound             no memory lies at that path
    │   ├── SegmentNotFound            no node of the segment tree has that number
    │   └── TurnNotFound               that turn was never stored
    │       └── TurnForgotten          it was stored, and then forgotten
    ├── Closed                         the memory was closed
    ├── Conflict                       another writer appended first; raised by journals, handled by `Memory`
    ├── StorageError                   the disk or the database refused; what was stored before is unharmed
    │   └── Damaged                    stored bytes are not what was written
    └── EncoderError                   text could not be turned into vectors
        ├── EncoderMissing             the encoder's package or files are absent
        └── EncoderMismatch            the memory was written with another encoder

"Nothing matched" is never an exception: a search that finds nothing returns an empty list.
"""

from __future__ import annotations

__all__ = [
    "Closed",
    "Conflict",
    "Damaged",
    "EncoderError",
    "EncoderMismatch",
    "EncoderMissing",
    "HmemError",
    "InvalidInput",
    "MemoryNotFound",
    "NotFound",
    "SegmentNotFound",
    "StorageError",
    "TurnForgotten",
    "TurnNotFound",
]


class HmemError(Exception):
    """Base of every error that hmem raises on purpose."""


class InvalidInput(HmemError, ValueError):
    """An argument is wrong; nothing was changed."""


class NotFound(HmemError, LookupError):
    """What was named is not here."""


class MemoryNotFound(NotFound):
    """No memory lies at the path that was given."""


class SegmentNotFound(NotFound):
    """No node of the segment tree has that number, or all of its turns were forgotten."""


class TurnNotFound(NotFound):
    """No turn with that id or key was ever stored."""


class TurnForgotten(TurnNotFound):
    """The turn was stored and then forgotten; its id is never given out again."""


class Closed(HmemError):
    """The memory was closed; open it again."""


class Conflict(HmemError):
    """The journal has moved past the sequence number the writer planned against."""

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(f"the journal is at entry {found}, the writer expected {expected}")
        self.expected = expected
        self.found = found


class StorageError(HmemError):
    """The disk or the database refused an operation."""


class Damaged(StorageError):
    """Stored bytes fail their checksum or cannot be decoded."""


class EncoderError(HmemError):
    """The encoder failed, or gave something that is not a vector."""


class EncoderMissing(EncoderError):
    """The encoder's package or files are not installed."""


class EncoderMismatch(EncoderError):
    """The memory's vectors were made by another encoder than the one it is opened with."""
