"""The way to the server: one request, one completion, no opinion about retries."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from hmem_core.errors import LLMMissing
from hmem_core.llm.retry import Failure
from hmem_core.options import LLM

__all__ = ["Completion", "Connection", "OpenAITransport", "Transport", "read_completion"]

T = TypeVar("T")

_CONNECT = 10.0
"""Seconds that connecting may take."""

_LANE = 16
"""Requests under way in one client. Its pool looks at all its connections for each request, which costs more
than the request itself where there are a hundred."""


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """What a model replied. Token counts are None where the server does not say."""

    text: str | None
    finish_reason: str | None = None
    refusal: str | None = None
    input_tokens: int | None = None
    cached_tokens: int = 0
    output_tokens: int | None = None


class Transport(Protocol):
    """Sends requests. A scripted one stands in for a server in tests."""

    async def complete(self, body: Mapping[str, Any]) -> Completion:
        """The completion of a chat, as an OpenAI-compatible server makes it.

        Raises:
            Failure: there was none.
        """

    async def close(self) -> None:
        """Release connections."""


class Connection:
    """An `openai.AsyncOpenAI`, loaded when it is first needed; several where many requests are under way.
    Belongs to one event loop."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm
        self._openai: Any = None
        self._lanes: list[_Lane] = []
        self._loading = asyncio.Lock()

    async def call(self, request: Callable[[Any], Awaitable[T]]) -> T:
        """The answer to a request, which is given the client.

        Raises:
            Failure: there was none.
        """
        openai = await self._load()
        lane = self._lane()
        lane.busy += 1
        try:
            return await request(lane.client)
        except openai.APIStatusError as error:
            said = error.body.get("message") if isinstance(error.body, dict) else None
            raise Failure(
                said if isinstance(said, str) else str(error.message),
                status=error.status_code,
                code=error.code,
                headers={name.lower(): value for name, value in error.response.headers.items()},
            ) from error
        except openai.APIConnectionError as error:
            raise Failure(f"{error.message} {error.__cause__ or ''}".strip()) from error
        finally:
            lane.busy -= 1

    async def close(self) -> None:
        for lane in self._lanes:
            await lane.client.close()

    def _lane(self) -> _Lane:
        """The client with the fewest requests under way, or a new one where all have many."""
        lane = min(self._lanes, key=lambda lane: lane.busy, default=None)
        if lane is None or lane.busy >= _LANE:
            lane = _Lane(
                self._openai.AsyncOpenAI(
                    api_key=self._llm.key,
                    base_url=self._llm.base_url,
                    max_retries=0,  # ours would be multiplied by them
                    timeout=self._openai.Timeout(self._llm.timeout, connect=min(_CONNECT, self._llm.timeout)),
                )
            )
            self._lanes.append(lane)
        return lane

    async def _load(self) -> Any:
        async with self._loading:
            if self._openai is None:
                try:
                    # In a thread, since it takes a second, in which embeddings can go on.
                    self._openai = await asyncio.to_thread(importlib.import_module, "openai")
                except ImportError as error:
                    raise LLMMissing(
                        "language models need the package openai; install it with: "
                        "pip install 'hmem-core[llm]'"
                    ) from error
        return self._openai


class _Lane:
    """A client, and how many requests it has under way."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.busy = 0


class OpenAITransport:
    """Sends requests by `openai.AsyncOpenAI`. Belongs to one event loop."""

    def __init__(self, llm: LLM) -> None:
        self._connection = Connection(llm)

    async def complete(self, body: Mapping[str, Any]) -> Completion:
        # What is in `extra_body` takes the place of the arguments, and is not walked through for types,
        # which would cost more than all the rest.
        response = await self._connection.call(
            lambda client: client.chat.completions.with_raw_response.create(
                model=body["model"], messages=[], extra_body=body
            )
        )
        return read_completion(response.content)

    async def close(self) -> None:
        await self._connection.close()


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Body(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


def read_completion(content: bytes | msgspec.Raw) -> Completion:
    """The completion that the body of an answer holds.

    Raises:
        Failure: it holds none.
    """
    try:
        body = msgspec.json.decode(content, type=_Body)
        choice, usage = body.choices[0], body.usage or _Usage()
    except (msgspec.MsgspecError, UnicodeDecodeError, IndexError) as error:
        raise Failure(f"it sent something that is no completion ({error})") from error
    details = usage.prompt_tokens_details or _Details()
    return Completion(
        text=choice.message.content,
        finish_reason=choice.finish_reason,
        refusal=choice.message.refusal,
        input_tokens=usage.prompt_tokens,
        cached_tokens=details.cached_tokens or 0,
        output_tokens=usage.completion_tokens,
    )
