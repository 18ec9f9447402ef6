"""Where turns are attached to the tree: the model modes of SegTreeMem (arXiv 2606.04555).

A model is asked which of the segments on the frontier a turn belongs to: one question for each of them
(``pointwise``) or one for all (``batch``). What it says is a height, and stands in the journal.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Literal, NamedTuple

from hmem_core.effects import Program, gather
from hmem_core.llm.prompts import compatibility_batch, compatibility_pointwise
from hmem_core.llm.prompts.compatibility_batch import Place
from hmem_core.llm.prompts.compatibility_pointwise import Compatible
from hmem_core.llm.prompts.rendering import ShownSegment, ShownTurn

__all__ = ["Open", "judge"]

RECENT = 3
"""Of a segment, so many of its latest turns are shown beside what stands for it."""


class Open(NamedTuple):
    """A node of the frontier: it ends with the last turn."""

    height: int
    first: int
    """Its first turn."""
    at: dt.datetime
    """When that was said."""
    text: str
    """What stands for the turns that it had when judging began; empty for a leaf, which is its own turn."""


def judge(
    frontier: Sequence[Open],
    recent: Sequence[ShownTurn],
    turns: Sequence[ShownTurn],
    mode: Literal["pointwise", "batch"],
) -> Program[list[int]]:
    """The heights at which `turns` are attached, one after the other.

    Each question depends on the answer before it, so this takes as many rounds as there are turns.

    Args:
        frontier: the stored nodes of the frontier, the root first, the last leaf last.
        recent: the latest turns that are in the tree, in order; the last one at least, if there are any.
        turns: those to attach, in order, with the ids they will have.
    """
    stack, known = list(frontier), list(recent)
    heights: list[int] = []
    for turn in turns:
        if not stack:
            height = 0
        else:
            candidates = _candidates(stack, known)
            place = (yield from _ask(turn, candidates, mode)) if candidates else None
            height = stack[0].height + 1 if place is None else place
        heights.append(height)
        _attach(stack, turn, height, known)
        known = [*known[-RECENT:], turn]
    return heights


def _candidates(stack: Sequence[Open], known: Sequence[ShownTurn]) -> list[ShownSegment]:
    """The segments a turn may belong to, the narrowest first, each with the lowest height that means it.

    The heights between two stored nodes all mean the lower one, so one question stands for them.
    """
    shown = []
    for place in range(len(stack) - 1, -1, -1):
        node = stack[place]
        above = stack[place - 1].height if place else node.height + 1
        height = max(node.height, 1)
        if height >= above:  # nothing lies between the leaf and the segment above it
            continue
        shown.append(ShownSegment(height, node.at, known[-1].at, _text(node, known)))
    return shown


def _text(node: Open, known: Sequence[ShownTurn]) -> str:
    latest = [turn for turn in known[-RECENT:] if turn.id >= node.first]
    return "\n".join(filter(None, [node.text, *(_line(turn) for turn in latest)]))


def _line(turn: ShownTurn) -> str:
    return f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text


def _ask(
    turn: ShownTurn, candidates: Sequence[ShownSegment], mode: Literal["pointwise", "batch"]
) -> Program[int | None]:
    """The lowest height that the model finds compatible; None for none, or for one that was not offered."""
    if mode == "batch":
        place: Place = yield compatibility_batch.ask(turn, candidates)
        offered = {segment.height for segment in compatibility_batch.shown(candidates)}
        return place.height if place.height in offered else None
    verdicts: list[Compatible] = yield from gather(_verdict(turn, segment) for segment in candidates)
    return next(
        (one.height for one, verdict in zip(candidates, verdicts, strict=True) if verdict.compatible), None
    )


def _verdict(turn: ShownTurn, segment: ShownSegment) -> Program[Compatible]:
    verdict: Compatible = yield compatibility_pointwise.ask(turn, segment)
    return verdict


def _attach(stack: list[Open], turn: ShownTurn, height: int, known: Sequence[ShownTurn]) -> None:
    """What attaching a turn does to the frontier; see `hmem_kernels.frontier`."""
    below = None
    while stack and stack[-1].height < height:
        below = stack.pop()
    if below is not None and not (stack and stack[-1].height == height):
        stack.append(below._replace(height=height, text=_text(below, known)))
    stack.append(Open(0, turn.id, turn.at, ""))
