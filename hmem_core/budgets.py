"""Budgets: programs that stop asking before they spend too much.

Checking a budget is a program itself, so that it works under every driver. What a reply has cost only the
driver knows; it writes that on the `Bill` that comes with the `Ask`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TypeVar

from hmem_core.effects import Ask, Message, Program, Run, Single, together
from hmem_core.errors import BudgetExceeded, InvalidInput
from hmem_core.options import Budget, Prices
from hmem_core.reports import Usage

__all__ = ["Bill", "Billed", "Meter", "estimate_tokens", "limited", "prompt_tokens"]

T = TypeVar("T")


class Bill:
    """What one `Ask` may cost, and what it has cost once a driver has said so."""

    def __init__(self, estimate: Usage) -> None:
        self.estimate = estimate
        self.usage: Usage | None = None

    def add(self, usage: Usage) -> None:
        """Note that answering took `usage`."""
        self.usage = usage if self.usage is None else self.usage + usage


class Billed(Ask, frozen=True):
    """An `Ask` with bills on which a driver writes what it has cost, if it knows of bills at all."""

    bills: tuple[Bill, ...] = ()


class Meter:
    """What is left of a budget, shared by the programs that spend it. Safe to use from several threads.

    Args:
        prices: what tokens cost; a budget of money needs them.
        spent: what was spent of it before.
    """

    def __init__(self, budget: Budget, prices: Prices | None = None, spent: Usage | None = None) -> None:
        if budget.money is not None and prices is None:
            raise InvalidInput(f"{budget!r} limits money, but no prices are known; give the LLM its prices")
        self.budget = budget
        self._prices = prices
        self._lock = threading.Lock()
        self._spent = spent or Usage()
        self._open: dict[int, Bill] = {}

    @property
    def spent(self) -> Usage:
        """What was spent so far; a question under way counts with its estimate."""
        with self._lock:
            return self._total()

    def open(self, ask: Ask) -> Bill:
        """Set aside what `ask` may cost.

        Raises:
            BudgetExceeded: there is not enough left; nothing was set aside.
        """
        bill = Bill(self._estimate(ask))
        with self._lock:
            total = self._total() + bill.estimate
            used = {
                "calls": total.calls,
                "tokens": total.input_tokens + total.output_tokens,
                "money": total.cost or 0.0,
            }
            for name, amount in used.items():
                limit = getattr(self.budget, name)
                if limit is not None and amount > limit:
                    raise BudgetExceeded(
                        f"{ask.purpose}: not asked, since the reply could bring {name} to {amount:g}, "
                        f"over the budget of {limit:g}"
                    )
            self._open[id(bill)] = bill
        return bill

    def settle(self, bill: Bill) -> None:
        """Put what was really spent in place of what was set aside."""
        with self._lock:
            del self._open[id(bill)]
            self._spent += bill.estimate if bill.usage is None else bill.usage

    def renew(self) -> None:
        """In a child after a fork: another thread may have held the lock, and its questions are not ours."""
        self._lock = threading.Lock()
        self._open = {}

    def _total(self) -> Usage:
        return sum((bill.estimate for bill in self._open.values()), self._spent)

    def _estimate(self, ask: Ask) -> Usage:
        prompt = prompt_tokens(ask.messages)
        cost = None if self._prices is None else self._prices.cost(prompt, 0, ask.max_tokens)
        return Usage(calls=1, input_tokens=prompt, output_tokens=ask.max_tokens, cost=cost)


def limited(program: Program[T], budget: Budget | Meter, prices: Prices | None = None) -> Program[T]:
    """`program`, with `BudgetExceeded` as the reply to each `Ask` that could exceed the budget.

    Args:
        budget: for this program alone; or a meter, for all the programs that share it.
        prices: what tokens cost, where `budget` limits money.
    """
    meter = budget if isinstance(budget, Meter) else Meter(budget, prices)
    run = Run(program)
    try:
        while not run.done:
            run.resume((yield from _billed(run.effects, meter)))
    finally:
        run.close()
    return run.result()


def _billed(effects: tuple[Single, ...], meter: Meter) -> Program[list[object]]:
    """The replies to `effects`, in order."""
    replies: list[object] = [None] * len(effects)
    allowed: dict[int, Single] = {}
    bills: list[Bill] = []
    try:
        for place, effect in enumerate(effects):
            if isinstance(effect, Ask):
                try:
                    bills.append(meter.open(effect))
                except BudgetExceeded as error:
                    replies[place] = error
                    continue
                effect = _with(effect, bills[-1])
            allowed[place] = effect
        if allowed:
            for place, reply in zip(allowed, (yield from together(allowed.values())), strict=True):
                replies[place] = reply
    finally:
        for bill in bills:
            meter.settle(bill)
    return replies


def _with(ask: Ask, bill: Bill) -> Billed:
    earlier = ask.bills if isinstance(ask, Billed) else ()
    return Billed(ask.purpose, ask.messages, ask.schema, ask.max_tokens, (*earlier, bill))


def estimate_tokens(text: str) -> int:
    """About how many tokens `text` has, leaning high; for servers that do not say, and before asking."""
    return len(text.encode("utf-8", "replace")) // 3 + 4


def prompt_tokens(messages: Iterable[Message]) -> int:
    """About how many tokens a prompt has."""
    return sum(estimate_tokens(message.content) for message in messages)
