"""Segments with a language model: judging places, writing summaries."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

import numpy as np

from hmem_core import times
from hmem_core.effects import Embed, Program, gather
from hmem_core.errors import LLMError
from hmem_core.journal.entries import SegmentAnnotated
from hmem_core.llm.prompts.rendering import ShownTurn
from hmem_core.messages import Draft
from hmem_core.options import SegmentOptions
from hmem_core.retrieval import reading
from hmem_core.retrieval.showing import shown
from hmem_core.segments import annotation, judging, summaries
from hmem_core.segments.walking import Children
from hmem_core.state import State, View, pack_vector
from hmem_core.store import Plan, Store

__all__ = ["catch_up", "places", "settle", "waiting"]

ROUND = 64
"""Segments that are summarised side by side."""
CATCH_UP = 8
"""Segments that `add` summarises at most, or as many as it added turns, up to `ROUND`."""

_log = logging.getLogger("hmem.llm")


# -- places ------------------------------------------------------------------------------------------


def places(
    store: Store, drafts: Sequence[Draft], options: SegmentOptions
) -> Program[tuple[int, list[int]] | None]:
    """The heights at which a model attaches these turns, and to how many turns before them.

    None if the mode asks no model, or if the model failed: the cosines decide then.
    """
    if options.compatibility == "cosine" or not drafts:
        return None
    view = store.view(tree=True)
    now = store.clock()
    turns = [
        ShownTurn(
            view.rows + place,
            times.datetime_of(now if draft.at is None else draft.at),
            draft.speaker or draft.role,
            draft.text,
        )
        for place, draft in enumerate(drafts)
    ]
    frontier, recent = _frontier(view)
    try:
        heights = yield from judging.judge(frontier, recent, turns, options.compatibility)
    except LLMError as error:
        _log.warning("the places of %d turns are decided by cosines: %s", len(turns), error)
        return None
    return view.rows, heights


def _frontier(view: View) -> tuple[list[judging.Open], list[ShownTurn]]:
    """The nodes that end with the last turn, the root first, and the latest turns."""
    if not view.rows:
        return [], []
    tree, show = view.tree, partial(shown, view)
    nodes = [int(tree.leaf[view.rows - 1])]
    while (parent := int(tree.parent[nodes[-1]])) >= 0:
        nodes.append(parent)
    opened = []
    for node in reversed(nodes):
        first = int(tree.start[node])
        text = _described(view, node) if tree.children[node] else ""
        at = times.datetime_of(view.narrow["at"][first])
        opened.append(judging.Open(int(tree.height[node]), first, at, text))
    latest = [show(row) for row in range(max(view.rows - judging.RECENT, 0), view.rows)]
    known = [turn for turn in latest if turn is not None]
    if not known:  # all forgotten: an empty turn keeps their place
        known = [ShownTurn(view.rows - 1, times.datetime_of(0), None, "")]
    return opened, known


def _described(view: View, node: int) -> str:
    """What stands for a segment: its summary, or a few of its turns."""
    if (text := view.annotations.of(node)) is not None:
        return text
    first, last = int(view.tree.start[node]), int(view.tree.end[node])
    rows = first + np.flatnonzero(view.narrow["live"][first : last + 1])
    chosen = annotation.representatives(view.vectors, view.narrow["length"], rows, judging.RECENT)
    turns = [reading.turn(view, int(row)) for row in chosen]
    return "\n".join(f"{turn.speaker or turn.role}: {turn.text}" for turn in turns if turn is not None)


# -- summaries ---------------------------------------------------------------------------------------


def waiting(store: Store, options: SegmentOptions) -> int:
    """How many segments wait for a summary."""
    return len(_due(store.view(tree=True), options))


def _due(view: View, options: SegmentOptions) -> list[int]:
    """The segments that wait for a summary, the lowest first."""
    nodes: list[int] = summaries.due(view, options.summarise_from).tolist() if options.summarise else []
    return nodes


def catch_up(store: Store, options: SegmentOptions, new: int) -> Program[int]:
    """Summarise what is due after `new` turns were added, one round of it; returns how many segments. A model
    that fails costs nothing but that: what it did not summarise stays due."""
    if options.summarise_when == "settle":
        return 0
    try:
        return (yield from _round(store, options, min(max(CATCH_UP, new), ROUND)))
    except LLMError as error:
        _log.warning("segments stay without a summary for now: %s", error)
        return 0


def settle(store: Store, options: SegmentOptions, *, halve: bool = False) -> Program[int]:
    """Summarise all that is due; returns how many segments.

    Args:
        halve: half of what is due at once where that is more than a round: of T segments log T rounds, each
            with the summaries of the one before to read, and stored as a whole.

    Raises:
        LLMError: the model failed for every segment of a round; what it did before is kept.
    """
    total = 0
    while due := len(_due(store.view(tree=True), options)):
        total += yield from _round(store, options, max(ROUND, due // 2) if halve else ROUND)
    return total


def _round(store: Store, options: SegmentOptions, most: int) -> Program[int]:
    """Summarise up to `most` segments side by side, the lowest, and store what was good."""
    view = store.view(tree=True)
    nodes = _due(view, options)[:most]
    if not nodes:
        return 0
    children, show = Children(view.tree), partial(shown, view)
    programs = [
        summaries.summarise(summaries.parts(view, children, node, show), options.summary_words)
        for node in nodes
    ]
    replies = yield from gather(programs, return_exceptions=True)
    good = [(node, text) for node, text in zip(nodes, replies, strict=True) if isinstance(text, str)]
    for reply in replies:
        if isinstance(reply, Exception) and (not good or not isinstance(reply, LLMError)):
            raise reply
    vectors = yield Embed(tuple(text for _, text in good))
    forgotten = view.rows - int(np.count_nonzero(view.narrow["live"]))

    def plan(state: State) -> Plan:
        if state.turns.forgotten != forgotten:  # a summary may speak of what is gone: make them anew later
            return Plan([])
        return Plan(
            [
                SegmentAnnotated(
                    recorded=store.clock(),
                    node=node,
                    first=int(view.tree.start[node]),
                    last=int(view.tree.end[node]),
                    text=text,
                    vector=pack_vector(vector),
                )
                for (node, text), vector in zip(good, vectors, strict=True)
            ]
        )

    store.commit(plan)
    return len(good)
