"""What is the answer to a question, in a few words? For measuring: data sets give their answers so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from hmem_core.effects import Ask
from hmem_core.llm.prompts.rendering import QUOTED, Prompt, ShownTurn, question_line, share, turn_line

__all__ = ["NOT_MENTIONED", "PROMPT", "TURNS", "Answer", "ask"]

TURNS = 128
"""Turns that one question shows, at most."""
CHARACTERS = 36_000
"""Characters of all their texts together, at most."""
NOT_MENTIONED = "Not mentioned in the conversation"


class Answer(msgspec.Struct, frozen=True):
    """A short answer."""

    answer: Annotated[str, msgspec.Meta(pattern=r"\S", max_length=2000)]


PROMPT = Prompt(
    name="short_answer",
    version=1,
    system=f"""\
You answer a question from turns of a conversation, in the order of time, each with its time, who said it \
and what. Answer in as few words as will do, with the words of the turns where you can: a name, a date, a \
list with commas between its items, yes or no; no sentence. Write "last week" or "tomorrow" in a turn as \
the date or the span that it means, counted from the time of that turn. Where a likely answer follows from \
what was said, give it. If the turns do not speak of what is asked, or it is another person than the \
question says, answer "{NOT_MENTIONED}".

{QUOTED}

Reply with one JSON object and nothing else: {{"answer": "the short answer"}}.""",
    reply=Answer,
    max_tokens=256,
)


def ask(question: str, turns: Sequence[ShownTurn]) -> Ask:
    """The answer to `question` from `turns` (`TURNS` at most), in order. Reply: `Answer`."""
    limit = share((len(turn.text) for turn in turns), CHARACTERS)
    shown = [turn_line(turn, limit) for turn in turns] or ["There are none."]
    return PROMPT.ask("\n".join(["The turns:", *shown, "", "The question:", question_line(question)]))
