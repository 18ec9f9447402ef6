"""Objects of native libraries, one of each per process, that survive a fork by being left alone.

An onnxruntime session owns threads, and a tokenizer owns locks; neither works in a forked child, where those
threads do not exist. Worse, *destroying* a session there waits for its threads for ever, at the latest when
the interpreter exits. So a child starts with an empty table, builds its own objects on first use, and the
inherited ones are kept alive until the process ends.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Hashable
from typing import TypeVar, cast

__all__ = ["shared"]

T = TypeVar("T")

_objects: dict[Hashable, object] = {}
_lock = threading.Lock()


def shared(key: Hashable, make: Callable[[], T]) -> T:
    """The object under `key`, made by ``make()`` the first time this process asks for it.

    Callers fetch it again for every use and never keep it: what they keep would be stale after a fork.
    """
    found = _objects.get(key)
    if found is None:
        with _lock:
            found = _objects.get(key)
            if found is None:
                found = _objects[key] = make()
    return cast(T, found)


def _start_afresh() -> None:
    """Runs in a forked child, before anything else."""
    global _objects, _lock
    for inherited in _objects.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))  # one reference that nobody gives back
    _objects = {}
    _lock = threading.Lock()  # another thread of the parent may have held the old one


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)
