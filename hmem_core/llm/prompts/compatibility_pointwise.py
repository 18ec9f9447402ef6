"""Does a turn belong to a segment? One question for each segment of the frontier (SegTreeMem, pointwise)."""

from __future__ import annotations

import msgspec

from hmem_core.effects import Ask
from hmem_core.llm.prompts.rendering import QUOTED, Prompt, ShownSegment, ShownTurn, segment_line, turn_line

__all__ = ["PROMPT", "Compatible", "ask"]


class Compatible(msgspec.Struct, frozen=True):
    """Whether the turn continues the segment."""

    compatible: bool


PROMPT = Prompt(
    name="compatibility_pointwise",
    version=1,
    system=f"""\
You divide a conversation into segments. You are shown a new turn and a segment that ended just before it. \
Decide whether the new turn belongs to that segment.

It belongs if it goes on with what the segment is about: the same topic, task, event or plan, an answer to \
it, or a detail of it. A segment of greater height covers more turns and a wider topic, and a turn belongs \
to it already if it stays within that wider topic. It does not belong if it turns to something else.

{QUOTED}

Reply with one JSON object and nothing else: {{"compatible": true}} or {{"compatible": false}}.""",
    reply=Compatible,
    max_tokens=64,
)


def ask(turn: ShownTurn, segment: ShownSegment) -> Ask:
    """Whether `turn` belongs to `segment`. Reply: `Compatible`."""
    return PROMPT.ask(f"The new turn:\n{turn_line(turn)}\n\nThe segment:\n{segment_line(segment)}")
