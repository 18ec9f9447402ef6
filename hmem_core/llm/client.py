"""The client: from one question to one validated reply, whatever the server does in between."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from itertools import count
from typing import Any

from hmem_core.budgets import Bill, Billed, prompt_tokens
from hmem_core.effects import Ask, Message
from hmem_core.errors import LLMError, LLMUnavailable, MalformedReply
from hmem_core.llm.cache import ReplyCache, fingerprint
from hmem_core.llm.dialect import Dialect
from hmem_core.llm.flights import Flights
from hmem_core.llm.gate import Gate, Turn
from hmem_core.llm.ledger import Ledger, usage_of
from hmem_core.llm.replies import parse_reply, repair_messages
from hmem_core.llm.retry import Failure, backoff, concerns_all, error_of, may_pass, retry_after
from hmem_core.llm.schemas import json_schema
from hmem_core.llm.transport import Completion, Transport
from hmem_core.options import LLM
from hmem_core.reports import Usage

__all__ = ["Client"]

_LONGEST_AWAY = 60.0
"""Seconds after which a server is tried again that wants to be left alone for longer than questions wait."""


class Client:
    """Answers questions. Belongs to one event loop.

    Args:
        llm: the model.
        transport: the way to it.
        ledger: where to write what was spent.
        cache: replies that are known; not closed with the client.
        chance: for the jitter of back-offs.
    """

    def __init__(
        self,
        llm: LLM,
        transport: Transport,
        ledger: Ledger,
        cache: ReplyCache | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self._llm = llm
        self._transport = transport
        self._ledger = ledger
        self._chance = chance or random.Random()
        self._cache = cache
        self._dialect = Dialect.first(llm)
        self._schemas: dict[type[Any], dict[str, Any]] = {}
        self._flights = Flights()
        self._gate = Gate(llm.concurrency)
        self._gone: tuple[float, Failure, float] | None = None

    async def answer(self, ask: Ask, priority: int) -> Any:
        """A validated ``ask.schema``.

        Raises:
            LLMError: there is none; of which kind says why.
        """
        key = fingerprint(ask, self._llm, self._schema(ask.schema))
        if key not in self._flights:
            return await self._flights.join(key, lambda: self._paid(ask, key, priority))
        usage = Usage(failures=1)
        try:
            reply = await self._flights.join(key, lambda: self._paid(ask, key, priority))
            usage = Usage(saved=1)
        finally:
            self._pay(ask, usage)
        return reply

    async def close(self) -> None:
        await self._flights.close()
        await self._transport.close()

    # -- one question --------------------------------------------------------------------------------

    async def _paid(self, ask: Ask, key: bytes, priority: int) -> Any:
        """The reply, with what it took put on the bill, whether it came or not."""
        bill = Bill(Usage())
        try:
            return await self._answer(ask, key, priority, bill)
        except LLMError:
            bill.add(Usage(failures=1))
            raise
        finally:
            self._pay(ask, bill.usage or Usage())

    def _pay(self, ask: Ask, usage: Usage) -> None:
        self._ledger.add(ask.purpose, usage)
        for bill in ask.bills if isinstance(ask, Billed) else ():
            bill.add(usage)

    async def _answer(self, ask: Ask, key: bytes, priority: int, bill: Bill) -> Any:
        if (kept := self._kept(ask, key)) is not None:
            bill.add(Usage(saved=1))
            return kept
        generation = 0 if self._cache is None else self._cache.generation
        try:
            async with asyncio.timeout(None) as deadline:
                completion, reply = await self._valid(ask, _Way(self._gate.turn(priority), deadline, bill))
        except TimeoutError as error:
            raise LLMUnavailable(
                f"{self._llm.model} gave no reply to {ask.purpose} within {self._llm.timeout:g} seconds"
            ) from error
        if self._cache is not None:
            self._cache.put(key, completion.text or "", generation)
        return reply

    def _kept(self, ask: Ask, key: bytes) -> Any:
        """The reply that the cache has; None if there is none."""
        text = None if self._cache is None else self._cache.get(key)
        try:
            return None if text is None else parse_reply(text, ask.schema)
        except MalformedReply:  # kept by a version that was less strict
            return None

    async def _valid(self, ask: Ask, way: _Way) -> tuple[Completion, Any]:
        """A completion that fits, and what it says; one that does not fit is asked for once more."""
        messages, max_tokens = ask.messages, ask.max_tokens
        first = await self._complete(ask, messages, max_tokens, way)
        try:
            return first, _parse(first, ask.schema)
        except MalformedReply as error:
            if not error.repairable:
                raise
            if first.finish_reason == "length":
                max_tokens *= 2
            else:
                messages = repair_messages(messages, first.text, error)
        second = await self._complete(ask, messages, max_tokens, way)
        return second, _parse(second, ask.schema)

    # -- one completion ------------------------------------------------------------------------------

    async def _complete(
        self, ask: Ask, messages: Sequence[Message], max_tokens: int, way: _Way
    ) -> Completion:
        """A completion, after as many attempts as it takes."""
        for attempt in count():
            outcome = await self._attempt(ask, messages, max_tokens, way, attempt)
            if isinstance(outcome, Completion):
                return outcome
            failure, seconds = outcome
            if attempt == self._llm.retries or not may_pass(failure) or not way.allows(seconds):
                raise error_of(failure, self._llm.model) from failure
            way.bill.add(Usage(retries=1))
            if not concerns_all(failure):  # else the gate makes it wait, as all others
                await asyncio.sleep(seconds)
        raise AssertionError("count() does not end")

    async def _attempt(
        self, ask: Ask, messages: Sequence[Message], max_tokens: int, way: _Way, attempt: int
    ) -> Completion | tuple[Failure, float]:
        """A completion; or why there was none, and how many seconds to wait before the next attempt.

        What is refused only for the dialect it is in is sent in the next one.
        """
        while True:
            async with way.turn:
                way.begin(self._llm.timeout)
                if (away := self._away()) is not None:
                    return away
                dialect = self._dialect
                body = dialect.request(self._llm, messages, self._schema(ask.schema), max_tokens)
                try:
                    return await self._send(body, messages, way.bill)
                except Failure as error:
                    failure = error
                other = dialect.after(failure, self._llm)
                if other is None:
                    return failure, self._pause(failure, attempt)
                if self._dialect == dialect:  # else another question found out in the meantime
                    self._dialect = other

    def _pause(self, failure: Failure, attempt: int) -> float:
        """Seconds to wait after a failure. Where others would fare the same, the gate closes for so long."""
        wish = retry_after(failure.headers, time.time())
        seconds = backoff(attempt, self._chance) if wish is None else wish
        if concerns_all(failure) and may_pass(failure):
            if seconds < self._llm.timeout:
                self._gate.rest(seconds)
            else:
                until = asyncio.get_running_loop().time() + min(seconds, _LONGEST_AWAY)
                self._gone = until, failure, seconds
        return seconds

    def _away(self) -> tuple[Failure, float] | None:
        """The failure of an earlier question that makes it vain to send this one."""
        if self._gone is None or asyncio.get_running_loop().time() >= self._gone[0]:
            return None
        return self._gone[1:]

    async def _send(self, body: dict[str, Any], messages: Sequence[Message], bill: Bill) -> Completion:
        started = time.perf_counter()
        completion = None
        try:
            completion = await self._transport.complete(body)
            return completion
        finally:
            usage = Usage(seconds=time.perf_counter() - started)
            bill.add(usage if completion is None else usage + self._usage(completion, messages))

    def _schema(self, schema: type[Any]) -> dict[str, Any]:
        if (known := self._schemas.get(schema)) is None:
            known = self._schemas[schema] = json_schema(schema)
        return known

    def _usage(self, completion: Completion, messages: Sequence[Message]) -> Usage:
        return usage_of(completion, prompt_tokens(messages), self._llm.prices)


class _Way:
    """What the attempts for one question share: its place in the queue, its deadline and its bill."""

    def __init__(self, turn: Turn, deadline: asyncio.Timeout, bill: Bill) -> None:
        self.turn = turn
        self.bill = bill
        self._deadline = deadline

    def begin(self, seconds: float) -> None:
        """Start the deadline, at the first request: time in the queue is not the server's fault."""
        if self._deadline.when() is None:
            self._deadline.reschedule(asyncio.get_running_loop().time() + seconds)

    def allows(self, seconds: float) -> bool:
        """Whether anything can come of waiting so long."""
        ends = self._deadline.when()
        return ends is None or asyncio.get_running_loop().time() + seconds < ends


def _parse(completion: Completion, schema: type[Any]) -> Any:
    return parse_reply(
        completion.text, schema, finish_reason=completion.finish_reason, refusal=completion.refusal
    )
