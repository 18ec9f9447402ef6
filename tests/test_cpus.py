"""How many processors the process may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hmem_core import cpus
from hmem_core.cpus import available_cpus
from hmem_core.errors import InvalidInput


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of eight processors whose kernel files lie under the path given."""
    monkeypatch.delenv("HMEM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(cpus, "_ROOT", tmp_path)
    return tmp_path


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def test_without_limits_the_affinity_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert available_cpus() == 8
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5})
    assert available_cpus() == 1


def test_without_affinity_the_machine_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cpus() == 1


@pytest.mark.parametrize(("wish", "count"), [("3", 3), (" 64 ", 64), ("", 8)])
def test_the_environment_wins(monkeypatch: pytest.MonkeyPatch, wish: str, count: int) -> None:
    monkeypatch.setenv("HMEM_THREADS", wish)
    assert available_cpus() == count


@pytest.mark.parametrize("wish", ["0", "-1", "two", "1.5", "²"])
def test_a_wish_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch, wish: str) -> None:
    monkeypatch.setenv("HMEM_THREADS", wish)
    with pytest.raises(InvalidInput, match="HMEM_THREADS is"):
        available_cpus()


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, 8),
        ({"sys/fs/cgroup/cpu.max": "150000 100000\n"}, 2),
        ({"sys/fs/cgroup/cpu.max": "1000 100000\n"}, 1),
        ({"sys/fs/cgroup/cpu.max": "rubbish\n"}, 8),
        ({"sys/fs/cgroup/a/cpu.max": "300000 100000", "sys/fs/cgroup/a/b/cpu.max": "max 100000"}, 3),
        ({"sys/fs/cgroup/a/cpu.max": "300000 100000", "sys/fs/cgroup/a/b/cpu.max": "200000 100000"}, 2),
    ],
)
def test_quotas_of_version_2(machine: Path, files: dict[str, str], count: int) -> None:
    write(machine, {"proc/self/cgroup": "0::/a/b\n", **files})
    assert available_cpus() == count


@pytest.mark.parametrize(("quota", "count"), [("-1", 8), ("250000", 3), ("0", 8)])
def test_quotas_of_version_1(machine: Path, quota: str, count: int) -> None:
    write(
        machine,
        {
            "proc/self/cgroup": "5:cpuset:/\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": quota,
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
        },
    )
    assert available_cpus() == count
