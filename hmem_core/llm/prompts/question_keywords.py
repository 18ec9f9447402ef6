"""By which words can a question's answer be found? (HiGMem, guided retrieval)"""

from __future__ import annotations

from typing import Annotated

import msgspec

from hmem_core.effects import Ask
from hmem_core.llm.prompts.rendering import QUOTED, Prompt, question_line

__all__ = ["PROMPT", "Keywords", "ask", "words"]

KEYWORDS = 12
"""Keywords that are used of one reply, at most."""
KEYWORD = 80
"""Characters of one of them; what is longer is not a keyword, and is left out."""


class Keywords(msgspec.Struct, frozen=True):
    """Words to search by."""

    keywords: Annotated[list[Annotated[str, msgspec.Meta(max_length=2000)]], msgspec.Meta(max_length=100)]


PROMPT = Prompt(
    name="question_keywords",
    version=1,
    system=f"""\
You search the memory of a conversation. You are shown a question. Write keywords by which the turns that \
answer it can be found: the names, things, places and times in it, what is done, and words that its answer \
may use. Put the most telling first, {KEYWORDS} at most, in the language of the question.

{QUOTED}

Reply with one JSON object and nothing else: {{"keywords": ["first keyword", "second keyword"]}}.""",
    reply=Keywords,
    max_tokens=256,
)


def ask(question: str) -> Ask:
    """Keywords of `question`. Reply: `Keywords`."""
    return PROMPT.ask(f"The question:\n{question_line(question)}")


def words(reply: Keywords) -> list[str]:
    """The keywords that can be used, each once whatever its case, in order."""
    found: dict[str, str] = {}
    for one in reply.keywords:
        word = " ".join(one.split())
        if len(word) <= KEYWORD and any(map(str.isalnum, word)):
            found.setdefault(word.casefold(), word)
    return list(found.values())[:KEYWORDS]
