"""Which facts does a question ask for? (Temporary units of HiGram, arXiv 2608.05095.)"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from hmem_core.effects import Ask
from hmem_core.llm.prompts.rendering import QUOTED, Prompt, line, question_line

__all__ = ["PROMPT", "Asked", "Sought", "ask"]

Text = Annotated[str, msgspec.Meta(max_length=2000)]


class Sought(msgspec.Struct, frozen=True):
    """A fact with open slots."""

    subject: Text | None = None
    relation: Text | None = None
    object: Text | int | float | None = None
    category: Text | None = None
    context: Text | None = None
    at: Text | int | None = None


class Asked(msgspec.Struct, frozen=True):
    """The facts that a question asks for."""

    facts: Annotated[list[Sought], msgspec.Meta(max_length=60)]


PROMPT = Prompt(
    name="question_facts",
    version=1,
    system=f"""\
A memory holds facts of the form subject, relation, object, such as "Ann", "lives in", "Porto". You are \
shown a question. Write the facts one needs to answer it, 1 to 4 of them, with "" for every slot that the \
question asks for or does not name:

- "subject", "object": names or things that the question names, in its words.
- "relation": a short phrase in the present tense, such as "lives in".
- "category": the kind of fact in one word, such as "residence", "work", "health", "family", "preference".
- "context": a condition that the question names, such as "in winter".
- "at": the date at which it is to be true, like 2026-03-01, if the question asks for the past; else "".

Do not answer the question.

{QUOTED}

Reply with one JSON object and nothing else: {{"facts": [{{"subject": "Ann", "relation": "lives in", \
"object": "", "category": "residence", "context": "", "at": ""}}]}}.""",
    reply=Asked,
    max_tokens=384,
)


def ask(question: str, now: datetime) -> Ask:
    """Which facts a question asks for that is asked at the time `now`. Reply: `Asked`."""
    today = line({"today": now.date().isoformat()})
    return PROMPT.ask("\n".join(["The question:", question_line(question), today]))
