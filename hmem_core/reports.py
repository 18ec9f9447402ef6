"""What a memory says of itself: sizes, spending, and what a check of its files found."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from hmem_core.records import EncoderIdentity

__all__ = ["LedgerSnapshot", "Stats", "Usage", "Verified", "VerifiedCheckpoint"]


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What was spent on a language model."""

    calls: int = 0
    """Replies that the model gave, malformed ones included."""
    saved: int = 0
    """Questions that needed no call: the reply was known, or the same question was under way."""
    retries: int = 0
    """Requests that failed for a reason that may pass."""
    failures: int = 0
    """Questions that got no usable reply."""
    input_tokens: int = 0
    cached_tokens: int = 0
    """Of `input_tokens`, those that the server had in its cache."""
    output_tokens: int = 0
    seconds: float = 0.0
    """Time that requests took, added up; those under way at once count each."""
    cost: float | None = None
    """In the currency of the prices; None where none are known."""

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            calls=self.calls + other.calls,
            saved=self.saved + other.saved,
            retries=self.retries + other.retries,
            failures=self.failures + other.failures,
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            seconds=self.seconds + other.seconds,
            cost=sum(costs) if costs else None,
        )


class LedgerSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What a memory has spent on its language model since it was opened."""

    total: Usage
    purposes: Mapping[str, Usage]
    """By what the questions were asked for."""


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """The size and state of a memory."""

    turns: int
    """Turns that can be read."""
    forgotten: int
    sessions: int
    speakers: int
    first: datetime | None
    """Time of the earliest turn."""
    last: datetime | None
    """Time of the latest turn."""
    seq: int
    """Entries in the journal."""
    encoder: EncoderIdentity
    location: str | None
    """Directory of the memory; None if it lives in the process."""
    checkpoint: int | None
    """Sequence number of the checkpoint the memory was opened from or wrote last."""
    disk_bytes: int
    """Bytes of all files of the memory."""
    memory_bytes: int
    """Bytes of the arrays and texts held in the process; mapped files are not counted."""
    mapped_bytes: int
    """Bytes of checkpoint files that are mapped into the process."""
    llm: LedgerSnapshot | None = None
    """None if no language model is configured."""
    waiting: int = 0
    """Segments, turns, events and facts that wait for the language model; `Memory.settle` lets it do them."""


class VerifiedCheckpoint(msgspec.Struct, frozen=True):
    """One checkpoint that `verify` read."""

    name: str
    seq: int | None
    """The journal entry it is at; None where that cannot be read."""
    problem: str | None
    """Why it is not used. The memory is whole without it, and makes a new one."""


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What `verify` found in the files of a memory."""

    entries: int
    """Entries of the journal that are as they were written."""
    problems: tuple[str, ...]
    """One sentence for each thing wrong with the journal, which is the only copy of what it holds."""
    checkpoints: tuple[VerifiedCheckpoint, ...]

    @property
    def sound(self) -> bool:
        """Nothing is wrong anywhere."""
        return not self.problems and all(checkpoint.problem is None for checkpoint in self.checkpoints)
