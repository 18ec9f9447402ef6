"""Who may send a request now: a limit on those under way, the most urgent first, and pauses for all."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count
from types import TracebackType

__all__ = ["Gate", "Turn"]


class Gate:
    """At most `permits` holders at once. Belongs to one event loop.

    Who waits is admitted by priority, then in the order of arrival. `rest` admits nobody for a while: when
    a server asks one request to come back later, the next in the queue would only be turned away too.
    """

    def __init__(self, permits: int) -> None:
        self._free = permits
        self._order = count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._opens = 0.0

    def turn(self, priority: int) -> Turn:
        """A place in the queue, kept from one use to the next."""
        return Turn(self, priority, next(self._order))

    def rest(self, seconds: float) -> None:
        """Admit nobody for so long. Those who hold a permit are not disturbed."""
        self._opens = max(self._opens, asyncio.get_running_loop().time() + seconds)

    async def acquire(self, priority: int, order: int) -> None:
        admitted = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (priority, order, admitted))
        self._admit()
        try:
            await admitted
        except asyncio.CancelledError:
            if admitted.done() and not admitted.cancelled():  # admitted and cancelled in the same moment
                self.release()
            raise

    def release(self) -> None:
        self._free += 1
        self._admit()

    def _admit(self) -> None:
        loop = asyncio.get_running_loop()
        while self._free and self._waiting:
            if loop.time() < self._opens:
                # One timer for each who came meanwhile; those that find nothing to do cost nothing.
                loop.call_at(self._opens, self._admit)
                return
            _, _, admitted = heapq.heappop(self._waiting)
            if not admitted.done():  # else it was cancelled
                self._free -= 1
                admitted.set_result(None)


class Turn:
    """A context manager that holds a permit of the gate; it can be entered again and again."""

    def __init__(self, gate: Gate, priority: int, order: int) -> None:
        self._gate = gate
        self._place = priority, order

    async def __aenter__(self) -> None:
        await self._gate.acquire(*self._place)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gate.release()
