"""To which segment of the frontier does a turn belong? One question for all of them (SegTreeMem, batch)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from hmem_core.effects import Ask
from hmem_core.llm.prompts.rendering import QUOTED, Prompt, ShownSegment, ShownTurn, segment_line, turn_line

__all__ = ["PROMPT", "SEGMENTS", "Place", "ask", "shown"]

SEGMENTS = 24
"""Segments that one prompt shows, at most."""
SHOWN = 600
"""Characters of each that are shown."""


class Place(msgspec.Struct, frozen=True):
    """The height of the segment that the turn continues; None if it begins something new."""

    height: Annotated[int, msgspec.Meta(ge=1)] | None


PROMPT = Prompt(
    name="compatibility_batch",
    version=1,
    system=f"""\
You divide a conversation into segments, from narrow ones (small height) to wide ones (great height); each \
lies within the next. You are shown the segments that ended just before a new turn, the narrowest first, \
and the new turn. Decide which of them the new turn belongs to.

It belongs to a segment if it goes on with what that segment is about: the same topic, task, event or plan, \
an answer to it, or a detail of it. If it belongs to several, choose the narrowest. If it turns to something \
that is within none of them, choose none.

{QUOTED}

Reply with one JSON object and nothing else: {{"height": the height of the segment}}, or {{"height": null}} \
for none.""",
    reply=Place,
    max_tokens=64,
)


def shown(segments: Sequence[ShownSegment]) -> tuple[ShownSegment, ...]:
    """Those of `segments` that are shown: the narrowest, by rising height."""
    return tuple(sorted(segments, key=lambda segment: segment.height)[:SEGMENTS])


def ask(turn: ShownTurn, segments: Sequence[ShownSegment]) -> Ask:
    """To which of ``shown(segments)`` the `turn` belongs. Reply: `Place`; its height may be one not shown."""
    lines = [segment_line(segment, SHOWN) for segment in shown(segments)]
    return PROMPT.ask("\n".join(["The segments:", *lines, "", "The new turn:", turn_line(turn)]))
