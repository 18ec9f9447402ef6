"""The ledger: what was spent on the model, and for what."""

from __future__ import annotations

import threading

from hmem_core.records import LedgerSnapshot, Usage

__all__ = ["Ledger"]


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
