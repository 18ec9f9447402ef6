"""The ledger: what was spent on the model, and for what."""

from __future__ import annotations

import threading

from hmem_core.budgets import estimate_tokens
from hmem_core.llm.transport import Completion
from hmem_core.options import Prices
from hmem_core.reports import LedgerSnapshot, Usage

__all__ = ["Ledger", "usage_of"]


class Ledger:
    """Adds up usage by purpose. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._purposes: dict[str, Usage] = {}

    def add(self, purpose: str, usage: Usage) -> None:
        with self._lock:
            self._purposes[purpose] = self._purposes.get(purpose, Usage()) + usage

    def snapshot(self) -> LedgerSnapshot:
        with self._lock:
            purposes = dict(sorted(self._purposes.items()))
        return LedgerSnapshot(total=sum(purposes.values(), Usage()), purposes=purposes)

    def renew(self) -> None:
        """In a child after a fork: another thread may have held the lock."""
        self._lock = threading.Lock()


def usage_of(completion: Completion, prompt_tokens: int, prices: Prices | None) -> Usage:
    """What a completion took.

    Args:
        prompt_tokens: an estimate, for servers that do not say.
    """
    read, written = completion.input_tokens, completion.output_tokens
    if read is None:
        read = prompt_tokens
    if written is None:
        written = estimate_tokens(completion.text or "")
    return Usage(
        calls=1,
        input_tokens=read,
        cached_tokens=completion.cached_tokens,
        output_tokens=written,
        cost=None if prices is None else prices.cost(read, completion.cached_tokens, written),
    )
