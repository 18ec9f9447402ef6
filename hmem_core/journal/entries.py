"""Journal entries: everything that ever changes a memory, as typed values.

An entry holds decisions, never questions: applying it needs no model, no clock and no comparison of
floats. It is encoded as MessagePack, tagged with its type's name.

Each entry also knows how to forget: `erase` gives what must remain of it once some turns are gone, so
that replaying the erased journal ends in the same arrays as forgetting did live.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Protocol

import msgspec

from hmem_core.errors import Damaged
from hmem_core.records import EncoderIdentity, event_index_text, index_text

__all__ = [
    "ACTIVE",
    "FORGOTTEN",
    "OPEN_END",
    "OPEN_START",
    "OUTDATED",
    "PENDING",
    "RETRACTED",
    "SCHEMA",
    "SUPERSEDED",
    "AnalysisErased",
    "AnnotationErased",
    "DescriptionErased",
    "Entry",
    "EventDescribed",
    "FactName",
    "FactsRewritten",
    "ForgottenFacts",
    "MemoryCreated",
    "Name",
    "Reembedded",
    "SegmentAnnotated",
    "Telling",
    "TimelineItem",
    "TurnAdded",
    "TurnAnalysed",
    "TurnErased",
    "TurnsForgotten",
    "TurnsLinked",
    "TurnsRead",
    "UnitAdded",
    "UnitChange",
    "decode",
    "encode",
    "erase",
    "rests_on",
]

SCHEMA = 1
"""Version of the entry types; a journal written with a higher one is refused."""


class _Base(msgspec.Struct, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    recorded: int
    """When the entry was written: UTC microseconds since 1970 (transaction time)."""


class MemoryCreated(_Base, frozen=True, kw_only=True):
    """Always the first entry."""

    schema: int
    language: str
    """How words in Latin script are stemmed."""
    memory: str
    """Random identity of the memory (hexadecimal): ties checkpoints to their journal."""
    encoder: EncoderIdentity


class Name(msgspec.Struct, frozen=True, array_like=True):
    """A name and its place in a table of names. The place is decided by the writer, so that forgetting the
    turn that first used a name does not renumber the others."""

    code: int
    text: str


class TurnAdded(_Base, frozen=True, kw_only=True):
    """One turn; its id is the number of turns before it."""

    id: int
    at: int
    """The turn's own time: UTC microseconds since 1970."""
    text: str
    role: Name
    speaker: Name | None = None
    session: Name | None = None
    key: str | None = None
    part: int = 0
    """Place in the list of messages that was added under `key`."""
    metadata: dict[str, Any] = {}
    vector: bytes
    """The embedding, little-endian float16."""
    states: bytes | None = None
    """The states of its tokens, as `columns.states` packs them; None where there are none."""
    height: int
    """Where the turn was attached to the segment tree: 0 for the first turn, else 1 to one above the root."""

    @property
    def index_text(self) -> str:
        """What is embedded and counted: the text, with who said it."""
        return index_text(self.text, None if self.speaker is None else self.speaker.text)


class TurnErased(_Base, frozen=True, kw_only=True):
    """What a forgotten turn leaves behind in place of its `TurnAdded`: its number and its place in the tree,
    nothing it said."""

    id: int
    height: int


OPEN_START, OPEN_END = -(2**63), 2**63 - 1
"""Where an interval of valid time has no known start or end."""

FORGOTTEN, ACTIVE, SUPERSEDED, PENDING, OUTDATED, RETRACTED = range(6)
"""Statuses of units of the fact graph."""


class FactName(msgspec.Struct, frozen=True, array_like=True):
    """A name in the fact graph and its code, decided by the writer; with no text, one that is forgotten."""

    code: int
    text: str | None = None
    vector: bytes = b""
    """The embedding of the text, little-endian float16."""


class UnitAdded(msgspec.Struct, frozen=True, array_like=True):
    """A unit that is new; its id is the number of units before it. Slots are codes of names, -1 for none."""

    id: int
    subject: int
    relation: int
    object: int
    category: int = -1
    contexts: tuple[int, ...] = ()


class Telling(msgspec.Struct, frozen=True, array_like=True):
    """A unit was told, for the first time or again; its id is the number of tellings before it."""

    id: int
    unit: int
    """-1 once forgotten."""
    confidence: float
    valid_from: int
    valid_to: int
    sources: tuple[int, ...] = ()
    """Turns that say so; -1 for one that is forgotten."""
    because: tuple[int, ...] = ()
    """Units on all of which this telling rests; with none, it stands by itself."""


class UnitChange(msgspec.Struct, frozen=True, array_like=True):
    """What a unit is from here on: all that ever changes of one."""

    unit: int
    status: int
    valid_from: int
    valid_to: int
    confidence: float
    why: int
    """Place in `records.REASONS`."""
    by: int = -1
    """The unit that is the cause, if one is."""


class FactsRewritten(_Base, frozen=True, kw_only=True):
    """One rewrite of the fact graph, whole. Applied in the order of the fields."""

    names: tuple[FactName, ...] = ()
    aliases: tuple[tuple[int, int], ...] = ()
    """Pairs (code, code of the name that takes its place)."""
    policies: tuple[tuple[int, int], ...] = ()
    """Pairs (code of a relation, place in `records.POLICIES`)."""
    units: tuple[UnitAdded, ...] = ()
    tellings: tuple[Telling, ...] = ()
    withdrawn: tuple[int, ...] = ()
    """Tellings that count no longer."""
    revived: tuple[int, ...] = ()
    """Tellings that count again."""
    changes: tuple[UnitChange, ...] = ()
    undoes: int = 0
    """Number of the rewrite that this one takes back."""
    key: str | None = None
    part: int = 0
    """Place in the list of facts that was added under `key`."""
    reason: str | None = None
    """Why a unit was retracted, in the caller's words."""


class TurnsForgotten(_Base, frozen=True, kw_only=True):
    """Turns that no read returns any more, and with them the facts that nothing else told.

    Also written, without turns, when facts are forgotten by themselves."""

    ids: tuple[int, ...]
    units: tuple[int, ...] = ()
    """Of the fact graph, those that are forgotten."""
    changes: tuple[UnitChange, ...] = ()
    """What becomes of the units that are left."""
    readings: tuple[int, ...] = ()
    """Places of the `TurnsRead` that were shown something of it; what they told goes too."""


class TurnsRead(_Base, frozen=True, kw_only=True):
    """A model read turns for facts, or compared facts. Holds numbers alone, so forgetting leaves it as it is;
    its place is the number of `TurnsRead` before it."""

    turns: tuple[int, ...] = ()
    """Those whose facts are told with this."""
    read: tuple[int, ...] = ()
    """All turns that were shown for it, and those that the compared facts rest on."""
    taken: tuple[int, ...] = ()
    """Units that were shown for it, and of which it holds something."""
    tellings: tuple[int, ...] = ()
    """What was told by it."""
    compared: tuple[tuple[int, int], ...] = ()
    """Pairs (pending unit, the one that it contradicts)."""


class SegmentAnnotated(_Base, frozen=True, kw_only=True):
    """A model summarised a segment."""

    node: int
    """Of the segment tree."""
    first: int
    last: int
    """The turns that were read for it; the segment may have grown since."""
    text: str
    vector: bytes
    """The embedding of the text, little-endian float16."""


class AnnotationErased(_Base, frozen=True, kw_only=True):
    """What is left of an annotation for which a turn was read that is forgotten."""


class TurnsLinked(_Base, frozen=True, kw_only=True):
    """Turns belong to events. Holds numbers alone, so forgetting leaves it as it is."""

    links: tuple[tuple[int, tuple[int, ...]], ...]
    """(turn, its events). An event that has the number of events so far begins with it."""


class TurnAnalysed(_Base, frozen=True, kw_only=True):
    """What a model says of a turn."""

    turn: int
    keywords: tuple[str, ...] = ()
    context: str = ""
    """What the turn is about, in a sentence."""
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    read: tuple[int, ...]
    """All turns that were shown for it."""


class AnalysisErased(_Base, frozen=True, kw_only=True):
    """What is left of a `TurnAnalysed` for which a turn was read that is forgotten."""


class TimelineItem(msgspec.Struct, frozen=True, array_like=True):
    """A fact of an event, as a model wrote it."""

    turn: int
    """The turn that says so."""
    time: str | None
    """When it was, as the model put it; None: at the time of the turn."""
    fact: str


class EventDescribed(_Base, frozen=True, kw_only=True):
    """A model described an event. Summary, keywords, tags and entities take the place of those before; a
    description without a summary adds to the timeline alone."""

    event: int
    summary: str | None = None
    keywords: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    timeline: tuple[TimelineItem, ...] = ()
    """What is new in it."""
    read: tuple[int, ...]
    """All turns that were shown for it, and those that what was shown rested on."""
    vector: bytes | None = None
    """With a summary: the embedding of `index_text`, little-endian float16."""

    @property
    def index_text(self) -> str:
        """What is embedded of an event: keywords, tags and summary (HiGMem, arXiv 2604.18349)."""
        return event_index_text(self.keywords, self.tags, self.summary or "")


class DescriptionErased(_Base, frozen=True, kw_only=True):
    """What is left of an `EventDescribed` for which a turn was read that is forgotten."""

    vector: bool
    """Whether it had a vector."""


class Reembedded(_Base, frozen=True, kw_only=True):
    """Every vector was made anew by `encoder`; the vectors are in the rewritten entries of the turns."""

    encoder: EncoderIdentity


Entry = (
    MemoryCreated
    | TurnAdded
    | TurnErased
    | TurnsForgotten
    | SegmentAnnotated
    | AnnotationErased
    | TurnsLinked
    | TurnAnalysed
    | AnalysisErased
    | EventDescribed
    | DescriptionErased
    | FactsRewritten
    | TurnsRead
    | Reembedded
)

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Entry] = msgspec.msgpack.Decoder(Entry)


def encode(entry: Entry) -> bytes:
    """`entry` as MessagePack."""
    return _encoder.encode(entry)


def decode(body: bytes) -> Entry:
    """The entry that `encode` wrote.

    Raises:
        Damaged: `body` is not an entry of this schema.
    """
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged(f"a journal entry cannot be decoded: {error}") from error


def erase(entry: Entry, forgotten: Set[int], facts: ForgottenFacts | None = None) -> Entry:
    """What must remain of `entry` once the turns `forgotten`, and with them some facts, are gone; `entry`
    itself if it names none."""
    if isinstance(entry, TurnAdded) and entry.id in forgotten:
        return TurnErased(recorded=entry.recorded, id=entry.id, height=entry.height)
    if isinstance(entry, SegmentAnnotated) and any(entry.first <= turn <= entry.last for turn in forgotten):
        return AnnotationErased(recorded=entry.recorded)
    if isinstance(entry, TurnAnalysed) and not forgotten.isdisjoint(rests_on(entry)):
        return AnalysisErased(recorded=entry.recorded)
    if isinstance(entry, EventDescribed) and not forgotten.isdisjoint(rests_on(entry)):
        return DescriptionErased(recorded=entry.recorded, vector=entry.vector is not None)
    if facts is not None and isinstance(entry, FactsRewritten):
        return _erase_rewrite(entry, forgotten, facts)
    if facts is not None and isinstance(entry, TurnsForgotten):
        changes = tuple(_erase_change(change, facts.units) for change in entry.changes)
        return msgspec.structs.replace(entry, changes=changes)
    return entry


def rests_on(entry: TurnAnalysed | EventDescribed) -> set[int]:
    """The turns whose forgetting erases what the model wrote."""
    named = {entry.turn} if isinstance(entry, TurnAnalysed) else {item.turn for item in entry.timeline}
    return named | set(entry.read)


class ForgottenFacts(Protocol):
    """What is gone of the fact graph."""

    @property
    def units(self) -> Set[int]: ...
    @property
    def tellings(self) -> Set[int]: ...
    @property
    def names(self) -> Set[int]: ...


def _erase_rewrite(entry: FactsRewritten, forgotten: Set[int], facts: ForgottenFacts) -> FactsRewritten:
    speaks = any(change.unit in facts.units for change in entry.changes)
    speaks |= any(telling.id in facts.tellings for telling in entry.tellings)
    return msgspec.structs.replace(
        entry,
        names=tuple(FactName(name.code) if name.code in facts.names else name for name in entry.names),
        units=tuple(
            UnitAdded(unit.id, -1, -1, -1, -1, (-1,) * len(unit.contexts)) if unit.id in facts.units else unit
            for unit in entry.units
        ),
        tellings=tuple(_erase_telling(telling, forgotten, facts) for telling in entry.tellings),
        changes=tuple(_erase_change(change, facts.units) for change in entry.changes),
        key=None if speaks else entry.key,
        part=0 if speaks else entry.part,
        reason=None if speaks else entry.reason,
    )


def _erase_telling(telling: Telling, forgotten: Set[int], facts: ForgottenFacts) -> Telling:
    if telling.id in facts.tellings:
        nothing = (-1,) * len(telling.sources), (-1,) * len(telling.because)
        return Telling(telling.id, -1, 0.0, OPEN_START, OPEN_END, *nothing)
    sources = tuple(-1 if turn in forgotten else turn for turn in telling.sources)
    return msgspec.structs.replace(telling, sources=sources)


def _erase_change(change: UnitChange, units: Set[int]) -> UnitChange:
    if change.unit in units:
        return UnitChange(change.unit, FORGOTTEN, OPEN_START, OPEN_END, 0.0, 0)
    if change.by in units:
        end = OPEN_END if change.status == SUPERSEDED else change.valid_to
        return msgspec.structs.replace(change, valid_to=end, by=-1)
    return change
