"""The changes a memory makes: planning the journal entries of adding, forgetting and re-embedding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from hmem_core.columns.states import pack_states, words_of
from hmem_core.columns.terms import Analyzer
from hmem_core.effects import Embed, Embedded, Program
from hmem_core.errors import InvalidInput, TurnNotFound
from hmem_core.events import construction
from hmem_core.factchanges import lost
from hmem_core.journal.entries import (
    Entry,
    EventDescribed,
    FactsRewritten,
    MemoryCreated,
    Reembedded,
    SegmentAnnotated,
    TurnAdded,
    TurnsForgotten,
    TurnsLinked,
    erase,
)
from hmem_core.messages import Draft
from hmem_core.options import EventOptions, SegmentOptions
from hmem_core.records import Added, Forgotten, Skipped, index_text
from hmem_core.segments.construction import decide
from hmem_core.settling import places
from hmem_core.state import State, pack_vector, unpack_vector
from hmem_core.store import Plan, Store

__all__ = ["forget_turns", "reembed", "write_turns"]

FloatArray = npt.NDArray[np.float32]

_BATCH = 256
"""Texts embedded at once where many are, so that the states of few are held in full (some 13 MB)."""


class _Made(NamedTuple):
    """What an encoder made of one text, as the journal holds it."""

    vector: bytes
    states: bytes | None


Place = tuple[int, int]
"""An entry of the journal; and of the names in it, the code of one, 0 for another entry's only vector."""


# -- adding ------------------------------------------------------------------------------------------


def write_turns(
    store: Store,
    drafts: Sequence[Draft],
    skipped: tuple[Skipped, ...],
    segments: SegmentOptions,
    events: EventOptions,
    states: bool,
) -> Program[Added]:
    """Embed the drafts that are not known by their key, and append them in one piece.

    Args:
        states: keep the states of their tokens too.
    """
    known = _known(store, drafts)
    fresh = [draft for draft in _distinct(drafts) if (draft.key, draft.part) not in known]
    packed = yield from _embed(store, fresh, states)
    judged = yield from places(store, fresh, segments)
    while True:
        outcome = _append(store, drafts, packed, skipped, segments, events, fresh, judged)
        if isinstance(outcome, Added):
            return outcome
        # Another process has forgotten a turn that was known, or has added turns: what is missing is
        # embedded, and the places, which rest on the turns before, are judged anew.
        missing = [draft for draft in outcome if id(draft) not in packed]
        if missing:
            packed |= yield from _embed(store, missing, states)
        fresh = outcome
        judged = yield from places(store, fresh, segments)


def _embed(store: Store, drafts: Sequence[Draft], states: bool) -> Program[dict[int, _Made]]:
    """What the encoder makes of each draft, by its `id`."""
    packed: dict[int, _Made] = {}
    size = _BATCH if states else max(len(drafts), 1)
    with store.reading() as state:
        analyzer = state.analyzer
    for start in range(0, len(drafts), size):
        batch = drafts[start : start + size]
        reply: FloatArray | Embedded = yield Embed(tuple(draft.index_text for draft in batch), states)
        packed |= zip(map(id, batch), _pack(reply, analyzer), strict=True)
    return packed


def _pack(reply: FloatArray | Embedded, analyzer: Analyzer) -> Iterator[_Made]:
    """The reply to an `Embed`, text by text."""
    if not isinstance(reply, Embedded):
        reply = Embedded(reply, None)
    words = words_of(reply.vectors.shape[1])
    for row, vector in enumerate(reply.vectors):
        packed = None
        if reply.states is not None:
            vectors, tokens = reply.states[row]
            content = np.fromiter(map(analyzer.says, tokens), np.bool_, len(tokens))
            packed = pack_states(vectors, words, content)
        yield _Made(pack_vector(vector), packed)


def _distinct(drafts: Sequence[Draft]) -> Iterator[Draft]:
    """Of drafts with the same key and part, the first."""
    seen = set()
    for draft in drafts:
        if draft.key is not None:
            if (draft.key, draft.part) in seen:
                continue
            seen.add((draft.key, draft.part))
        yield draft


def _known(store: Store, drafts: Sequence[Draft]) -> set[tuple[str | None, int]]:
    keys = {draft.key for draft in drafts if draft.key is not None}
    if not keys:
        return set()
    with store.reading() as state:
        return {(key, part) for key in keys for part in state.turns.parts(key)}


def _append(
    store: Store,
    drafts: Sequence[Draft],
    packed: dict[int, _Made],
    skipped: tuple[Skipped, ...],
    segments: SegmentOptions,
    events: EventOptions,
    fresh: Sequence[Draft],
    judged: tuple[int, list[int]] | None,
) -> Added | list[Draft]:
    """Append what is new; or, if that needs vectors that were not made yet, or places that were judged for
    another state, return the drafts that are new.

    Args:
        judged: how many turns there were, and the heights at which a model attaches the `fresh` drafts
            after them.
    """
    ids: list[int] = []
    new: list[int] = []
    chosen: list[Draft] = []
    now = store.clock()

    unready = False

    def plan(state: State) -> Plan:
        nonlocal unready
        ids.clear()
        new.clear()
        chosen.clear()
        names = state.name_plans()
        parts = {key: state.turns.parts(key) for key in {draft.key for draft in drafts} if key is not None}
        for draft in drafts:
            place = parts[draft.key] if draft.key is not None else {}
            if (earlier := place.get(draft.part)) is not None:
                ids.append(earlier)
                continue
            turn = len(state.turns) + len(chosen)
            if draft.key is not None:
                place[draft.part] = turn
            ids.append(turn)
            new.append(turn)
            chosen.append(draft)
        embedded = all(id(draft) in packed for draft in chosen)
        placed = judged is None or (
            judged[0] == len(state.turns) and list(map(id, chosen)) == list(map(id, fresh))
        )
        unready = not (embedded and placed)
        if unready or not chosen:
            return Plan([])
        vectors = np.stack([unpack_vector(packed[id(draft)].vector) for draft in chosen])
        heights = decide(state, vectors, segments, [] if judged is None else judged[1]).heights
        entries: list[Entry] = [
            TurnAdded(
                recorded=now,
                id=turn,
                at=now if draft.at is None else draft.at,
                text=draft.text,
                role=names.role(draft.role),
                speaker=None if draft.speaker is None else names.speaker(draft.speaker),
                session=None if draft.session is None else names.session(draft.session),
                key=draft.key,
                part=draft.part,
                metadata=draft.metadata,
                vector=packed[id(draft)].vector,
                states=packed[id(draft)].states,
                height=int(height),
            )
            for turn, draft, height in zip(new, chosen, heights, strict=True)
        ]
        if events.affiliation == "cosine":
            coming = [construction.Coming(draft.session, draft.index_text) for draft in chosen]
            links = construction.decide(state, coming, vectors, events).links
            entries.append(TurnsLinked(recorded=now, links=links))
        return Plan(entries)

    seq = store.commit(plan)
    if unready:
        return chosen
    return Added(ids=tuple(ids), new=tuple(new), skipped=skipped, seq=seq)


# -- forgetting --------------------------------------------------------------------------------------


def forget_turns(
    store: Store,
    ids: int | Iterable[int] | None,
    key: str | None,
    session: str | None,
    before: int | None,
    cap: float,
) -> Forgotten:
    """Forget the turns to which all the given conditions apply, and the facts that nothing else told.

    Args:
        cap: see `FactOptions`.
    """
    wanted = _ids(ids)
    if wanted is None and key is None and session is None and before is None:
        raise InvalidInput("say what to forget: ids, key=, session= or before=")
    chosen: list[int] = []
    already: list[int] = []

    def plan(state: State) -> Plan:
        rows = _chosen(state, wanted, key, session, before)
        live = state.turns.narrow["live"].view()
        chosen[:] = [row for row in rows if live[row]]
        already[:] = [row for row in wanted or () if not live[row]]
        if not chosen:
            return Plan([])
        forgotten = frozenset(chosen)
        facts, changes, readings = lost(state, store, chosen, (), cap)
        seqs = {int(state.turns.narrow["seq"][row]) for row in chosen} | {*facts.seqs}
        seqs |= set(state.annotations.narrow["seq"].view()[state.annotations.resting_on(chosen)].tolist())
        for notes in state.events.notes.values():
            seqs |= set(notes.narrow["seq"].view()[notes.resting_on(chosen)].tolist())
        rewrite = {seq: erase(entry, forgotten, facts) for seq, entry in store.journal.fetch(sorted(seqs))}
        entry = TurnsForgotten(recorded=store.clock(), ids=tuple(chosen), changes=changes, readings=readings)
        return Plan([entry], rewrite)

    seq = store.commit(plan)
    return Forgotten(ids=tuple(chosen), already=tuple(already), seq=seq)


def _ids(ids: int | Iterable[int] | None) -> list[int] | None:
    if ids is None:
        return None
    if isinstance(ids, str) or not isinstance(ids, (int, np.integer, Iterable)):
        raise InvalidInput(f"ids={ids!r} are not turn ids; ids are whole numbers")
    numbers = [ids] if isinstance(ids, (int, np.integer)) else list(ids)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise InvalidInput(f"{number!r} is not a turn id; ids are whole numbers")
    return sorted({int(number) for number in numbers})


def _chosen(
    state: State, ids: list[int] | None, key: str | None, session: str | None, before: int | None
) -> list[int]:
    rows = len(state.turns)
    narrow = state.turns.narrow
    allowed = narrow["live"].view().astype(np.bool_)
    if ids is not None:
        unknown = [number for number in ids if not 0 <= number < rows]
        if unknown:
            raise TurnNotFound(
                f"there is no turn {unknown[0]}; ids go from 0 to {rows - 1}; nothing was forgotten"
            )
        allowed &= np.isin(np.arange(rows), ids)
    if key is not None:
        found = state.turns.index.rows(key)
        if not found:
            raise TurnNotFound(f"no turn has the key {key!r}; it was never stored, or was forgotten already")
        allowed &= np.isin(np.arange(rows), found)
    if session is not None:
        code = state.sessions.find(session)
        if code is None:
            return []
        allowed &= narrow["session"].view() == code
    if before is not None:
        allowed &= narrow["at"].view() < before
    return [int(row) for row in np.flatnonzero(allowed)]


# -- changing the encoder ----------------------------------------------------------------------------


def reembed(store: Store, embed: Callable[[Sequence[str]], FloatArray | Embedded]) -> None:
    """Make every vector anew with the store's encoder, if another made them, and the states of tokens if
    `embed` gives them.

    The entries are rewritten in place, so that vectors do not pile up. What other processes add meanwhile is
    embedded before the change is made.
    """
    made: dict[Place, _Made] = {}

    def plan(state: State) -> Plan:
        places = [place for place, _ in _embedded(state)]
        if state.encoder == store.encoder or not made.keys() >= set(places):
            return Plan([])
        return _reembedded(store, places, made)

    while True:
        with store.reading() as state:
            if state.encoder == store.encoder:
                return
            texts = {place: text for place, text in _embedded(state) if place not in made}
            analyzer = state.analyzer
        for batch in _batches(list(texts), _BATCH):
            made |= zip(batch, _pack(embed([texts[place] for place in batch]), analyzer), strict=True)
        store.commit(plan)


def _embedded(state: State) -> Iterator[tuple[Place, str]]:
    """The places of the vectors in the journal, and what each is of."""
    view = state.view()
    for row in np.flatnonzero(view.narrow["live"]).tolist():
        speaker = view.speakers.text(int(view.narrow["speaker"][row]))
        yield (int(view.narrow["seq"][row]), 0), index_text(view.text[row], speaker)
    for row, seq in enumerate(state.annotations.narrow["seq"].view().tolist()):
        if seq:
            yield (seq, 0), state.annotations.text[row]
    for seq, text in state.events.embedded():
        yield (seq, 0), text
    for code in range(len(state.facts.names)):
        if (name := state.facts.names[code]) is not None:
            yield (int(state.facts.names.narrow["seq"][code]), code), name


def _batches(items: list[Place], size: int) -> Iterator[list[Place]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _reembedded(store: Store, places: list[Place], made: dict[Place, _Made]) -> Plan:
    created = store.journal.fetch([1])[0].entry
    assert isinstance(created, MemoryCreated)
    rewrite: dict[int, Entry] = {1: msgspec.structs.replace(created, encoder=store.encoder)}
    for seq, entry in store.journal.fetch(sorted({seq for seq, _ in places})):
        if isinstance(entry, FactsRewritten):
            names = tuple(
                msgspec.structs.replace(name, vector=made[place].vector if place in made else b"")
                for name, place in ((name, (seq, name.code)) for name in entry.names)
            )
            rewrite[seq] = msgspec.structs.replace(entry, names=names)
        else:
            assert isinstance(entry, (TurnAdded, SegmentAnnotated, EventDescribed))
            states = {"states": made[seq, 0].states} if isinstance(entry, TurnAdded) else {}
            rewrite[seq] = msgspec.structs.replace(entry, vector=made[seq, 0].vector, **states)
    return Plan([Reembedded(recorded=store.clock(), encoder=store.encoder)], rewrite)
