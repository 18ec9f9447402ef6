"""To which events turns belong, without a language model (ours).

A turn belongs to the event nearest to its context, if that is near enough, or begins a new one. It is
compared with the events that got turns last and with those of turns that share its rarest words, so that what
is taken up after weeks is found again, and the cost of a turn does not grow with the memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.contexts import CONTEXT, context_rows, context_vectors
from hmem_core.options import EventOptions
from hmem_core.state import State
from hmem_kernels import frozen
from hmem_kernels.affiliation import affiliate

__all__ = ["Affiliated", "Coming", "decide"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

TERMS = 4
"""Of so many terms, the rarest of a turn, the latest turns are looked at."""
CATCH_UP = 1024
"""Turns that belong to no event yet find theirs with the next turns that are added, so many at a time."""


class Coming(NamedTuple):
    """A turn that is about to be added."""

    session: str | None
    index_text: str


class Affiliated(NamedTuple):
    """Turns and their events."""

    links: tuple[tuple[int, tuple[int, ...]], ...]
    """As in `TurnsLinked`."""
    compared: int
    """How many comparisons of a turn with an event that took."""


def decide(state: State, coming: Sequence[Coming], vectors: FloatArray, options: EventOptions) -> Affiliated:
    """The events of turns that are about to be added, and of some that have none yet; changes nothing.

    Args:
        vectors: of the coming turns, float32 of shape (turns, d).
    """
    links, rows = state.events.links, len(state.turns)
    waiting = np.array(sorted(links.unlinked)[:CATCH_UP], np.int32)
    before = _before(state, coming)
    made = _contexts(state, waiting, before, vectors)
    level = np.full(len(made), _level(state.tree.pairs, options), np.float32)
    level[waiting.size :] = _levels(state, vectors, options)
    local = _local(waiting, before, rows)
    known = [links.events_of(turn) if turn >= 0 else [] for turn in _stored(state, waiting, before)]
    recalled = _recalled(state, waiting, coming, options)
    order = links.recent(options.recent)
    slots = list(dict.fromkeys([*order, *(event for some in (*known, *recalled) for event in some)]))
    place = {event: slot for slot, event in enumerate(slots)}
    sums = np.zeros((len(slots) + len(made), vectors.shape[1]), np.float32)
    sums[: len(slots)] = links.sums()[slots]
    queue = np.full(options.recent, -1, np.int32)
    queue[: len(order)] = [place[event] for event in order]
    chosen = np.zeros(len(made), np.int32)
    _, compared = affiliate(
        frozen(made),
        frozen(level),
        frozen(local),
        frozen(_padded(known, place)),
        frozen(_padded(recalled, place)),
        np.float32(options.continuity),
        len(slots),
        len(order),
        queue,
        sums,
        np.zeros(len(sums), np.float32),
        chosen,
    )
    turns = [*waiting.tolist(), *range(rows, rows + len(vectors))]
    events = [
        slots[slot] if slot < len(slots) else links.count + slot - len(slots) for slot in chosen.tolist()
    ]
    return Affiliated(tuple((turn, (event,)) for turn, event in zip(turns, events, strict=True)), compared)


def _before(state: State, coming: Sequence[Coming]) -> IntArray:
    """The turn before each coming one in its session, -1 for none; coming turns are numbered on."""
    rows = len(state.turns)
    last: dict[str, int] = {}
    found = np.full(len(coming), -1, np.int32)
    for place, turn in enumerate(coming):
        if turn.session is None:
            continue
        if turn.session in last:
            found[place] = last[turn.session]
        elif (code := state.sessions.find(turn.session)) is not None:
            found[place] = state.turns.last_in(code)
        last[turn.session] = rows + place
    return found


def _contexts(state: State, waiting: IntArray, before: IntArray, vectors: FloatArray) -> FloatArray:
    """The contexts of the waiting and of the coming turns."""
    narrow, rows = state.turns.narrow, len(state.turns)
    live, previous = narrow["live"].view(), narrow["previous"].view()
    places = np.full((before.size, CONTEXT.size), -1, np.int32)
    places[:, 0] = rows + np.arange(before.size)
    for depth in range(1, CONTEXT.size):
        for row, turn in enumerate(places[:, depth - 1].tolist()):
            if turn >= 0:
                places[row, depth] = before[turn - rows] if turn >= rows else previous[turn]
    places = np.concatenate([context_rows(waiting, live, previous), places])
    return context_vectors(state.vectors.view(), places, vectors).rows


def _local(waiting: IntArray, before: IntArray, rows: int) -> IntArray:
    """The turn before each in its session, as its place among the turns to be linked; -1 if it is not."""
    found = np.full(waiting.size + before.size, -1, np.int32)
    found[waiting.size :] = np.where(before >= rows, before - rows + waiting.size, -1)
    return found


def _stored(state: State, waiting: IntArray, before: IntArray) -> list[int]:
    """The turn before each in its session, if it was added earlier; else -1."""
    previous = state.turns.narrow["previous"].view()
    rows = len(state.turns)
    return [*previous[waiting].tolist(), *(turn if turn < rows else -1 for turn in before.tolist())]


def _level(pairs: tuple[float, float, float], options: EventOptions) -> float:
    """The least cosine, from what was seen of similarities between successive turns."""
    if options.tau != "auto":
        return float(options.tau)
    count, mean, squares = pairs
    deviation = math.sqrt(max(squares, 0.0) / count) if count > 0 else 0.0
    return min(max(mean + options.spread * deviation, options.low), options.high)


def _levels(state: State, vectors: FloatArray, options: EventOptions) -> FloatArray:
    """The least cosine for each coming turn: each follows the turns before it, coming ones included."""
    count, mean, squares = state.tree.pairs
    rows = len(state.turns)
    first = state.vectors[rows - 1] if rows else np.zeros(vectors.shape[1], np.float32)
    chain = np.concatenate([first[np.newaxis], vectors]).astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", chain, chain))
    dots = np.einsum("ij,ij->i", chain[1:], chain[:-1])
    lengths = norms[1:] * norms[:-1]
    levels = np.empty(len(vectors), np.float32)
    for place, (dot, length) in enumerate(zip(dots.tolist(), lengths.tolist(), strict=True)):
        levels[place] = _level((count, mean, squares), options)
        if length > 0:  # as the tree counts it when the turn is attached
            count += 1
            off = dot / length - mean
            mean += off / count
            squares += off * (dot / length - mean)
    return levels


def _recalled(
    state: State, waiting: IntArray, coming: Sequence[Coming], options: EventOptions
) -> list[list[int]]:
    """For each turn, the events of earlier turns that share its rarest terms."""
    found: list[list[int]] = [[] for _ in range(waiting.size)]
    each = -(-options.recalled // TERMS)
    counted = state.analyzer.count_ahead([turn.index_text for turn in coming])
    hashes = np.unique(np.concatenate(counted)) if counted else np.empty(0, np.uint64)
    latest = state.postings.latest(hashes, each)
    for terms in counted:
        places = np.searchsorted(hashes, terms)
        places = places[latest.found[places] > 0]
        rarest = places[np.argsort(latest.found[places], kind="stable")[:TERMS]]
        others = latest.turns[rarest].ravel().tolist()[: options.recalled]
        events = (state.events.links.events_of(turn) for turn in others if turn >= 0)
        found.append(list(dict.fromkeys(some[0] for some in events if some)))
    return found


def _padded(lists: Sequence[Sequence[int]], place: dict[int, int]) -> IntArray:
    """Events of each turn as a rectangle of their places, -1 where a turn has fewer."""
    table = np.full((len(lists), max(map(len, lists), default=0)), -1, np.int32)
    for row, events in enumerate(lists):
        table[row, : len(events)] = [place[event] for event in events]
    return table
