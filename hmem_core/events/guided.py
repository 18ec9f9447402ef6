"""Guided retrieval: a model says which turns are worth reading (HiGMem, arXiv 2604.18349).

Programs over small records. What vectors found is given to them: turns, and events with their turns. A
model is asked which turns of the events are worth reading (*prediction*) and which of all candidates help
(*filter*).

A question that gets no usable reply costs only what it could have said: an event adds nothing, a part of
the candidates is kept unjudged. Once all questions of a stage failed, no later stage asks, so that a model
that is down costs one wait; what is left is what vectors found.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from hmem_core.effects import Ask, Program, together
from hmem_core.errors import LLMError, LLMMissing
from hmem_core.llm.prompts import question_keywords, turn_filter, turn_prediction
from hmem_core.llm.prompts.rendering import ShownTurn
from hmem_core.llm.prompts.turn_prediction import Opened
from hmem_core.options import GuidedOptions
from hmem_core.records import GuidedStage

__all__ = ["Account", "Material", "Selected", "search_text", "select"]

_log = logging.getLogger("hmem.llm")


class Account:
    """What was asked so far, and whether asking still makes sense."""

    def __init__(self) -> None:
        self.asks = 0
        self.failed = 0
        self.answered = False
        """Some question got a usable reply."""
        self.down = False
        """All questions of some stage failed."""

    def replies(self, stage: str, asks: Sequence[Ask]) -> Program[list[Any]]:
        """The replies to independent questions, in order; None for one that got none that can be used.

        Raises:
            LLMMissing: there is no model.
        """
        self.asks, self.failed = len(asks), 0
        if not asks:
            return []
        replies = yield from together(asks)
        problem: Exception | None = None
        for reply in replies:
            if isinstance(reply, Exception):
                if not isinstance(reply, LLMError) or isinstance(reply, LLMMissing):
                    raise reply
                problem = reply
                self.failed += 1
        self.answered |= self.failed < len(asks)
        if problem is not None:
            self.down = self.failed == len(asks)
            then = "the search goes on without the model" if self.down else "the search goes on without them"
            _log.warning(
                "guided search, %s: %d of %d questions failed, %s: %s",
                stage,
                self.failed,
                len(asks),
                then,
                problem,
            )
        return [None if isinstance(reply, Exception) else reply for reply in replies]

    def stage(self, name: str, turns: Sequence[int]) -> GuidedStage:
        """What the stage that asked last came to."""
        return GuidedStage(name=name, turns=tuple(turns), asks=self.asks, failed=self.failed)


class Material(NamedTuple):
    """What vectors found for a question."""

    turns: Sequence[ShownTurn]
    """The best turns, best first."""
    events: Sequence[Opened]
    """The best events, best first, each with turns that may be read."""
    worth: dict[int, float]
    """How well each of all these turns ranks by itself."""


class Selected(NamedTuple):
    """What became of it."""

    kept: tuple[int, ...]
    """The turns to read, in the order of their times; empty only if there were none to choose from."""
    predicted: frozenset[int]
    """Turns that the model named in an event."""
    judged: bool
    """The filter chose `kept`. False: it was off, or failed for all, or kept nothing, so that the best turns
    stand as vectors found them."""
    stages: tuple[GuidedStage, ...]


def search_text(question: str, account: Account, options: GuidedOptions) -> Program[str]:
    """What is searched for: the question, its keywords by a model, or both.

    Raises:
        LLMMissing: there is no model.
    """
    account.asks = account.failed = 0
    if options.query == "question":
        return question
    (reply,) = yield from account.replies("keywords", [question_keywords.ask(question)])
    keywords = ", ".join(question_keywords.words(reply)) if reply is not None else ""
    if not keywords:
        return question
    return keywords if options.query == "keywords" else f"{question}\n{keywords}"


def select(question: str, found: Material, account: Account, options: GuidedOptions) -> Program[Selected]:
    """Choose among what was found.

    Raises:
        LLMMissing: there is no model.
    """
    semantic = [turn.id for turn in found.turns]
    shown = {turn.id: turn for event in found.events for turn in event.turns}
    shown |= {turn.id: turn for turn in found.turns}
    # What keywords cost is a stage of its own; the vectors themselves ask nothing.
    stages = [GuidedStage(name="vectors", turns=tuple(semantic))]
    named = yield from _predict(question, found, account, options)
    predicted = sorted(named, key=lambda turn: (-found.worth[turn], turn))
    candidates = list(dict.fromkeys([*semantic, *predicted]))[: max(options.candidates, len(semantic))]
    stages.append(account.stage("prediction", candidates))
    chronological = sorted((shown[turn] for turn in candidates), key=lambda turn: (turn.at, turn.id))
    kept, judged = yield from _filter(question, chronological, account, options)
    if not kept:  # never empty: the best that vectors found
        kept = [turn.id for turn in chronological if turn.id in set(semantic)]
    stages.append(account.stage("filter", kept))
    return Selected(tuple(kept), frozenset(named), judged, tuple(stages))


def _predict(question: str, found: Material, account: Account, options: GuidedOptions) -> Program[set[int]]:
    """The turns of events that are worth reading."""
    account.asks = account.failed = 0
    if not options.events or account.down:
        return set()
    if not options.prediction:
        return {turn.id for event in found.events for turn in event.turns}
    known = set() if options.ask_known else {turn.id for turn in found.turns}
    # Reading an event whose turns are all candidates already could add nothing.
    events = [event for event in found.events if any(turn.id not in known for turn in event.turns)]
    groups = _grouped(events, options.together)
    asks = [turn_prediction.ask(question, group) for group in groups]
    replies = yield from account.replies("prediction", asks)
    return {
        turn
        for group, reply in zip(groups, replies, strict=True)
        if reply is not None
        for turn in turn_prediction.named(reply, group)
    }


def _grouped(events: Sequence[Opened], most: int) -> list[list[Opened]]:
    """Events, cut into runs that show `most` turns together at most, or are of one event."""
    groups: list[list[Opened]] = []
    room = 0
    for event in events:
        if len(event.turns) > room:
            groups.append([])
            room = most
        groups[-1].append(event)
        room -= len(event.turns)
    return groups


def _filter(
    question: str, candidates: Sequence[ShownTurn], account: Account, options: GuidedOptions
) -> Program[tuple[list[int], bool]]:
    """Those of `candidates` that help, and whether that is the filter's word."""
    account.asks = account.failed = 0
    everything = [turn.id for turn in candidates]
    if not options.filter or account.down:
        return everything, False
    chunks = [candidates[start : start + options.chunk] for start in range(0, len(candidates), options.chunk)]
    replies = yield from account.replies("filter", [turn_filter.ask(question, chunk) for chunk in chunks])
    kept = [
        turn
        for chunk, reply in zip(chunks, replies, strict=True)
        for turn in ([one.id for one in chunk] if reply is None else turn_filter.named(reply, chunk))
    ]
    return kept, bool(kept) and not account.down
