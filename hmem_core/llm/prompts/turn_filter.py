"""Which candidate turns help to answer a question? (HiGMem, final filter; speaker and time are ours)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from hmem_core.effects import Ask
from hmem_core.llm.prompts.rendering import QUOTED, Prompt, ShownTurn, question_line, share, turn_line
from hmem_core.llm.replies import offered

__all__ = ["CHARACTERS", "PROMPT", "Kept", "ask", "named"]

CHARACTERS = 9_000
"""Characters of the texts of all turns of one question, at most."""


class Kept(msgspec.Struct, frozen=True):
    """The turns that help."""

    turns: Annotated[
        list[int | Annotated[str, msgspec.Meta(max_length=200)]],
        # A small model counts on without end.
        msgspec.Meta(max_length=500, extra_json_schema={"askedItems": 32}),
    ]


PROMPT = Prompt(
    name="turn_filter",
    version=1,
    system=f"""\
You search the memory of a conversation. You are shown a question and some turns that may help to answer it, \
in the order of time, each with its id, its time, who said it and what. They need not follow each other. \
Decide which to keep for whoever answers the question.

Keep a turn if it states the answer or a part of it, or something from which the answer follows together \
with other turns; where the question asks for several things, keep the turns about each. Mind who speaks and \
whom the question is about, and when it was said. Drop turns that are only about the same subject. In doubt \
keep it. Name only ids of turns that are shown.

{QUOTED}

Reply with one JSON object and nothing else: {{"turns": [12, 31]}}, or {{"turns": []}} for none.""",
    reply=Kept,
    max_tokens=512,
)


def ask(question: str, turns: Sequence[ShownTurn]) -> Ask:
    """Which of `turns` to keep. Reply: `Kept`; see `named`."""
    limit = share((len(turn.text) for turn in turns), CHARACTERS)
    lines = ["The question:", question_line(question), "", "The turns:"]
    asked = PROMPT.ask("\n".join([*lines, *(turn_line(turn, limit) for turn in turns)]))
    return msgspec.structs.replace(asked, max_tokens=min(8 * len(turns) + 64, PROMPT.max_tokens))


def named(reply: Kept, turns: Sequence[ShownTurn]) -> list[int]:
    """Those of `turns` that a reply names, each once; others are dropped."""
    return offered(reply.turns, {turn.id for turn in turns})
