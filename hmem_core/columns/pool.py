"""The process's one thread pool for kernels.

Kernels release the GIL, so plain threads run them side by side. The pool starts no thread before it is
needed, is sized by the CPUs that this process may really use, and is made anew in a child after a fork.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TypeVar

from hmem_core.errors import InvalidInput

__all__ = ["available_cpus", "parallel_map", "threads"]

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
    """How many threads work on one `parallel_map`, the caller's included: ``HMEM_THREADS``, or else
    `available_cpus`. Read once in a process.

    Raises:
        InvalidInput: ``HMEM_THREADS`` is set to something else than a positive integer.
    """
    return _pool.size


def available_cpus(root: Path = Path("/")) -> int:
    """CPUs that this process may use: its affinity, cut by the quota of its cgroup (rounded up)."""
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cpus = os.cpu_count() or 1
    return max(1, min([cpus, *(math.ceil(quota) for quota in _cgroup_quotas(root))]))


def _cgroup_quotas(root: Path) -> list[float]:
    """The limits, in CPUs, of this process's cgroups and all those above them; version 1 and 2."""
    mount = root / "sys/fs/cgroup"
    quotas = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(","):
            mounts = [mount / controllers, mount / "cpu"]
        else:
            mounts = [] if controllers else [mount]
        # Inside a container the path may be the host's, and only the mount point itself exists.
        group = PurePosixPath(path.lstrip("/"))
        for directory in (top / part for top in mounts for part in (group, *group.parents)):
            limit = _read(directory / "cpu.max") or " ".join(
                _read(directory / name) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            )
            match limit.split():
                case [quota, period] if quota not in ("max", "-1"):
                    quotas.append(int(quota) / int(period))
    return quotas


def _read(path: Path) -> str:
    """The text of a file; none if it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""


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
        wanted = os.environ.get("HMEM_THREADS", "").strip()
        if not wanted:
            return available_cpus()
        if not wanted.isdecimal() or int(wanted) < 1:
            raise InvalidInput(
                f"HMEM_THREADS is {wanted!r}; set it to a positive integer, or unset it to use every CPU"
            )
        return int(wanted)

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
