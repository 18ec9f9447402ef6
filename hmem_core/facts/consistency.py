"""What is meant by two facts that contradict one another, as a model says it (ours; consistency check of
HiGram, arXiv 2608.05095)."""

from __future__ import annotations

from collections.abc import Sequence

from hmem_core.effects import Program
from hmem_core.errors import LLMRefused, MalformedReply
from hmem_core.llm.prompts import fact_consistency
from hmem_core.llm.prompts.fact_consistency import Choice, Pair, Verdicts

__all__ = ["judge"]

_CHOICES: dict[str, Choice] = {"replaces": "replaces", "replace": "replaces", "both": "both"}


def judge(pairs: Sequence[Pair]) -> Program[list[Choice]]:
    """What is meant by each pair, in one question; "unclear" where the reply says nothing that can be used.

    Raises:
        LLMError: the model could not be asked now.
    """
    found: dict[int, Choice] = {}
    try:
        reply: Verdicts = yield fact_consistency.ask(pairs)
    except (MalformedReply, LLMRefused):
        return ["unclear"] * len(pairs)
    for one in reply.pairs:
        verdict = "".join(filter(str.isalpha, one.verdict)).casefold()
        found.setdefault(one.pair, _CHOICES.get(verdict, "unclear"))
    return [found.get(number, "unclear") for number in range(1, len(pairs) + 1)]
