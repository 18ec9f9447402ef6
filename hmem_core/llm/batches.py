"""The batch API: files of requests that a server answers within a day, at a lower price."""

from __future__ import annotations

import asyncio
import functools
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from itertools import count
from typing import Any, Generic, Literal, TypeVar

import msgspec

from hmem_core.errors import LLMError
from hmem_core.llm.retry import Failure, backoff, error_of, may_pass, retry_after
from hmem_core.llm.transport import Completion, Connection, read_completion
from hmem_core.options import LLM

__all__ = ["BatchApi", "RemoteBatch", "Sleep", "read_results", "request_line"]

T = TypeVar("T")
N = TypeVar("N", "RemoteBatch", "_File")

Sleep = Callable[[float], Awaitable[None]]

_ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
_PAGE = 100


class _Problem(msgspec.Struct):
    code: str | None = None
    message: str | None = None
    line: int | None = None


class _Problems(msgspec.Struct):
    data: list[_Problem] | None = None


class _Counts(msgspec.Struct, frozen=True):
    completed: int = 0
    failed: int = 0

    @property
    def answered(self) -> int:
        return self.completed + self.failed


class RemoteBatch(msgspec.Struct):
    """A batch, as the server shows it."""

    id: str
    status: str
    input_file_id: str | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: _Problems | None = None
    request_counts: _Counts | None = None
    metadata: dict[str, str] | None = None

    @property
    def ended(self) -> bool:
        return self.status in ("completed", "failed", "expired", "cancelled")

    @property
    def files(self) -> list[str]:
        """The ids of its files, as far as there are any."""
        named = (self.input_file_id, self.output_file_id, self.error_file_id)
        return [file for file in named if file is not None]

    def failures(self, size: int) -> list[Failure]:
        """Why a batch that failed as a whole did so, for each of its `size` lines.

        Where the server names lines, the others were not at fault. A limit on what may be enqueued is one of
        the rate: it is said of no line and will pass.
        """
        problems = (self.errors and self.errors.data) or [_Problem(message="the server does not say why")]
        named = {problem.line: problem for problem in problems if problem.line is not None}
        if named:
            innocent = Failure("another line of its batch was refused")
            return [_failure(named[n]) if n in named else innocent for n in range(1, size + 1)]
        return [_failure(problems[0])] * size


class _Page(msgspec.Struct, Generic[N]):
    data: list[N]
    has_more: bool = False


class _File(msgspec.Struct):
    id: str
    filename: str = ""


class _Anything(msgspec.Struct):
    pass


class BatchApi:
    """Files and batches of a server. What fails for a reason that may pass is tried again.

    All methods raise `LLMError` where that did not help.
    """

    def __init__(self, llm: LLM, sleep: Sleep = asyncio.sleep, chance: random.Random | None = None) -> None:
        self._llm = llm
        self._connection = Connection(llm)
        self._sleep = sleep
        self._chance = chance or random.Random()

    async def upload(self, name: str, content: bytes) -> str:
        """Upload lines as a file of that name, which no other file may have; its id. If an answer was lost,
        the file is looked for."""

        async def look() -> _File | None:
            try:
                files = await self.uploads(name)
            except LLMError:  # a server that does not list files
                return None
            return _File(files[0]) if files else None

        file = await self._repeat(
            lambda client: client.files.with_raw_response.create(file=(name, content), purpose="batch"),
            _json(_File),
            look,
        )
        return file.id

    async def uploads(self, prefix: str) -> list[str]:
        """The ids of the uploaded files whose name begins so."""
        listing = self._pages(
            lambda client: client.files.with_raw_response.list, _Page[_File], purpose="batch"
        )
        return [file.id async for file in listing if file.filename.startswith(prefix)]

    async def delete(self, file: str) -> None:
        """Delete a file, in one attempt; one that is gone already is no error."""
        try:
            await self._repeat(
                lambda client: client.files.with_raw_response.delete(file), _json(_Anything), retries=0
            )
        except LLMError as error:
            if not isinstance(error.__cause__, Failure) or error.__cause__.status != 404:
                raise

    async def create(self, file: str, metadata: Mapping[str, str]) -> RemoteBatch:
        """Begin the batch of a file, once: if an answer was lost, the batch is looked for by its `metadata`,
        which no other batch may have."""

        async def look() -> RemoteBatch | None:
            return await self.find(metadata)

        return await self._repeat(
            lambda client: client.batches.with_raw_response.create(
                input_file_id=file, endpoint=_ENDPOINT, completion_window="24h", metadata=dict(metadata)
            ),
            _json(RemoteBatch),
            look,
        )

    async def find(self, metadata: Mapping[str, str]) -> RemoteBatch | None:
        """The batch that was created with `metadata`, if there is one."""
        listing = self._pages(lambda client: client.batches.with_raw_response.list, _Page[RemoteBatch])
        async for batch in listing:
            if batch.metadata is not None and metadata.items() <= batch.metadata.items():
                return batch
        return None

    async def retrieve(self, id: str) -> RemoteBatch:
        return await self._repeat(
            lambda client: client.batches.with_raw_response.retrieve(id), _json(RemoteBatch)
        )

    async def results(self, batch: RemoteBatch) -> dict[str, Completion | Failure]:
        """What became of the lines of a batch that ended, by name; of some nothing may be known.

        Files that hold less than the batch says are fetched again, since it is paid for.
        """
        answered = (batch.request_counts or _Counts()).answered
        for attempt in count():
            found, whole = await self._download(batch)
            if (whole and len(found) >= answered) or attempt == self._llm.retries:
                return found
            await self._sleep(backoff(attempt, self._chance))
        raise AssertionError("count() does not end")

    async def close(self) -> None:
        await self._connection.close()

    async def _download(self, batch: RemoteBatch) -> tuple[dict[str, Completion | Failure], bool]:
        """The results that can be read, and whether those are all that came."""
        lines: list[bytes] = []
        for file in (batch.error_file_id, batch.output_file_id):
            if file is not None:
                content = await self._repeat(_content_of(file), bytes)
                lines += [line for line in content.split(b"\n") if line.strip()]
        results = list(read_results(lines))
        return dict(results), len(results) == len(lines)

    async def _pages(
        self, method: Callable[[Any], Callable[..., Awaitable[Any]]], kind: type[_Page[N]], **options: Any
    ) -> AsyncIterator[N]:
        """All items of a list, which comes in pages."""
        after: dict[str, str] = {}
        while True:
            call = functools.partial(_listing, method, {"limit": _PAGE, **options, **after})
            page = await self._repeat(call, _json(kind))
            for item in page.data:
                yield item
            if not page.has_more or not page.data:
                return
            after = {"after": page.data[-1].id}

    async def _repeat(
        self,
        request: Callable[[Any], Awaitable[Any]],
        read: Callable[[bytes], T],
        look: Callable[[], Awaitable[T | None]] | None = None,
        retries: int | None = None,
    ) -> T:
        """What `read` makes of the answer to a request, which is made as often as it takes.

        `look` says after a failure what the request may have done all the same.
        """
        for attempt in count():
            try:
                response = await self._connection.call(request)
                return read(response.content)
            except Failure as error:
                failure = error
            if not may_pass(failure) or attempt == (self._llm.retries if retries is None else retries):
                raise error_of(failure, self._llm.model) from failure
            wish = retry_after(failure.headers, time.time())
            await self._sleep(backoff(attempt, self._chance) if wish is None else wish)
            if look is not None and (done := await look()) is not None:
                return done
        raise AssertionError("count() does not end")


def request_line(name: str, body: dict[str, Any]) -> bytes:
    """A line of a batch; `name` is its own in the batch."""
    line = {"custom_id": name, "method": "POST", "url": _ENDPOINT, "body": body}
    return msgspec.json.encode(line) + b"\n"


class _Answer(msgspec.Struct):
    status_code: int
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Result(msgspec.Struct):
    custom_id: str
    response: _Answer | None = None
    error: _Problem | None = None


class _ErrorBody(msgspec.Struct):
    error: _Problem


def read_results(lines: list[bytes]) -> Iterator[tuple[str, Completion | Failure]]:
    """What became of each line of a batch, by its name; lines that cannot be read are left out."""
    for line in lines:
        try:
            result = msgspec.json.decode(line, type=_Result)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        yield result.custom_id, _became(result)


def _became(result: _Result) -> Completion | Failure:
    answer = result.response
    if answer is None:
        return _failure(result.error or _Problem(message="the server does not say why"), passes=True)
    try:
        if answer.status_code == 200:
            return read_completion(answer.body)
        problem = msgspec.json.decode(answer.body, type=_ErrorBody).error
    except Failure as failure:
        return failure
    except (msgspec.MsgspecError, UnicodeDecodeError):
        problem = _Problem(message=bytes(answer.body)[:200].decode(errors="replace"))
    return Failure(problem.message or "no reason given", status=answer.status_code, code=problem.code)


def _failure(problem: _Problem, *, passes: bool = False) -> Failure:
    """A failure without a status. Limits and time-outs pass; what is wrong with an input does not."""
    code = problem.code or ""
    passes = passes or any(word in code for word in ("limit", "timeout", "expired", "server_error"))
    message = problem.message or code or "no reason given"
    return Failure(message, status=None if passes else 400, code=problem.code)


def _json(wanted: type[T]) -> Callable[[bytes], T]:
    """Reads a `wanted` from the body of an answer."""

    def read(content: bytes) -> T:
        try:
            return msgspec.json.decode(content, type=wanted)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Failure(f"it sent something else than was asked for ({error})") from error

    return read


def _listing(
    method: Callable[[Any], Callable[..., Awaitable[Any]]], options: dict[str, Any], client: Any
) -> Awaitable[Any]:
    return method(client)(**options)


def _content_of(file: str) -> Callable[[Any], Awaitable[Any]]:
    return lambda client: client.files.with_raw_response.content(file)
