"""Functions that run in processes of their own, say what they have done, and can be killed.

A *task* is a generator function of a module that can be imported: whatever it yields (JSON) has left the
process when it takes its next step. Tasks are forked from a `Nursery`, a process that has imported the
task's module and started no thread, so that a start costs milliseconds::

    with Nursery(writer) as nursery:
        child = nursery.start(writer, str(path))
        child.kill()
        acknowledged = child.said()

Nothing here knows what a task writes to; a journal and a whole memory are tested alike.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

ROOT = Path(__file__).parents[2]

Task = Callable[..., Iterator[Any]]


class Child:
    """A task that is running."""

    def __init__(self, words: BinaryIO) -> None:
        self._words = words
        self._heard: list[Any] = []
        self.pid: int = json.loads(words.readline())["pid"]
        self.status: int | None = None
        """How the process ended, as `os.waitstatus_to_exitcode` has it; None before `said`."""

    def kill(self) -> None:
        """End it here and now, wherever it is; does nothing if it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def hear(self) -> bool:
        """Wait until the task yields once more; False if it ended instead."""
        line = self._words.readline()
        assert line, "the nursery died"
        word = json.loads(line)
        if "exit" in word:
            self.status = word["exit"]
            return False
        self._heard.append(word["said"])
        return True

    def said(self) -> list[Any]:
        """Wait for the end; everything that the task yielded."""
        while self.status is None and self.hear():
            pass
        return self._heard


class Nursery:
    """Starts tasks, one at a time."""

    def __init__(self, *tasks: Task) -> None:
        modules = sorted({task.__module__ for task in tasks})
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.harness", *modules],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def start(self, task: Task, *arguments: Any) -> Child:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = [task.__module__, task.__qualname__, arguments]
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return Child(self._process.stdout)

    def run(self, task: Task, *arguments: Any) -> list[Any]:
        """Start a task and wait for its end, which must be a good one."""
        child = self.start(task, *arguments)
        words = child.said()
        assert child.status == 0, f"{task.__qualname__} ended with {child.status}"
        return words

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._process:  # closes the pipes, which ends it, and waits
            pass


def _tell(**word: Any) -> None:
    os.write(1, json.dumps(word).encode() + b"\n")  # short enough to be written whole or not at all


def _run(module: str, name: str, arguments: list[Any]) -> int:
    try:
        for word in getattr(sys.modules[module], name)(*arguments):
            _tell(said=word)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _serve() -> None:
    for module in sys.argv[1:]:
        importlib.import_module(module)
    for line in sys.stdin.buffer:
        pid = os.fork()
        if not pid:
            _tell(pid=os.getpid())
            os._exit(_run(*json.loads(line)))
        _, status = os.waitpid(pid, 0)
        _tell(exit=os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    _serve()
