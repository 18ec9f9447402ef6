"""What the processes of these tests do; run by `tests.faults.harness`."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator

from hmem_core.errors import Conflict, StorageError
from hmem_core.journal.entries import Entry
from hmem_core.journal.sqlite import SqliteJournal
from tests.faults.journal_tasks import turn


def append_as_space_runs_out(path: str) -> Iterator[object]:
    """Append until files may not grow any more; then, with space again, append once more."""
    journal = SqliteJournal(path, create=True)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, unlimited[1]))
    head, message = 0, ""
    while not message:
        try:
            head = journal.append(head, [turn(f"{head} {n}") for n in range(7)], rewrite=None)
        except StorageError as error:
            message = str(error)
    assert journal.position() == (head, 0)
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    head = journal.append(head, [turn("there is space again")])
    yield head
    yield message
    journal.close()


def fork_and_close(path: str) -> Iterator[object]:
    """The parent closes while the child goes on: what the child appends must not go to a log that the
    parent deletes."""
    journal = SqliteJournal(path, create=True)
    journal.append(0, [turn("parent", id=0)])
    closed, close = os.pipe()
    child = os.fork()
    if not child:
        journal.append(1, [turn("child", id=1)])
        os.read(closed, 1)
        for head in range(2, 12):
            journal.append(head, [turn("child", id=head)])
        journal.close()
        os._exit(0)
    while journal.position().head < 2:
        pass
    journal.close()
    os.write(close, b"!")
    assert os.waitpid(child, 0)[1] == 0
    yield from ()


def fork_beside_a_busy_thread(path: str, forks: int) -> Iterator[int]:
    """Fork while a thread appends: each child appends once, and none waits for a lock that no thread will
    ever give back."""
    journal = SqliteJournal(path, create=True, synchronous="normal")
    appended = 0
    stop = threading.Event()

    def append(entry: Entry) -> None:
        head = journal.position().head
        while True:
            try:
                journal.append(head, [entry])
                return
            except Conflict as conflict:
                head = conflict.found

    def work() -> None:
        nonlocal appended
        while not stop.is_set():
            append(turn("thread"))
            appended += 1

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(forks):
        child = os.fork()
        if not child:
            append(turn("child"))
            journal.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    stop.set()
    thread.join()
    journal.close()
    yield appended
