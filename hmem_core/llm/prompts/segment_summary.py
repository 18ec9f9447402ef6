"""What is a segment about? Asked of its turns, or of what stands for its parts (SegTreeMem, annotations)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from hmem_core.effects import Ask
from hmem_core.llm.prompts.rendering import (
    QUOTED,
    SHOWN,
    Prompt,
    ShownSegment,
    ShownTurn,
    line,
    segment_line,
    turn_line,
)

__all__ = ["PARTS", "PROMPT", "Summary", "ask"]

PARTS = 96
"""Parts that one prompt shows, at most; of more, the first and the last."""
CHARACTERS = 24_000
"""Characters of all their texts together, about."""


class Summary(msgspec.Struct, frozen=True):
    """What the segment is about."""

    summary: Annotated[str, msgspec.Meta(pattern=r"\S", max_length=8000)]


PROMPT = Prompt(
    name="segment_summary",
    version=1,
    system=f"""\
You keep the memory of a conversation. You are shown one segment of it, as its turns or as summaries of its \
parts, in the order of time. Write a summary by which someone can find this segment later and know what was \
said in it.

Keep every name, date, time, number, place and decision, word for word; say who did or said what. Times of \
the records tell when something was said: write "last week" or "tomorrow" as the date it means. Where the \
parts contradict each other, keep the later and say what it was before. Leave out greetings and filler. Add \
nothing that is not there, and no remark about the summary itself. Write in the language of the segment.

{QUOTED}

Reply with one JSON object and nothing else: {{"summary": "the summary"}}.""",
    reply=Summary,
    max_tokens=1024,
)


def ask(parts: Sequence[ShownTurn | ShownSegment], max_words: int = 80) -> Ask:
    """A summary of `parts`, in order, in about `max_words` at most. Reply: `Summary`."""
    half = PARTS // 2
    left_out = max(len(parts) - PARTS, 0)
    shown = [*parts[:half], *parts[-half:]] if left_out else list(parts)
    limit = min(SHOWN, CHARACTERS // max(len(shown), 1))
    lines = [
        turn_line(part, limit) if isinstance(part, ShownTurn) else segment_line(part, limit) for part in shown
    ]
    if left_out:
        lines.insert(half, line({"left_out": left_out}))
    asked = PROMPT.ask("\n".join(["The segment:", *lines, "", f"The summary has at most {max_words} words."]))
    # A small model may ramble on to whatever limit it has; four tokens a word leave room for any language.
    return msgspec.structs.replace(asked, max_tokens=min(4 * max_words + 64, PROMPT.max_tokens))
