"""Journals and `os.fork`.

A fork copies the memory of a process but only one of its threads. A lock that another thread held is held
for ever in the child, SQLite's own included, and SQLite forbids carrying an open connection across: the
child would believe that it holds file locks that only its parent has, and write to a log that the parent
deletes when it closes. So a fork waits until no thread is inside a journal, and finds nothing open.
"""

from __future__ import annotations

import os
import threading
import weakref

__all__ = ["ForkSafe"]


class ForkSafe:
    """Base of objects whose lock is free, and whose handles are closed, whenever the process forks.

    A fork may come as soon as ``__init__`` has run here: call it last.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Held while the object is in use."""
        with _gate:
            _living.add(self)

    def _before_fork(self) -> None:
        """Give up what must not be inherited; called with the lock held, before every fork. Both sides
        acquire it anew when they next need it."""


_gate = threading.Lock()
"""Held during a fork and while `_living` changes. Two forks at once, each waiting for a lock that the other
has, would never end."""
_living: weakref.WeakSet[ForkSafe] = weakref.WeakSet()
_held: list[ForkSafe] = []


def _before() -> None:
    _gate.acquire()
    for living in list(_living):
        living._lock.acquire()
        _held.append(living)
        living._before_fork()


def _after() -> None:
    while _held:
        _held.pop()._lock.release()
    _gate.release()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
