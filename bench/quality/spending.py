"""What one question of a measurement spends on a language model."""

from __future__ import annotations

from typing import TypeVar

from hmem_core.budgets import Bill, Billed
from hmem_core.effects import Ask, Program, Run, Single, together
from hmem_core.errors import BudgetExceeded, LLMMissing, LLMUnavailable
from hmem_core.reports import Usage

__all__ = ["accounted"]

T = TypeVar("T")


def accounted(program: Program[T], spent: dict[str, Usage]) -> Program[T]:
    """`program`, with what its questions took added to `spent` by purpose.

    A search gets along without a model, a measurement does not: it ends where the server does not answer.

    Raises:
        LLMUnavailable, BudgetExceeded, LLMMissing: as soon as a question got this for a reply.
    """
    run = Run(program)
    try:
        while not run.done:
            effects: list[Single] = []
            bills: list[tuple[str, Bill]] = []
            for effect in run.effects:
                if isinstance(effect, Ask):
                    bills.append((effect.purpose, Bill(Usage())))
                    asked = (effect.purpose, effect.messages, effect.schema, effect.max_tokens)
                    effects.append(Billed(*asked, (bills[-1][1],)))
                else:
                    effects.append(effect)
            replies = yield from together(effects)
            for purpose, bill in bills:
                spent[purpose] = spent.get(purpose, Usage()) + (bill.usage or Usage())
            for reply in replies:
                if isinstance(reply, (LLMUnavailable, BudgetExceeded, LLMMissing)):
                    raise reply
            run.resume(replies)
    finally:
        run.close()
    return run.result()
