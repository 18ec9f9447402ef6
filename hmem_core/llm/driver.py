"""The asynchronous driver: runs any number of programs at once and answers their effects."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from hmem_core.budgets import Meter, limited
from hmem_core.effects import Ask, Embed, Embedded, Priority, Program, Rank, Run, Single
from hmem_core.errors import Closed, EncoderMissing, LLMMissing
from hmem_core.llm.batcher import Batcher
from hmem_core.llm.cache import ReplyCache
from hmem_core.llm.client import Client
from hmem_core.llm.ledger import Ledger
from hmem_core.llm.transport import OpenAITransport, Transport
from hmem_core.options import LLM

__all__ = ["AsyncDriver"]

T = TypeVar("T")

LARGEST_BATCH = 256
"""Texts that are embedded at once at most."""


class AsyncDriver:
    """Runs programs. What all of them wait for is answered together: texts are embedded in batches, questions
    go out under one limit on concurrency, the most urgent first, and each question only once at a time.

    Belongs to one event loop. Programs are stepped in it, so their own work holds it up; `ThreadDriver`
    steps them elsewhere.

    Args:
        embed: from texts to an array of rows; called in a thread.
        llm: the model; without one, a program that asks gets `LLMMissing`.
        transport: the way to the model, in place of HTTP.
        ledger: where to write what is spent.
        cache: replies that are known, in place of one at ``llm.cache``; not closed with the driver.
        embed_states: from texts to an `Embedded`, where the encoder can give states; called in a thread.
        rank: from a query and texts to their scores, where there is a reranker; called in a thread.
    """

    def __init__(
        self,
        embed: Callable[[Sequence[str]], Any],
        llm: LLM | None = None,
        *,
        transport: Transport | None = None,
        ledger: Ledger | None = None,
        cache: ReplyCache | None = None,
        largest_batch: int = LARGEST_BATCH,
        embed_states: Callable[[Sequence[str]], Embedded] | None = None,
        rank: Callable[[str, Sequence[str]], Any] | None = None,
    ) -> None:
        self.ledger = ledger or Ledger()
        self._rank = rank
        self.meter = None if llm is None or llm.budget is None else Meter(llm.budget, llm.prices)
        self._batcher = Batcher(embed, largest_batch)
        self._state_batcher = None
        if embed_states is not None:
            self._state_batcher = Batcher(functools.partial(_pairs, embed_states), largest_batch)
        self._client = None
        self._own_cache = None
        if llm is not None:
            if cache is None and llm.cache is not None:
                cache = self._own_cache = ReplyCache(llm.cache)
            self._client = Client(llm, transport or OpenAITransport(llm), self.ledger, cache)
        self._closed = False

    async def run(self, program: Program[T], *, priority: int = Priority.WRITE) -> T:
        """What `program` returns. Cancelling withdraws what it waits for and leaves other programs alone.

        Raises:
            Exception: what the program raises.
            Closed: the driver was closed meanwhile.
        """
        run = Run(program if self.meter is None else limited(program, self.meter))
        try:
            while not run.done:
                run.resume(await self.answer(run.effects, priority))
        finally:
            run.close()
        return run.result()

    async def answer(self, effects: Sequence[Single], priority: int = Priority.WRITE) -> list[Any]:
        """The replies to independent effects, in order; where one failed, its exception.

        Raises:
            Closed: the driver was closed, before or meanwhile.
        """
        replies = await asyncio.gather(
            *(self._answer(effect, priority) for effect in effects), return_exceptions=True
        )
        self._check_open()
        return replies

    async def close(self) -> None:
        """Give up what is under way and release connections and threads. Idempotent."""
        if not self._closed:
            self._closed = True
            await self._batcher.close()
            if self._state_batcher is not None:
                await self._state_batcher.close()
            if self._client is not None:
                await self._client.close()
            if self._own_cache is not None:
                self._own_cache.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _answer(self, effect: Single, priority: int) -> Any:
        self._check_open()
        if isinstance(effect, Rank):
            if self._rank is None:
                raise EncoderMissing("ranking needs a reranker, and none is configured")
            return await asyncio.to_thread(self._rank, effect.query, effect.texts)
        if not isinstance(effect, Ask):
            return await self._embed(effect, priority)
        if self._client is None:
            raise LLMMissing(f"{effect.purpose} needs a language model, and none is configured")
        return await self._client.answer(effect, priority)

    async def _embed(self, effect: Embed, priority: int) -> Any:
        if not effect.states:
            return await self._batcher.embed(effect.texts, priority)
        if self._state_batcher is None or not effect.texts:
            return Embedded(await self._batcher.embed(effect.texts, priority), None)
        vectors, states = zip(*await self._state_batcher.embed(effect.texts, priority), strict=True)
        return Embedded(np.stack(vectors), None if states[0] is None else states)

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the memory was closed while this call waited for a reply")


def _pairs(
    embed_states: Callable[[Sequence[str]], Embedded], texts: Sequence[str]
) -> npt.NDArray[np.object_]:
    """A row a text, as a `Batcher` hands them on: its vector and its states."""
    found = embed_states(texts)
    rows = np.empty(len(texts), np.object_)
    for place in range(len(texts)):
        rows[place] = found.vectors[place], None if found.states is None else found.states[place]
    return rows
