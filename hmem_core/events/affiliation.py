"""To which events turns belong, as a model says it (HiGMem, arXiv 2604.18349).

The paper asks about every turn. Ours, too: several turns in one question, and no question where the nearest
event is unambiguous.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hmem_core.effects import Program
from hmem_core.events.asking import in_parts
from hmem_core.llm.prompts import event_affiliation
from hmem_core.llm.prompts.event_affiliation import Affiliations, named
from hmem_core.llm.prompts.rendering import ShownEvent, ShownTurn

__all__ = ["Decisions", "affiliate", "clear", "nearest"]

FloatArray = npt.NDArray[np.float32]

EVENTS_OF_ONE = 5
"""Events that one turn may belong to, at most; a model that names more has not decided."""
LATEST = 2
"""Turns that stand for an event that is only about to be made."""

Decisions = dict[int, tuple[int | str, ...]]
"""The events of turns, by their ids: numbers, or names of events that are about to be made."""


def nearest(scores: FloatArray, each: int, most: int, updated: int | None) -> list[int]:
    """The events to show for a question about some turns: the nearest of each turn, ascending.

    Args:
        scores: how near each event is to each turn, of shape (turns, events); -inf for one not to be shown.
        each: events that a turn may bring.
        most: events together; the nearest ones of every turn come first.
        updated: the event that got a turn last, which is shown in any case.
    """
    chosen: dict[int, None] = {} if updated is None else {updated: None}
    order = np.argsort(-scores, axis=1, kind="stable")[:, :each]
    for rank in range(order.shape[1]):
        for turn in np.argsort(-scores[np.arange(len(scores)), order[:, rank]], kind="stable").tolist():
            event = int(order[turn, rank])
            if len(chosen) < most and np.isfinite(scores[turn, event]):
                chosen.setdefault(event)
    return sorted(chosen)


def clear(
    scores: FloatArray, likeness: FloatArray, sure: float, margin: float, far: float
) -> list[int | str] | None:
    """The events of turns that need no question, by number or, for new ones, by name; None if one turn does.

    A turn belongs to the nearest event if its score reaches `sure` and is ahead of the second's by `margin`;
    not if there is no second, since nothing tells then what a score is worth.
    A turn whose score is below `far` for all events begins a new one, which the turns after it are compared
    with, by the nearest of its turns. If one turn is less clear, a question about all of them costs no more
    than one about it alone, so that cosines decide nothing.

    Args:
        scores: how near each event is to each turn, of shape (turns, events).
        likeness: cosines between the turns, of shape (turns, turns).
    """
    decided: list[int | str] = []
    new: list[list[int]] = []
    for turn in range(len(scores)):
        begun = [max(float(likeness[turn, one]) for one in members) for members in new]
        everything = np.array([*scores[turn].tolist(), *begun, -np.inf, -np.inf])
        first, second = np.argsort(-everything, kind="stable")[:2].tolist()
        if everything[first] < far:
            new.append([turn])
            decided.append(f"new{len(new)}")
        elif everything[first] < sure or not margin <= everything[first] - everything[second] < np.inf:
            return None
        elif first < scores.shape[1]:
            decided.append(first)
        else:
            made = first - scores.shape[1]
            new[made].append(turn)
            decided.append(f"new{made + 1}")
    return decided


def affiliate(
    turns: Sequence[ShownTurn],
    events: Sequence[ShownEvent],
    updated: int | None,
    before: Sequence[ShownTurn],
    window: int,
) -> Program[Decisions]:
    """The events of each of `turns`, as a model says it; a new one of its own for a turn about which no
    reply can be used, or none of whose events was offered.

    Args:
        events: those to choose among.
        updated: the event that got a turn last.
        before: turns said just before, in order.
        window: so many turns before those that are asked about are shown with them.

    Raises:
        LLMError: nothing could be decided now.
    """
    known = [*before, *turns]
    places = {turn.id: place for place, turn in enumerate(known)}
    numbers = {event.id for event in events}
    begun: dict[str, list[ShownTurn]] = {}

    def ask(part: Sequence[ShownTurn]) -> Program[Decisions]:
        first = places[part[0].id]
        room = max(event_affiliation.EVENTS - len(events), 0)
        made = list(begun)[max(len(begun) - room, 0) :]
        shown = [*events, *(_begun(name, begun[name]) for name in made)]
        reply: Affiliations = yield event_affiliation.ask(
            part, shown, updated, known[max(first - window, 0) : first]
        )
        asked = {turn.id: turn for turn in part}
        meant: dict[int | str, int | str] = {name: name for name in (*numbers, *made)}
        found: Decisions = {}
        for one in reply.turns:
            if one.id not in asked or one.id in found:
                continue
            chosen: dict[int | str, None] = {}
            for word in map(named, one.events):
                if isinstance(word, str) and word not in meant:
                    meant[word] = fresh = f"new{len(begun) + 1}"
                    begun[fresh] = []
                if word is not None and word in meant and len(chosen) < EVENTS_OF_ONE:
                    chosen.setdefault(meant[word])
            for name in chosen:
                if isinstance(name, str):
                    begun[name].append(asked[one.id])
            found[one.id] = tuple(chosen)
        return found

    found = yield from in_parts(turns, ask)
    return {turn: chosen or (f"only{turn}",) for turn, chosen in found.items()}


def _begun(name: str, turns: Sequence[ShownTurn]) -> ShownEvent:
    return ShownEvent(name, "", tuple(_line(turn) for turn in turns[-LATEST:]))


def _line(turn: ShownTurn) -> str:
    return f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text
