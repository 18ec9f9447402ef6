"""The typed records that go into a memory and come out of it.

All are frozen `msgspec.Struct`s: compare them by value, print them, or encode them with
``msgspec.json.encode``. Times are aware `datetime`s in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, Literal

import msgspec

__all__ = [
    "Added",
    "Change",
    "Context",
    "Contradiction",
    "EncoderIdentity",
    "Evidence",
    "FactDraft",
    "Forgotten",
    "LedgerSnapshot",
    "Line",
    "Rewrite",
    "Segment",
    "Skipped",
    "Stats",
    "Status",
    "Turn",
    "Unit",
    "Usage",
    "Verified",
    "VerifiedCheckpoint",
    "Version",
    "Why",
]


def index_text(text: str, speaker: str | None) -> str:
    """What is indexed of a turn: its text, with who said it."""
    return f"{speaker}: {text}" if speaker else text


class EncoderIdentity(msgspec.Struct, frozen=True):
    """What made a vector: two encoders are the same only if all three agree."""

    name: str
    dimension: int
    weights: str
    """SHA-256 of the weights file in hexadecimal; empty where there is no file (a callable)."""

    def __str__(self) -> str:
        weights = f", weights {self.weights[:12]}…" if self.weights else ""
        return f"{self.name} ({self.dimension} numbers{weights})"


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a conversation.

    Given to `Memory.add`, only `text` is needed and `id` is ignored; as returned by a memory, `id`
    and `at` are always set.
    """

    text: str
    role: str = "user"
    speaker: str | None = None
    session: str | None = None
    at: datetime | None = None
    key: str | None = None
    part: int = 0
    """Place in the list of messages that was added under `key`; (key, part) names a turn."""
    metadata: Mapping[str, Any] = {}
    id: int = -1
    """A small integer that is never reused; -1 before the turn is stored."""


class Skipped(msgspec.Struct, frozen=True):
    """A message that `add` did not store, and why."""

    index: int
    """Position of the message in what was given to `add`."""
    reason: str


class Added(msgspec.Struct, frozen=True, kw_only=True):
    """What `add` did."""

    ids: tuple[int, ...]
    """One id for each message that was not skipped, in the order given."""
    new: tuple[int, ...]
    """Those of `ids` that were stored by this call; the others were stored earlier under the same key."""
    skipped: tuple[Skipped, ...] = ()
    seq: int
    """Sequence number of the journal after this call: a value for ``as_of=``."""


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """What `forget` did."""

    ids: tuple[int, ...]
    """Turns forgotten by this call, ascending."""
    already: tuple[int, ...] = ()
    """Named turns that had been forgotten before."""
    seq: int


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One thing worth reading, found by a search."""

    kind: str
    """``"turn"``; the other views add kinds of their own."""
    text: str
    score: float
    """Higher is better; comparable within one call."""
    span: tuple[int, int]
    """First and last turn id, both included."""
    turns: tuple[int, ...]
    """Ids of the turns this rests on."""
    facts: tuple[Unit, ...] = ()
    """Of kind ``"fact"``: the units that it shows. A fact comes first, then those that contradict it
    (``"pending"``), or those that it rests on."""
    at: datetime
    role: str
    speaker: str | None = None
    session: str | None = None
    key: str | None = None
    metadata: Mapping[str, Any] = {}
    signals: Mapping[str, float] | None = None
    """With ``explain=True``: the part of each signal in `score`; they add up to it."""


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the segment tree: successive turns that belong together, or a single turn, a leaf.

    Nodes that cover nothing but forgotten turns are never shown, not among `children` either.
    """

    id: int
    """The node's number, which neither adding nor forgetting turns changes. Segments at the end of the memory
    grow with it, and any may come to lie in a new one."""
    span: tuple[int, int]
    """First and last turn id, both included. The spans of all children, forgotten turns with them, make up
    that of their parent."""
    height: int
    """0 for a single turn. Above a segment, heights grow, but not always by one: a tree in which all turns
    lie at the same depth would have nodes with one child in between, which say nothing and are left out."""
    size: int
    """Turns in it that are not forgotten."""
    start: datetime
    """The earliest time of one of its turns; turns may be back-dated, so that need not be the first one's."""
    end: datetime
    """The latest time of one of its turns."""
    parent: int | None
    """The segment right above; None for the root."""
    children: tuple[int, ...]
    """The segments right below, in the order of their turns; none for a single turn."""
    text: str
    """A few of its turns that stand for all, one a line with its speaker, in the order of their times."""


Status = Literal["forgotten", "active", "superseded", "pending", "outdated", "retracted"]

STATUSES: tuple[Status, ...] = ("forgotten", "active", "superseded", "pending", "outdated", "retracted")
"""What a unit of the fact graph can be. ``active``: held to be true. ``superseded``: it was, until another
took its place. ``pending``: it contradicts an active one, and nothing says which is newer. ``outdated``:
what it rested on fell. ``retracted``: all that told it was taken back."""

REASONS = (
    "",
    "told",
    "told again",
    "superseded",
    "valid before another",
    "contradicts, and is not newer",
    "no longer contradicted",
    "its support fell",
    "its support was restored",
    "retracted",
    "undone",
    "a source was forgotten",
    "valid time was corrected",
)
"""Why a unit changed. Places in it are in the journal: append only."""

POLICIES = ("", "one", "many", "many")
"""How many values a relation has at a time: not said (one), set to one, set to many, and found to be many."""


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit of the fact graph: one fact, as it is known."""

    id: int
    """A small integer that is never reused."""
    subject: str
    relation: str
    object: str
    category: str | None = None
    """What kind of fact it is, such as ``"residence"``."""
    contexts: tuple[str, ...] = ()
    """The conditions under which it holds; none if it always does."""
    valid_from: datetime | None = None
    """When it began to be true; None where that is not known."""
    valid_to: datetime | None = None
    """When it was true no longer, itself not included; None where no end is known."""
    recorded: datetime
    """When the memory learned of it."""
    confidence: float = 1.0
    status: Status = "active"
    by: int | None = None
    """The unit that superseded it, that it contradicts, or whose fall outdated it."""
    sources: tuple[int, ...] = ()
    """Ids of the turns that tell it."""
    supports: tuple[tuple[int, ...], ...] = ()
    """Ids of the units on which it rests. Each tuple is one justification, and needs all of its units."""
    asserted: bool = True
    """Whether something told it that rests on no other unit."""

    def __str__(self) -> str:
        return f"{self.subject} {self.relation} {self.object}"


class FactDraft(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A fact as it is given to ``memory.facts.add_many``; the fields are the arguments of ``add``."""

    subject: str
    relation: str
    object: str
    category: str | None = None
    context: str | Iterable[str] | None = None
    valid_from: datetime | date | str | None = None
    valid_to: datetime | date | str | None = None
    confidence: float = 1.0
    because: Any = ()
    """Units, by their ids or as such; or drafts that stand before this one in the same list."""
    source: Any = ()


class Contradiction(msgspec.Struct, frozen=True):
    """Two units that cannot both be true, and nothing says which is newer."""

    unit: int
    """The one that was told later; it is pending, or was superseded long ago."""
    against: int
    """The one that is active."""


class Change(msgspec.Struct, frozen=True):
    """What a rewrite made of a unit."""

    unit: int
    before: Version | None
    """None for a unit that is new."""
    after: Version


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """What a unit was from one moment to the next."""

    seq: int
    """The rewrite that made it so."""
    recorded: datetime
    status: Status
    valid_from: datetime | None
    valid_to: datetime | None
    confidence: float
    why: str
    by: int | None = None
    """The unit that is the cause, if one is."""


class Rewrite(msgspec.Struct, frozen=True, kw_only=True):
    """What one rewrite of the fact graph did."""

    seq: int
    """Its number in the journal: a value for ``as_of=`` and for ``undo``."""
    added: tuple[int, ...] = ()
    superseded: tuple[int, ...] = ()
    pending: tuple[int, ...] = ()
    outdated: tuple[int, ...] = ()
    restored: tuple[int, ...] = ()
    """Units that are active again."""
    confirmed: tuple[int, ...] = ()
    """Units that were known, and told again."""
    retracted: tuple[int, ...] = ()
    conflicts: tuple[Contradiction, ...] = ()
    changes: tuple[Change, ...] = ()
    """All of it, in the order in which it was done; no unit comes twice."""
    undoes: int | None = None
    """The rewrite that this one took back."""
    new: bool = True
    """False if nothing was written: it was known, or had been done under the same key."""
    explain: Any = None
    """Where the rewrite looked, if that was asked for."""


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Why a unit is what it is: what told it, and what that rests on, down to the turns."""

    unit: Unit
    turns: tuple[Turn, ...]
    """Those of its sources that are not forgotten."""
    because: tuple[tuple[Why, ...], ...]
    """One tuple for each justification. A unit that was shown above or before has none here."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of evidence as it stands in a context."""

    text: str
    """The line as printed, with its id, time and speaker."""
    turns: tuple[int, ...]
    at: datetime
    score: float
    truncated: bool = False
    """True if the text was cut to fit the budget."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence packed for a prompt: chronological, dated, under a token budget."""

    text: str
    tokens: int
    """``count(text)``, never more than the budget."""
    lines: tuple[Line, ...]
    left_out: int
    """Pieces of evidence that were found but did not fit."""

    def __str__(self) -> str:
        return self.text


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
    """Segments whose summary by the language model is due; `Memory.settle` makes them."""


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
