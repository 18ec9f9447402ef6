"""Questions under way, so that the same one is not asked twice at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["Flights"]


class _Flight:
    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self.waiting = 0


class Flights:
    """Tasks that several may wait for. One that nobody waits for any more is cancelled."""

    def __init__(self) -> None:
        self._flights: dict[bytes, _Flight] = {}

    def __contains__(self, key: bytes) -> bool:
        return key in self._flights

    async def join(self, key: bytes, start: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """The result of the task of that key, which is started if there is none."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(start()))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            over = flight.task.done() or not flight.waiting
            if over and self._flights.get(key) is flight:
                del self._flights[key]
            if not flight.waiting and flight.task.cancel():
                await asyncio.wait([flight.task])

    async def close(self) -> None:
        """Cancel all of them."""
        tasks = [flight.task for flight in self._flights.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
