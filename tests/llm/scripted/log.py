"""The record of all requests, written by the thread of the server and read by the test's."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from tests.llm.scripted.records import Arrived


class Log:
    """Requests in order of arrival, and how many of each kind are waited for."""

    def __init__(self) -> None:
        self._all: list[Arrived] = []
        self._said: Counter[bytes] = Counter()
        self._numbers: Counter[str] = Counter()
        self._flying: Counter[str] = Counter()
        self._changed = threading.Condition()

    def arrive(self, kind: str, path: str, body: bytes, *, method: str = "POST", **said: Any) -> Arrived:
        """Note a request; lines of batches are not in flight."""
        digest = blake2b(f"{method} {path}\n".encode() + body).digest()
        with self._changed:
            if said.get("batch") is None:
                self._flying[kind] += 1
                said["in_flight"] = self._flying[kind]
            arrived = Arrived(
                kind=kind,
                number=self._numbers[kind],
                method=method,
                path=path,
                body=body,
                attempt=self._said[digest],
                arrived=time.monotonic(),
                **said,
            )
            self._numbers[kind] += 1
            self._said[digest] += 1
            self._all.append(arrived)
            self._changed.notify_all()
        return arrived

    def finish(self, arrived: Arrived, *, whole: int | None = None, disconnected: bool = False) -> None:
        """Note that a request is over, if that is not noted yet; `whole` is the status of a whole answer.

        It is noted before the answer is sent, so that whoever has the answer finds it noted.
        """
        with self._changed:
            if arrived.finished is not None:
                return
            arrived.finished = time.monotonic()
            arrived.status = arrived.status if whole is None else whole
            arrived.answered = whole == 200
            arrived.disconnected = disconnected
            if arrived.batch is None:
                self._flying[arrived.kind] -= 1
            self._changed.notify_all()

    def requests(self, kind: str | None = None) -> list[Arrived]:
        with self._changed:
            return [arrived for arrived in self._all if kind in (None, arrived.kind)]

    def in_flight(self, kind: str) -> int:
        with self._changed:
            return self._flying[kind]

    def wait(self, condition: Callable[[], bool], timeout: float) -> None:
        """Wait until the record fulfils a condition.

        Raises:
            TimeoutError: It does not come to that.
        """
        with self._changed:
            if not self._changed.wait_for(condition, timeout):
                raise TimeoutError(f"{dict(self._numbers)} requests so far, in flight: {dict(self._flying)}")
