"""How many processors this process may really use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

from hmem_core.errors import InvalidInput

__all__ = ["available_cpus"]

_ROOT = Path("/")


def available_cpus() -> int:
    """Processors that the process may use, at least 1.

    ``HMEM_THREADS`` wins where it is set. Otherwise it is the smallest of the affinity mask and the quotas of
    the control groups around the process (versions 1 and 2), a part of a processor counting as a whole one:
    a container limited to two processors of a 64-processor machine gets 2, where `os.cpu_count` says 64.

    Read afresh at each call, since affinity and quotas change while a process runs.

    Raises:
        InvalidInput: ``HMEM_THREADS`` is not a positive whole number.
    """
    wish = os.environ.get("HMEM_THREADS", "").strip()
    if wish:
        if not (wish.isascii() and wish.isdigit() and int(wish) > 0):
            raise InvalidInput(f"HMEM_THREADS is {wish!r}; set it to a positive whole number, or unset it")
        return int(wish)
    # macOS has no affinity masks.
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([count, *(math.ceil(quota) for quota in _quotas(_ROOT))]))


def _quotas(root: Path) -> Iterator[float]:
    """Quotas, in processors, of the control groups of this process and all groups that contain them."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            base, limit = root / "sys/fs/cgroup", _limit_v2
        elif "cpu" in controllers.split(","):
            base, limit = root / "sys/fs/cgroup/cpu", _limit_v1
        else:
            continue
        # Inside a container the path may be the host's, which is not visible: the walk up ends at the mount
        # point in any case, where the container's own limit then lies.
        inner = base / group.lstrip("/")
        for directory in (inner, *inner.parents):
            if (quota := limit(directory)) is not None:
                yield quota
            if directory == base:
                break


def _limit_v2(directory: Path) -> float | None:
    """``cpu.max`` holds "quota period" in microseconds, or "max period"."""
    fields = _read(directory / "cpu.max").split()
    return _ratio(*fields) if len(fields) == 2 else None


def _limit_v1(directory: Path) -> float | None:
    """A quota of -1 means no limit."""
    return _ratio(_read(directory / "cpu.cfs_quota_us"), _read(directory / "cpu.cfs_period_us"))


def _ratio(quota: str, period: str) -> float | None:
    try:
        ratio = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
    return ratio if ratio > 0 else None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
