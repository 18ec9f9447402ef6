"""The offline driver: any number of programs in lockstep, their questions in batches, killed and resumed.

Programs are deterministic, so their replies are their state: after a restart each runs from its beginning,
is told what it was told before, and goes on from there. What was submitted and what became of it stands in
a `Record`; `follow` says what that means for a question. Nothing else is kept.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar

import msgspec

from hmem_core.budgets import Bill, Billed, Meter, prompt_tokens
from hmem_core.effects import Ask, Embedded, Program, Run
from hmem_core.errors import InvalidInput, LLMError, LLMRefused
from hmem_core.llm.batches import BatchApi, RemoteBatch, Sleep, request_line
from hmem_core.llm.cache import fingerprint
from hmem_core.llm.dialect import Dialect
from hmem_core.llm.driver import AsyncDriver
from hmem_core.llm.ledger import Ledger, usage_of
from hmem_core.llm.outcomes import Line, Outcome, follow
from hmem_core.llm.record import Batch, BatchLine, Record
from hmem_core.llm.retry import Failure, error_of, may_pass
from hmem_core.llm.schemas import json_schema
from hmem_core.llm.transport import Completion
from hmem_core.options import LLM
from hmem_core.reports import Usage

__all__ = ["OfflineDriver"]

T = TypeVar("T")

_log = logging.getLogger("hmem.llm")

MAX_LINES = 50_000
MAX_BYTES = 200_000_000
"""What one batch of OpenAI's may hold."""

_WAITING: Any = object()


class OfflineDriver:
    """Runs programs whose questions may take a day: they go to the batch API, a round of all programs at a
    time. Texts are embedded at once.

    Killed at any moment and run again with the same programs, it goes on, and no question is sent twice.
    The same question of several programs is asked once. The server's files of a batch are deleted once what
    is in them is recorded. `began` is when the first process of the run did, in UTC microseconds.

    Args:
        llm: the model. Its budget is for all that ``state`` records; its prices are those of batches.
        embed: from texts to an array of rows; called in a thread.
        state: file of the record, for one process at a time. It holds what the model replied: treat it as
            you treat the memories, and delete it when they are complete.
        poll: seconds between two looks at the batches under way.
        tries: batches in which a question is sent at most when it gets no reply.
        stragglers: what becomes of a question after that: it is asked online, or fails.
        max_lines: lines of a batch at most; further ones go into another.
        max_bytes: bytes of a batch at most.
        ledger: where to write what was spent, by this process and those before it.
        progress: called with the number of questions of each round that goes out as batches.
        sleep: waits, between polls and before attempts.
        embed_states: from texts to an `Embedded`, where the encoder can give states; called in a thread.
    """

    def __init__(
        self,
        llm: LLM,
        embed: Callable[[Sequence[str]], Any],
        state: str | os.PathLike[str],
        *,
        poll: float = 60.0,
        tries: int = 3,
        stragglers: Literal["online", "fail"] = "online",
        max_lines: int = MAX_LINES,
        max_bytes: int = MAX_BYTES,
        ledger: Ledger | None = None,
        progress: Callable[[int], None] | None = None,
        sleep: Sleep = asyncio.sleep,
        embed_states: Callable[[Sequence[str]], Embedded] | None = None,
    ) -> None:
        for name, value in (("tries", tries), ("max_lines", max_lines), ("max_bytes", max_bytes)):
            if value < 1:
                raise InvalidInput(f"{name}={value!r}: a whole number from 1")
        if stragglers not in ("online", "fail"):
            raise InvalidInput(f"stragglers={stragglers!r}: 'online' or 'fail'")
        self.ledger = ledger or Ledger()
        self._llm = llm
        self._poll = poll
        self._tries = tries
        self._online = stragglers == "online"
        self._limits = max_lines, max_bytes
        self._sleep = sleep
        self._progress = progress
        self._record = Record(state)
        self.began = self._record.began
        self._dialect = self._record.dialect() or Dialect.first(llm)
        for purpose, usage in self._record.spent().items():
            self.ledger.add(purpose, usage)
        self._driver = AsyncDriver(embed, llm, embed_states=embed_states)
        self._api = BatchApi(llm, sleep)
        self._schemas: dict[type[Any], dict[str, Any]] = {}
        self._meter: Meter | None = None
        self._bills: dict[bytes, Bill] = {}
        self._outcomes: dict[bytes, list[Outcome]] = {}
        self._errors: dict[bytes, LLMError] = {}

    async def run(self, programs: Mapping[str, Callable[[], Program[T]]]) -> dict[str, T | Exception]:
        """What each program returned, or what it raised, by its name.

        Raises:
            LLMError: the batch API itself cannot be used. What was submitted is recorded: run again later.
            StorageError: the record cannot be written.
        """
        await self._collect(self._record.open_batches())  # of a process before this one
        if self._llm.budget is not None:
            spent = sum(self._record.spent().values(), Usage())
            self._meter = Meter(self._llm.budget, self._llm.prices, spent)
        self._bills, self._outcomes, self._errors = {}, {}, {}
        players: dict[str, _Player[T]] = {}
        try:
            for name, program in programs.items():
                players[name] = _Player(program())
            while lines := await self._advance(players.values()):
                await self._ask(lines)
        finally:
            for player in players.values():
                player.run.close()
        return {name: player.run.outcome for name, player in players.items()}

    async def close(self) -> None:
        """Release connections, threads and the record. Batches under way stay so. Idempotent."""
        await self._driver.close()
        await self._api.close()
        self._record.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # -- programs ------------------------------------------------------------------------------------

    async def _advance(self, players: Iterable[_Player[Any]]) -> dict[bytes, _Open]:
        """Take all programs as far as they come with what is known; the lines that they then wait for."""
        lines: dict[bytes, _Open] = {}
        moving = [player for player in players if not player.run.done]
        while moving:
            await self._embed(moving)
            for player in moving:
                self._reply(player, lines)
            moving = [player for player in moving if player.ready and not player.resume()]
        return lines

    async def _embed(self, players: Iterable[_Player[Any]]) -> None:
        """Answer what is to be embedded, for all programs together."""
        places = [
            (player, place)
            for player in players
            for place, effect in enumerate(player.run.effects)
            if player.replies[place] is _WAITING and not isinstance(effect, Ask)
        ]
        replies = await self._driver.answer([player.run.effects[place] for player, place in places])
        for (player, place), reply in zip(places, replies, strict=True):
            player.replies[place] = reply

    def _reply(self, player: _Player[Any], lines: dict[bytes, _Open]) -> None:
        """Answer those questions of a program whose answers are known; add lines for the others."""
        for place, ask in enumerate(player.run.effects):
            if player.replies[place] is not _WAITING or not isinstance(ask, Ask):
                continue
            if (key := player.keys[place]) is None:
                try:
                    key = player.keys[place] = self._meet(ask)
                except Exception as error:  # it cannot be put to any model
                    player.replies[place] = error
                    continue
            outcomes = self._outcomes[key]
            reply = self._errors.get(key) or follow(ask, outcomes, self._llm.model)
            if isinstance(reply, Line):
                lines.setdefault(key, _Open(ask, reply))
                continue
            if isinstance(reply, LLMError):
                self.ledger.add(ask.purpose, Usage(failures=1))
            for bill in ask.bills if isinstance(ask, Billed) else ():
                bill.add(sum((outcome.usage for outcome in outcomes), Usage()))
            player.replies[place] = reply

    def _meet(self, ask: Ask) -> bytes:
        """The key of a question of a program, under which now stands what became of it so far."""
        key = fingerprint(ask, self._llm, self._schema(ask.schema))
        if key in self._outcomes:
            self.ledger.add(ask.purpose, Usage(saved=1))
        else:
            self._outcomes[key] = self._record.outcomes(key)
        return key

    # -- questions -----------------------------------------------------------------------------------

    async def _ask(self, lines: Mapping[bytes, _Open]) -> None:
        """Bring all questions one request further. Those that go online come first, so that their programs
        are there when the next batch is made."""
        late = {key: one for key, one in lines.items() if one.line.lost >= self._tries}
        if not late:
            await self._submit({key: one for key, one in lines.items() if self._affordable(key, one)})
        elif self._online:
            allowed = [(key, one) for key, one in late.items() if self._affordable(key, one)]
            await asyncio.gather(*(self._ask_online(key, one.ask) for key, one in allowed))
        else:
            for key, one in late.items():
                assert one.line.last is not None
                self._errors[key] = error_of(one.line.last, self._llm.model)

    def _affordable(self, key: bytes, one: _Open) -> bool:
        """Whether the budget has room for one more request; what it may cost is set aside."""
        if self._meter is not None:
            try:
                ask = Ask(one.ask.purpose, one.line.messages, one.ask.schema, one.line.max_tokens)
                self._bills[key] = self._meter.open(ask)
            except LLMError as error:
                self._errors[key] = error
                return False
        return True

    async def _ask_online(self, key: bytes, ask: Ask) -> None:
        bill = Bill(Usage())
        asked = Billed(ask.purpose, ask.messages, ask.schema, ask.max_tokens, (bill,))
        (reply,) = await self._driver.answer([asked])
        if isinstance(reply, LLMError):
            self._errors[key] = reply
            result: Completion | Failure = Failure(str(reply))
        elif isinstance(reply, BaseException):
            raise reply
        else:
            result = Completion(text=msgspec.json.encode(reply).decode(), finish_reason="stop")
        usage = msgspec.structs.replace(bill.usage or Usage(), failures=0)  # counted where it is replied
        outcome = Outcome.of(result, usage)
        self._record.add(key, ask.purpose, outcome)
        self._note(key, ask.purpose, outcome)

    def _note(self, key: bytes, purpose: str, outcome: Outcome) -> None:
        """Take notice of an outcome that was recorded."""
        self.ledger.add(purpose, outcome.usage)
        if key in self._outcomes:
            self._outcomes[key].append(outcome)
        self._settle(key, outcome.usage)

    def _settle(self, key: bytes, usage: Usage) -> None:
        """Put what a request took in place of what was set aside for it."""
        if self._meter is not None and (bill := self._bills.pop(key, None)) is not None:
            bill.add(usage)
            self._meter.settle(bill)

    def _schema(self, schema: type[Any]) -> dict[str, Any]:
        if (known := self._schemas.get(schema)) is None:
            known = self._schemas[schema] = json_schema(schema)
        return known

    # -- batches -------------------------------------------------------------------------------------

    async def _submit(self, lines: Mapping[bytes, _Open]) -> None:
        """Send lines in as many batches as they need, and wait for what becomes of them."""
        if self._progress is not None and lines:
            self._progress(len(lines))
        batches = []
        for names, content in _packed(self._requests(lines), *self._limits):
            asked = [
                BatchLine(key, lines[key].ask.purpose, prompt_tokens(lines[key].line.messages))
                for key in names
            ]
            batch = self._record.begin(asked, self._dialect)
            file = await self._api.upload(f"{self._file(batch)}jsonl", content)
            created = await self._api.create(file, self._metadata(batch))
            batches.append(self._record.created(batch, created.id))
        await self._collect(batches)

    def _requests(self, lines: Mapping[bytes, _Open]) -> Iterator[tuple[bytes, bytes]]:
        for key, (ask, line) in lines.items():
            schema = self._schema(ask.schema)
            body = self._dialect.request(self._llm, line.messages, schema, line.max_tokens)
            yield key, request_line(key.hex(), body)

    def _metadata(self, batch: Batch) -> dict[str, str]:
        """By what a batch is found again whose id was not recorded."""
        return {"hmem_run": self._record.name, "hmem_batch": str(batch.number)}

    def _file(self, batch: Batch) -> str:
        """How the name begins of the file that is uploaded for a batch."""
        return f"hmem-{self._record.name}-{batch.number}."

    async def _collect(self, batches: Iterable[Batch]) -> None:
        """Wait for batches, record what became of their lines, and delete their files."""
        errors: list[LLMError] = []
        open_batches = [known for batch in batches if (known := await self._found(batch)) is not None]
        while open_batches:
            waiting = []
            for batch in open_batches:
                assert batch.id is not None
                try:
                    remote = await self._api.retrieve(batch.id)
                    if remote.ended:
                        await self._take(batch, remote)
                    else:
                        waiting.append(batch)
                except LLMRefused as error:  # said once the other batches are recorded
                    error.add_note(
                        f"the replies in batch {batch.id} may be lost; with a new record all is asked anew"
                    )
                    errors.append(error)
            open_batches = waiting
            if waiting:
                await self._sleep(self._poll)
        await self._tidy()
        if errors:
            raise errors[0]

    async def _tidy(self) -> None:
        """Delete the files that nobody needs any more, as far as the server lets us."""
        failed: list[LLMError] = []
        for file in self._record.leftovers():
            try:
                await self._api.delete(file)
            except LLMError as error:
                failed.append(error)
            else:
                self._record.deleted(file)
        if failed:
            _log.warning("%d files stay on the server until a later attempt: %s", len(failed), failed[0])

    async def _found(self, batch: Batch) -> Batch | None:
        """A batch with its id. One without may have been created before its process was killed; if the
        server does not have it, it was not, and its lines are free to be sent."""
        if batch.id is not None:
            return batch
        metadata = self._metadata(batch)
        remote = await self._api.find(metadata)
        if remote is None:
            await self._sleep(self._poll)  # lists may lag behind
            remote = await self._api.find(metadata)
        if remote is None:
            try:
                self._record.leave(await self._api.uploads(self._file(batch)))
            except LLMError as error:
                _log.warning("a file may stay on the server: %s", error)
            self._record.withdraw(batch)
            return None
        return self._record.created(batch, remote.id)

    async def _take(self, batch: Batch, remote: RemoteBatch) -> None:
        """Record what became of a batch that has ended."""
        lines = self._record.lines(batch)
        results = await self._api.results(remote)
        if remote.status == "failed" and not results:
            failures = remote.failures(len(lines))
            results = {line.key.hex(): failure for line, failure in zip(lines, failures, strict=True)}
        outcomes: dict[BatchLine, Outcome] = {}
        for line in lines:
            result = results.get(line.key.hex()) or Failure("its batch ended without it")
            if isinstance(result, Failure) and self._learns(result, batch.dialect):
                self._settle(line.key, Usage())  # it will be sent again, as if it had not been
            else:
                outcomes[line] = Outcome.of(result, self._usage(line, result))
        self._record.collect(batch, outcomes, self._dialect, remote.files)
        for line, outcome in outcomes.items():
            self._note(line.key, line.purpose, outcome)

    def _learns(self, failure: Failure, spoken: Dialect) -> bool:
        """Whether a line failed only for the dialect it was in."""
        other = spoken.after(failure, self._llm)
        if other is not None and spoken == self._dialect:
            self._dialect = other
        return other is not None

    def _usage(self, line: BatchLine, result: Completion | Failure) -> Usage:
        if isinstance(result, Failure):
            return Usage(retries=int(may_pass(result)))
        return usage_of(result, line.prompt_tokens, self._llm.prices)


class _Open(NamedTuple):
    """A question without an answer, and the request to make for it."""

    ask: Ask
    line: Line


class _Player(Generic[T]):
    """A program under way, and the replies it has to what it waits for."""

    def __init__(self, program: Program[T]) -> None:
        self.run = Run(program)
        self._begin()

    @property
    def ready(self) -> bool:
        return not any(reply is _WAITING for reply in self.replies)

    def resume(self) -> bool:
        """Hand over the replies; whether the program then ended."""
        self.run.resume(self.replies)
        self._begin()
        return self.run.done

    def _begin(self) -> None:
        n = len(self.run.effects)
        self.replies: list[Any] = [_WAITING] * n
        self.keys: list[bytes | None] = [None] * n


def _packed(
    requests: Iterable[tuple[bytes, bytes]], max_lines: int, max_bytes: int
) -> Iterator[tuple[list[bytes], bytes]]:
    """Requests in batches that keep to the limits: the names in each, and its content."""
    names: list[bytes] = []
    lines: list[bytes] = []
    size = 0
    for name, line in requests:
        if names and (len(names) == max_lines or size + len(line) > max_bytes):
            yield names, b"".join(lines)
            names, lines, size = [], [], 0
        names.append(name)
        lines.append(line)
        size += len(line)
    if names:
        yield names, b"".join(lines)
