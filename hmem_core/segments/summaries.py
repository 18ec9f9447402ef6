"""Summaries of segments by a model (SegTreeMem; when they are made is ours).

A segment is summarised when it closes, that is, when no later turn can come under it; while it is open, only
when its span has doubled since its last summary. So the calls a turn are bounded by a constant, where
refreshing the whole path at every turn would cost the height of the tree.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hmem_core.effects import Program
from hmem_core.llm.prompts import segment_summary
from hmem_core.llm.prompts.rendering import ShownSegment, ShownTurn
from hmem_core.llm.prompts.segment_summary import Summary
from hmem_core.segments.scoring import covered
from hmem_core.segments.walking import Children
from hmem_core.state import View

__all__ = ["due", "parts", "summarise"]

Show = Callable[[int], ShownTurn | None]
"""A turn as a prompt shows it, by its row; None if it was forgotten."""


def due(view: View, least: int) -> npt.NDArray[np.intp]:
    """The segments whose summary is due, the lowest first; `view` has the tree.

    Args:
        least: segments of fewer turns need no summary; their turns say it as briefly.
    """
    tree, notes = view.tree, view.annotations
    read = np.zeros(tree.start.size, np.int64)  # how many turns each one's summary covers
    read[notes.nodes] = notes.last + 1 - tree.start[notes.nodes]
    span = tree.end + 1 - tree.start
    closed = tree.end < view.rows - 1
    wanted = np.where(closed, read < span, span >= 2 * read)
    large = covered(tree, view.narrow["live"]) >= least
    nodes = np.flatnonzero((tree.children > 0) & wanted & large)
    return nodes[np.argsort(tree.height[nodes], kind="stable")]


def parts(view: View, children: Children, node: int, show: Show) -> list[ShownTurn | ShownSegment]:
    """What a segment consists of, in order: summaries of its parts where there are, else their turns."""
    found: list[ShownTurn | ShownSegment] = []
    waiting = [int(child) for child in children.of(node)[::-1]]
    while waiting and len(found) <= 2 * segment_summary.PARTS:
        part = waiting.pop()
        first, last = int(view.tree.start[part]), int(view.tree.end[part])
        text = view.annotations.of(part)
        begin, end = show(first), show(last)
        if text is not None and begin is not None and end is not None:
            found.append(ShownSegment(int(view.tree.height[part]), begin.at, end.at, text))
        elif view.tree.children[part]:
            waiting += [int(child) for child in children.of(part)[::-1]]
        elif begin is not None:
            found.append(begin)
    return found


def summarise(shown: list[ShownTurn | ShownSegment], max_words: int) -> Program[str]:
    """What a model says a segment of these parts is about."""
    summary: Summary = yield segment_summary.ask(shown, max_words)
    return summary.summary.strip()
