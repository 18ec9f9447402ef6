"""The exceptions of hmem, all below `HmemError`.

    HmemError
    ├── InvalidInput (ValueError)      an argument is wrong; the message names value, limit and remedy
    ├── NotFound (LookupError)         nothing of that name here
    │   ├── MemoryNotFound             no memory lies at that path
    │   ├── EventNotFound              no event has that number
    │   ├── SegmentNotFound            no node of the segment tree has that number
    │   ├── RewriteNotFound            no rewrite of the fact graph has that number
    │   ├── TurnNotFound               that turn was never stored
    │   │   └── TurnForgotten          it was stored, and then forgotten
    │   └── UnitNotFound               the fact graph never had that unit
    │       └── UnitForgotten          it had, and the unit is forgotten
    ├── Closed                         the memory was closed
    ├── Conflict                       another writer appended first; raised by journals, handled by `Memory`
    ├── StorageError                   the disk or the database refused; what was stored before is unharmed
    │   └── Damaged                    stored bytes are not what was written
    ├── EncoderError                   text could not be turned into vectors
    │   ├── EncoderMissing             the encoder's package or files are absent
    │   └── EncoderMismatch            the memory was written with another encoder
    └── LLMError                       a language model gave no usable reply
        ├── LLMMissing                 none was configured, or its client is not installed
        ├── LLMUnavailable             it is down, overloaded or too slow; later may be better
        ├── LLMRefused                 it refuses this request: its key, its model, its length
        ├── MalformedReply             its reply cannot be used; the message says why, in words for the model
        └── BudgetExceeded             the reply would cost more than is left of a budget

"Nothing matched" is never an exception: a search that finds nothing returns an empty list.
"""

from __future__ import annotations

__all__ = [
    "BudgetExceeded",
    "Closed",
    "Conflict",
    "Damaged",
    "EncoderError",
    "EncoderMismatch",
    "EncoderMissing",
    "EventNotFound",
    "HmemError",
    "InvalidInput",
    "LLMError",
    "LLMMissing",
    "LLMRefused",
    "LLMUnavailable",
    "MalformedReply",
    "MemoryNotFound",
    "NotFound",
    "RewriteNotFound",
    "SegmentNotFound",
    "StorageError",
    "TurnForgotten",
    "TurnNotFound",
    "UnitForgotten",
    "UnitNotFound",
]


class HmemError(Exception):
    """Base of every error that hmem raises on purpose."""


class InvalidInput(HmemError, ValueError):
    """An argument is wrong; nothing was changed."""


class NotFound(HmemError, LookupError):
    """What was named is not here."""


class MemoryNotFound(NotFound):
    """No memory lies at the path that was given."""


class EventNotFound(NotFound):
    """No event has that number, or all its turns were forgotten."""


class SegmentNotFound(NotFound):
    """No node of the segment tree has that number, or all of its turns were forgotten."""


class TurnNotFound(NotFound):
    """No turn with that id or key was ever stored."""


class TurnForgotten(TurnNotFound):
    """The turn was stored and then forgotten; its id is never given out again."""


class UnitNotFound(NotFound):
    """The fact graph never had a unit of that number."""


class UnitForgotten(UnitNotFound):
    """The unit is forgotten; its number is never given out again."""


class RewriteNotFound(NotFound):
    """The journal has no entry of that number that rewrote the fact graph, or what it did is forgotten."""


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


class LLMError(HmemError):
    """A language model gave no usable reply. What was stored before is unharmed."""


class LLMMissing(LLMError):
    """No language model was configured, or its client is not installed."""


class LLMUnavailable(LLMError):
    """The model is down, overloaded or too slow, and stayed so until the retries or the time ran out."""


class LLMRefused(LLMError):
    """The model refuses this very request, and would again: a wrong key or model name, too long a prompt."""


class MalformedReply(LLMError):
    """A reply of the model that cannot be used; nothing was changed by it.

    The message says what is wrong in words that can be shown to the model. `kind` sorts replies for
    counting: ``"empty"``, ``"refused"``, ``"filtered"`` (by the server), ``"cut"`` (the reply ends early),
    ``"broken"`` (no JSON, or not readable as JSON), ``"invalid"`` (JSON that is not what was asked for).
    `raw` is the reply, shortened.
    """

    def __init__(self, message: str, kind: str = "invalid", raw: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.raw = raw

    @property
    def repairable(self) -> bool:
        """Whether showing the model its mistake can help: not where it, or its server, declined to answer."""
        return self.kind not in ("refused", "filtered")


class BudgetExceeded(LLMError):
    """A question was not put to the model, since the reply would cost more than is left of a budget."""
