"""A thread with an event loop and a port: connections, time, and answers that break off."""

from __future__ import annotations

import asyncio
import itertools
import socket
import struct
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from tests.llm.scripted.api import Api, Outcome, kind_of
from tests.llm.scripted.log import Log
from tests.llm.scripted.records import Arrived
from tests.llm.scripted.wire import Malformed, Reader, Received, Response, receive

HOST = "127.0.0.1"
PATIENCE = 10.0


class Transport:
    """Serves an API on a port of the loopback."""

    def __init__(self, api: Api, log: Log) -> None:
        self.latency = 0.0
        self.port = 0
        self._api = api
        self._log = log
        self._connections = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="scripted-server")
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._listener: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop
        self._end: asyncio.Event
        self._gate: asyncio.Event

    # From any thread

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def stop(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: it failed
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def listen(self) -> None:
        self._call(self._listen())

    def close(self) -> None:
        self._call(self._close())

    def open_gate(self) -> None:
        self._call(self._move_gate(True))

    def shut_gate(self) -> None:
        self._call(self._move_gate(False))

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    # In the thread of the server

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self._gate = asyncio.Event()
        self._gate.set()
        # Holds the port while the server is down: a socket that is bound but does not listen refuses.
        with bound(0) as reserved:
            self.port = reserved.getsockname()[1]
            try:
                await self._listen()
                self._ready.set()
                await self._end.wait()
            finally:
                await self._close()

    async def _move_gate(self, opened: bool) -> None:
        if opened:
            self._gate.set()
        else:
            self._gate.clear()

    async def _listen(self) -> None:
        if self._listener is None:
            self._listener = await self._loop.create_server(
                self._protocol, sock=bound(self.port), backlog=2048
            )

    async def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        await asyncio.sleep(0)  # connections that were just accepted
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _protocol(self) -> asyncio.StreamReaderProtocol:
        reader = Reader(self._loop)

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._listener is None:
                writer.transport.abort()
                return
            task = self._loop.create_task(self._serve(reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return asyncio.StreamReaderProtocol(reader, connected, loop=self._loop)

    async def _serve(self, reader: Reader, writer: asyncio.StreamWriter) -> None:
        connection = next(self._connections)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._next(connection, reader, writer):
                    pass
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _next(self, connection: int, reader: Reader, writer: asyncio.StreamWriter) -> bool:
        """Answer the next request of a connection; True if the connection goes on."""
        try:
            received = await receive(reader, writer)
        except Malformed as error:
            answer = Response.error(error.status, str(error))
            writer.write(answer.head(close=True) + answer.body)
            await writer.drain()
            return False
        if received is None:
            return False
        arrived = self._log.arrive(
            kind_of(received.path),
            received.path,
            received.body,
            method=received.method,
            query=received.query,
            headers=received.headers,
            connection=connection,
        )
        try:
            outcome = self._api.handle(arrived)
            if not await self._due(arrived, outcome, reader):
                self._log.finish(arrived, disconnected=True)
                return False
            return await self._send(arrived, outcome, received, reader, writer)
        finally:
            self._log.finish(arrived)

    async def _due(self, arrived: Arrived, outcome: Outcome, reader: Reader) -> bool:
        """Wait until the answer is due; False where the client leaves before."""
        chat = arrived.kind == "chat"
        delay = outcome.delay + (self.latency if chat else 0)
        if not delay and (not chat or self._gate.is_set()):
            return True

        async def due() -> None:
            await asyncio.sleep(delay)
            if chat:
                await self._gate.wait()

        return not await came_first(reader.gone.wait(), due())

    async def _send(
        self,
        arrived: Arrived,
        outcome: Outcome,
        received: Received,
        reader: Reader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        response, fault = outcome.response, outcome.fault
        sent, then = ("all", "keep") if fault is None else (fault.sent, fault.then)
        head = response.head(close=not received.keep_alive)
        if sent == "all":
            self._log.finish(arrived, whole=response.status)
            writer.write(head + response.body)
        elif sent != "nothing":
            arrived.status = response.status
            writer.write(head + (response.body[: len(response.body) // 2] if sent == "half" else b""))
        if then == "hang":
            await reader.gone.wait()
            self._log.finish(arrived, disconnected=True)
            return False
        self._log.finish(arrived)
        if then == "reset":
            connection = writer.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return False
        await writer.drain()
        return received.keep_alive and then == "keep"


def bound(port: int) -> socket.socket:
    """A socket at a port, which others of this user may share."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind((HOST, port))
    except BaseException:
        sock.close()
        raise
    return sock


async def came_first(one: Coroutine[Any, Any, Any], other: Coroutine[Any, Any, Any]) -> bool:
    """Wait for either; True if `one` is done."""
    tasks = [asyncio.ensure_future(one), asyncio.ensure_future(other)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return tasks[0].done()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
