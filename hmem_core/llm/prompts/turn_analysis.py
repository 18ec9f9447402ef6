"""What do turns speak of? Asked of one turn, or of several in one question (HiGMem, analysis)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from hmem_core.effects import Ask
from hmem_core.llm.prompts.rendering import QUOTED, SHOWN, Prompt, ShownTurn, turn_line

__all__ = ["CHARACTERS", "PROMPT", "TURNS", "Analyses", "Analysis", "ask"]

TURNS = 32
"""Turns that one question analyses, at most."""
CHARACTERS = 9_000
"""Characters of all their texts together, about; of the turns before them, a third of it."""

Words = Annotated[
    list[Annotated[str, msgspec.Meta(max_length=400)]],
    msgspec.Meta(max_length=60, extra_json_schema={"askedItems": 8}),
]
"""A few words. More than are asked for do no harm, but a small model knows no end."""


class Analysis(msgspec.Struct, frozen=True):
    """What one turn speaks of."""

    id: int
    context: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    keywords: Words = []
    tags: Words = []
    entities: Words = []


class Analyses(msgspec.Struct, frozen=True):
    """What each of the turns speaks of."""

    turns: Annotated[list[Analysis], msgspec.Meta(max_length=200)]


PROMPT = Prompt(
    name="turn_analysis",
    version=2,
    system=f"""\
You keep the memory of a conversation. You are shown some turns to analyse, and before them the turns that \
were said just before, which only help you to understand. For each turn to analyse, note what someone would \
need to find it again:

- "context": one sentence that says on its own what the turn says: who speaks, of what, with "he", "it" or \
"tomorrow" put as the name or date they mean.
- "keywords": 2 to 6 words or names that the turn is about, the most important first; not the speaker.
- "tags": the field of life that it belongs to, in one word; seldom 2.
- "entities": names of people, places, organisations, works and products that the turn names.

Take everything from what is shown, and leave a list empty where there is nothing. Write in the language of \
the turn.

{QUOTED}

Reply with one JSON object and nothing else, with an entry for every turn to analyse, under its id: \
{{"turns": [{{"id": 12, "context": "one sentence", "keywords": ["word"], "tags": ["topic"], \
"entities": ["name"]}}]}}.""",
    reply=Analyses,
    max_tokens=1024,
)


def ask(turns: Sequence[ShownTurn], before: Sequence[ShownTurn] = ()) -> Ask:
    """What each of `turns` (`TURNS` at most) speaks of; `before` are those said just before them, in order.

    Reply: `Analyses`; it may name turns that were not asked about, and lack some.
    """
    limit = min(SHOWN, CHARACTERS // max(len(turns), 1))
    near = min(SHOWN, CHARACTERS // 3 // max(len(before), 1))
    lines = []
    if before:
        lines += ["Said before:", *(turn_line(turn, near) for turn in before), ""]
    lines += ["The turns to analyse:", *(turn_line(turn, limit) for turn in turns)]
    asked = PROMPT.ask("\n".join(lines))
    return msgspec.structs.replace(asked, max_tokens=160 * len(turns) + 128)
