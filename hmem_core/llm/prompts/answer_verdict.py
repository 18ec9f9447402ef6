"""Is an answer right, given the answer that is expected? For measuring."""

from __future__ import annotations

import msgspec

from hmem_core.effects import Ask
from hmem_core.llm.prompts.rendering import QUOTED, Prompt, line, shown_text

__all__ = ["PROMPT", "Verdict", "ask"]

TEXT = 2000
"""Characters of each text that are shown."""


class Verdict(msgspec.Struct, frozen=True):
    """Whether the answer is right."""

    correct: bool


PROMPT = Prompt(
    name="answer_verdict",
    version=1,
    system=f"""\
You grade answers to questions about a conversation. You are shown a question, the expected answer and the \
given answer. The given answer is correct if it says the same as the expected one: other words, another form \
of the same date or number, and more detail that does not contradict it are fine. It is wrong if it says \
something else, leaves out a part that was asked for, or says that it does not know although an answer is \
expected. If no answer is expected, it is correct just if it says that this was not mentioned.

{QUOTED}

Reply with one JSON object and nothing else: {{"correct": true}} or {{"correct": false}}.""",
    reply=Verdict,
    max_tokens=64,
)


def ask(question: str, expected: str | None, given: str) -> Ask:
    """Whether `given` is right where `expected` is; None: that nothing is mentioned. Reply: `Verdict`."""
    record = {"question": question, "expected": expected, "given": given}
    shown = {name: text if text is None else shown_text(text, TEXT) for name, text in record.items()}
    return PROMPT.ask(line(shown))
