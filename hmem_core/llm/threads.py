"""The driver for code that blocks: an `AsyncDriver` in a thread of its own."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple, TypeVar

from hmem_core.budgets import Meter, limited
from hmem_core.effects import Embedded, Priority, Program, Run, Single
from hmem_core.errors import Closed
from hmem_core.llm.cache import ReplyCache
from hmem_core.llm.driver import AsyncDriver
from hmem_core.llm.ledger import Ledger
from hmem_core.llm.transport import Transport
from hmem_core.options import LLM

__all__ = ["ThreadDriver"]

T = TypeVar("T")


class ThreadDriver:
    """Runs programs for any number of threads and event loops, which all share one `AsyncDriver`.

    Programs are stepped where they are run; only what they wait for is answered in the background. The
    background thread starts with the first effect, and anew in a child after a fork.

    Args:
        embed: from texts to an array of rows; called in a thread.
        llm: the model.
        transport: makes the way to the model, in place of HTTP.
        embed_states: from texts to an `Embedded`, where the encoder can give states; called in a thread.
        rank: from a query and texts to their scores, where there is a reranker; called in a thread.
    """

    def __init__(
        self,
        embed: Callable[[Sequence[str]], Any],
        llm: LLM,
        *,
        transport: Callable[[], Transport] | None = None,
        embed_states: Callable[[Sequence[str]], Embedded] | None = None,
        rank: Callable[[str, Sequence[str]], Any] | None = None,
    ) -> None:
        self.ledger = Ledger()
        self._cache = None if llm.cache is None else ReplyCache(llm.cache)
        self._make = functools.partial(
            _driver, embed, llm, transport, self.ledger, self._cache, embed_states, rank
        )
        self._meter = None if llm.budget is None else Meter(llm.budget, llm.prices)
        self._lock = threading.Lock()
        self._home: _Home | None = None
        self._closed = False
        _drivers.add(self)

    def run(self, program: Program[T], *, priority: int = Priority.WRITE) -> T:
        """What `program` returns; the calling thread waits for it, inside a running event loop too.

        Raises:
            Exception: what the program raises.
            Closed: the driver was closed.
        """
        program = self._limited(program)
        try:
            run = Run(program)
            while not run.done:
                future = self._submit(run.effects, priority)
                try:
                    replies = future.result()
                finally:
                    future.cancel()  # withdraws what is still waited for after an interrupt
                run.resume(replies)
            return run.result()
        finally:
            program.close()

    async def run_in(self, steps: Executor, program: Program[T], *, priority: int = Priority.WRITE) -> T:
        """What `program` returns, without holding up the caller's event loop.

        Cancelling withdraws what the program waits for; a step that has begun is made whole.

        Args:
            steps: where the program's own work is done.

        Raises:
            as `run`.
        """
        program = self._limited(program)
        loop = asyncio.get_running_loop()
        step: asyncio.Future[Any] = loop.create_future()
        step.set_result(None)
        try:
            step = loop.run_in_executor(steps, Run, program)
            run: Run[T] = await asyncio.shield(step)
            while not run.done:
                replies = await asyncio.wrap_future(self._submit(run.effects, priority))
                step = loop.run_in_executor(steps, run.resume, replies)
                await asyncio.shield(step)
            return run.result()
        finally:
            step.add_done_callback(lambda _: program.close())

    def close(self) -> None:
        """Give up what is under way and end the thread. Idempotent."""
        with self._lock:
            self._closed = True
            home, self._home = self._home, None
        if home is not None:
            home.end()
            home.thread.join()
        if self._cache is not None:
            self._cache.close()

    def forget(self) -> None:
        """Erase the replies that are known, which may quote what was forgotten.

        Raises:
            StorageError: their file could not be erased.
        """
        if self._cache is not None:
            self._cache.clear()

    def _limited(self, program: Program[T]) -> Program[T]:
        return program if self._meter is None else limited(program, self._meter)

    def _submit(self, effects: Sequence[Single], priority: int) -> Future[list[Any]]:
        with self._lock:
            if self._closed:
                raise Closed("this memory was closed; open it again to use it")
            if self._home is None:
                self._home = _Home.begin(self._make)
                weakref.finalize(self, self._home.end).atexit = False
            home = self._home
            return asyncio.run_coroutine_threadsafe(home.driver.answer(effects, priority), home.loop)

    def _after_fork_in_child(self) -> None:
        if self._home is not None:
            _left_behind.append(self._home)  # its sockets are the parent's, so nothing in it may be closed
        self._home = None
        self._lock = threading.Lock()
        self.ledger.renew()
        if self._meter is not None:
            self._meter.renew()
        if self._cache is not None:
            self._cache.renew()


class _Home(NamedTuple):
    """A thread with an event loop, and the driver that lives there."""

    thread: threading.Thread
    loop: asyncio.AbstractEventLoop
    driver: AsyncDriver
    stop: asyncio.Event
    process: int

    @classmethod
    def begin(cls, make: Callable[[], AsyncDriver]) -> _Home:
        ready: Future[tuple[asyncio.AbstractEventLoop, AsyncDriver, asyncio.Event]] = Future()
        thread = threading.Thread(
            target=lambda: asyncio.run(_live(make, ready)), name="hmem-llm", daemon=True
        )
        thread.start()
        return cls(thread, *ready.result(), os.getpid())

    def end(self) -> None:
        """Let the thread end, if it is one of this process."""
        if self.process == os.getpid() and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.stop.set)


async def _live(
    make: Callable[[], AsyncDriver],
    ready: Future[tuple[asyncio.AbstractEventLoop, AsyncDriver, asyncio.Event]],
) -> None:
    async with make() as driver:
        stop = asyncio.Event()
        ready.set_result((asyncio.get_running_loop(), driver, stop))
        del driver
        await stop.wait()
    # Those who still wait for a reply are now told that there will be none.
    if others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)


def _driver(
    embed: Callable[[Sequence[str]], Any],
    llm: LLM,
    transport: Callable[[], Transport] | None,
    ledger: Ledger,
    cache: ReplyCache | None,
    embed_states: Callable[[Sequence[str]], Embedded] | None,
    rank: Callable[[str, Sequence[str]], Any] | None,
) -> AsyncDriver:
    way = None if transport is None else transport()
    return AsyncDriver(
        embed, llm, transport=way, ledger=ledger, cache=cache, embed_states=embed_states, rank=rank
    )


_drivers: weakref.WeakSet[ThreadDriver] = weakref.WeakSet()
_left_behind: list[_Home] = []


def _after_fork_in_child() -> None:
    for driver in list(_drivers):
        driver._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
