"""The process's one thread pool for kernels.

Kernels release the GIL, so plain threads run them side by side. The pool starts no thread before it is
needed, is sized by the CPUs that this process may really use, and is made anew in a child after a fork.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cached_property
from typing import TypeVar

from hmem_core.cpus import available_cpus

__all__ = ["parallel_map", "threads"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def parallel_map(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``[function(item) for item in items]``, spread over the pool's threads.

    The calling thread works too and never waits for a thread that has not begun. So a single item runs
    inline, calls may nest and come from many threads at once, and a call during interpreter exit, when no
    thread can be started, still completes. After an exception no further item is begun, and what `function`
    raised is raised here once the items under way have ended.
    """
    return _pool.map(function, items)


def threads() -> int:
    """How many threads work on one `parallel_map`, the caller's included: `cpus.available_cpus`, read once
    in a process.

    Raises:
        InvalidInput: ``HMEM_THREADS`` is set to something else than a positive integer.
    """
    return _pool.size


def _next(pending: deque[Item]) -> Item | None:
    """Take the first of `pending`; None if another thread took the last."""
    try:
        return pending.popleft()
    except IndexError:
        return None


class _Pool:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None

    @cached_property
    def size(self) -> int:
        return available_cpus()

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        helpers = min(self.size, len(items)) - 1
        if helpers < 1:
            return [function(item) for item in items]

        pending = deque(enumerate(items))
        results: dict[int, Result] = {}

        def work() -> None:
            try:
                while (task := _next(pending)) is not None:
                    index, item = task
                    results[index] = function(item)
            except BaseException:
                pending.clear()
                raise

        futures = self._start(work, helpers)
        try:
            work()
        finally:
            begun = [future for future in futures if not future.cancel()]
            wait(begun)
        for future in begun:
            future.result()
        return [results[index] for index in range(len(items))]

    def _start(self, work: Callable[[], None], helpers: int) -> list[Future[None]]:
        """Ask for `helpers` threads to do `work`; fewer, or none, if the interpreter cannot start them."""
        futures: list[Future[None]] = []
        try:
            with self._lock:
                if self._executor is None:
                    self._executor = ThreadPoolExecutor(self.size - 1, thread_name_prefix="hmem")
            for _ in range(helpers):
                futures.append(Future[None]())
                self._executor.submit(_run, work, futures[-1])
        except RuntimeError:  # interpreter exit, or the system's limit on threads
            pass
        return futures


def _run(work: Callable[[], None], future: Future[None]) -> None:
    """Do `work` for a future of our own: when `submit` raises, it may have queued the work all the same."""
    if future.set_running_or_notify_cancel():
        try:
            work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(None)


_pool = _Pool()


def _renew() -> None:
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
