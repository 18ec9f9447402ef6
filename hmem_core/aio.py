"""`AsyncMemory`: a memory for code that runs in an event loop."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

from hmem_core.effects import Program
from hmem_core.errors import Closed
from hmem_core.factview import Facts
from hmem_core.memory import Memory
from hmem_core.methods import written
from hmem_core.opening import open as open_memory
from hmem_core.records import Event, Segment
from hmem_core.retrieval.events import Events
from hmem_core.retrieval.outline import Segments

__all__ = ["AsyncEvents", "AsyncFacts", "AsyncMemory", "AsyncSegments"]

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

_THREADS = 4
"""Calls of one memory that are under way at once; more wait their turn."""


class _Awaited(Generic[S]):
    """An object whose methods are run in the threads of the memory it belongs to.

    Args:
        memory: None for the memory itself.
    """

    def __init__(self, object: S, memory: AsyncMemory | None = None) -> None:
        self._object = object
        self._memory = memory

    def _home(self) -> AsyncMemory:
        """The memory that the object belongs to."""
        return cast("AsyncMemory", self) if self._memory is None else self._memory

    async def _run(self, call: Callable[[], T]) -> T:
        return await self._home()._in_thread(call)


def _awaited(
    method: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[_Awaited[S], P], Coroutine[Any, Any, T]]:
    """`method` as a coroutine that runs it in a thread."""

    async def call(self: _Awaited[S], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(functools.partial(method, self._object, *args, **kwargs))

    functools.update_wrapper(call, method)
    return call


def _driven(
    method: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[_Awaited[S], P], Coroutine[Any, Any, T]]:
    """`method`, a program, as a coroutine; while it waits for a language model it takes up no thread."""

    async def call(self: _Awaited[S], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._home()._drive(self._object, method, *args, **kwargs)

    functools.update_wrapper(call, method)
    return call


class AsyncSegments(_Awaited[Segments]):
    """The methods of `Segments`, awaited; ``walk`` is for ``async for``. As `AsyncMemory.segments`."""

    def __init__(self, memory: AsyncMemory) -> None:
        super().__init__(memory._object.segments, memory)

    root = _awaited(Segments.root)
    get = _awaited(Segments.get)
    children = _awaited(Segments.children)
    by_span = _awaited(Segments.by_span)
    of_turn = _awaited(Segments.of_turn)
    text = _awaited(Segments.text)

    async def walk(self, *args: Any, **kwargs: Any) -> AsyncIterator[Segment]:
        """As `Segments.walk`: the memory is that of the moment when the first segment is asked for."""
        steps = await self._run(lambda: self._object.walk(*args, **kwargs))
        while (segment := await self._run(lambda: next(steps, None))) is not None:
            yield segment


class AsyncEvents(_Awaited[Events]):
    """The methods of `Events`, awaited; ``all`` is for ``async for``. As `AsyncMemory.events`."""

    def __init__(self, memory: AsyncMemory) -> None:
        super().__init__(memory._object.events, memory)

    get = _awaited(Events.get)
    of_turn = _awaited(Events.of_turn)
    search = _driven(Events.search)

    async def all(self, *args: Any, **kwargs: Any) -> AsyncIterator[Event]:
        """As `Events.all`: the memory is that of the moment when the first event is asked for."""
        steps = await self._run(lambda: self._object.all(*args, **kwargs))
        while (event := await self._run(lambda: next(steps, None))) is not None:
            yield event

    def __aiter__(self) -> AsyncIterator[Event]:
        return self.all()


class AsyncFacts(_Awaited[Facts]):
    """The methods of `Facts`, awaited. As `AsyncMemory.facts`."""

    def __init__(self, memory: AsyncMemory) -> None:
        super().__init__(memory._object.facts, memory)

    add = _driven(Facts.add)
    add_many = _driven(Facts.add_many)
    retract = _driven(Facts.retract)
    undo = _driven(Facts.undo)
    policy = _driven(Facts.policy)
    alias = _driven(Facts.alias)
    locate = _driven(Facts.locate)
    parse = _driven(Facts.parse)
    forget = _awaited(Facts.forget)
    find = _awaited(Facts.find)
    about = _awaited(Facts.about)
    get = _awaited(Facts.get)
    history = _awaited(Facts.history)
    why = _awaited(Facts.why)
    rewrite = _awaited(Facts.rewrite)


class AsyncMemory(_Awaited[Memory]):
    """The methods of `Memory`, awaited. Made by ``await AsyncMemory.open(...)``.

    The work is done in threads of the memory's own, so the event loop never waits for the disk, the
    encoder or a lock. Cancelling a call abandons its answer, and withdraws what it waits for of a language
    model: a write that has begun is still made whole.
    """

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="hmem-async")
        self._calls: set[asyncio.Future[None]] = set()
        self._closed = False

    @classmethod
    async def open(cls, *args: Any, **kwargs: Any) -> Self:
        """Open a memory; the arguments are those of `hmem.open`."""
        return cls(await asyncio.to_thread(open_memory, *args, **kwargs))

    async def _in_thread(self, call: Callable[[], T]) -> T:
        if self._closed:
            raise Closed("this memory was closed; open it again to use it")
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def _drive(self, object: Any, method: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Run `method`, a program of `object`."""
        if (driver := self._object._driver) is None:
            return await self._run(functools.partial(method, object, *args, **kwargs))
        program, priority = written(method)
        begun: Program[T] = program(object, *args, **kwargs)
        with self._under_way():
            return await driver.run_in(self._threads, begun, priority=priority)

    add = _driven(Memory.add)
    forget = _awaited(Memory.forget)
    get = _awaited(Memory.get)
    turns = _awaited(Memory.turns)
    search = _driven(Memory.search)
    context = _driven(Memory.context)
    guided = _driven(Memory.guided)
    settle = _driven(Memory.settle)
    stats = _awaited(Memory.stats)
    checkpoint = _awaited(Memory.checkpoint)
    verify = _awaited(Memory.verify)

    @property
    def segments(self) -> AsyncSegments:
        """The segment tree over the turns, to walk and to read."""
        return AsyncSegments(self)

    @property
    def events(self) -> AsyncEvents:
        """What the turns are about: events, to read and to search."""
        return AsyncEvents(self)

    @property
    def facts(self) -> AsyncFacts:
        """What the memory holds to be true."""
        return AsyncFacts(self)

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        """Let `close` wait for the block."""
        if self._closed:
            raise Closed("this memory was closed; open it again to use it")
        over = asyncio.get_running_loop().create_future()
        self._calls.add(over)
        try:
            yield
        finally:
            self._calls.discard(over)
            over.set_result(None)

    async def close(self) -> None:
        """Finish the calls under way and release files. Idempotent."""
        self._closed = True
        if self._calls:
            await asyncio.wait(self._calls)
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._threads.shutdown(wait=True)
        self._object.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<hmem.AsyncMemory {self._object!r}>"
