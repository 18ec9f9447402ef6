"""What a test holds: a server with a script, a plan of faults, and a record of all that came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from tests.llm.scripted.api import Answer, Api
from tests.llm.scripted.batches import Batch, File, Progress
from tests.llm.scripted.faults import FaultPlan
from tests.llm.scripted.log import Log
from tests.llm.scripted.models import Embedding, embedding
from tests.llm.scripted.records import Arrived
from tests.llm.scripted.transport import HOST, PATIENCE, Transport


class ScriptedServer:
    """An OpenAI-compatible endpoint on the loopback, for the length of a `with` block::

        def answer(request: ChatRequest) -> str | Reply:
            return f"You said: {request.text}"

        with ScriptedServer(answer) as server:
            server.latency = 0.5
            server.faults.add(rate_limited(after=0.1), at=range(3))
            client = AsyncOpenAI(base_url=server.url, api_key="test", max_retries=0)
            ...
            assert server.max_in_flight <= 8

    The script runs in the thread of the server when a request arrives, whatever the latency is; what it
    raises is answered with 500 and raised again at the end of the block.

    Args:
        answer: Says what the model replies: text, a `Reply`, or anything that is then sent as JSON.
        embed: Gives the vector of a text with so many numbers.
        dimensions: How many numbers a vector has where the request does not say it.
        models: The names that the list of models gives; requests may name any.
        api_key: The key that requests must have; None admits all.
        cache_block: Prompts are cached in blocks of so many tokens.
    """

    def __init__(
        self,
        answer: Answer = lambda request: "ok",
        *,
        embed: Embedding = embedding,
        dimensions: int = 64,
        models: Sequence[str] = ("scripted",),
        api_key: str | None = None,
        cache_block: int = 32,
    ) -> None:
        self._log = Log()
        self._api = Api(
            answer,
            note=self._log.arrive,
            embed=embed,
            dimensions=dimensions,
            models=models,
            api_key=api_key,
            cache_block=cache_block,
        )
        self._transport = Transport(self._api, self._log)

    def __enter__(self) -> Self:
        self._transport.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transport.stop()
        if self._api.errors and error is None:
            raise ExceptionGroup("a script of the server raised", self._api.errors)

    @property
    def url(self) -> str:
        """What a client takes as its `base_url`."""
        return f"http://{HOST}:{self.port}/v1"

    @property
    def port(self) -> int:
        return self._transport.port

    # What it does: all of this may change at any time

    @property
    def answer(self) -> Answer:
        return self._api.answer

    @answer.setter
    def answer(self, answer: Answer) -> None:
        self._api.answer = answer

    @property
    def faults(self) -> FaultPlan:
        return self._api.faults

    @property
    def latency(self) -> float:
        """Seconds before every completion."""
        return self._transport.latency

    @latency.setter
    def latency(self, seconds: float) -> None:
        self._transport.latency = seconds

    @property
    def progress(self) -> Progress | Callable[[int], Progress]:
        """What becomes of batches that are created from now on, or a function of the batch's number."""
        return self._api.progress

    @progress.setter
    def progress(self, progress: Progress | Callable[[int], Progress]) -> None:
        self._api.progress = progress

    def hold(self) -> None:
        """Keep all completions back, until `release`."""
        self._transport.shut_gate()

    def release(self) -> None:
        self._transport.open_gate()

    def down(self) -> None:
        """Refuse connections, and end those that there are."""
        self._transport.close()

    def up(self) -> None:
        """Listen again, on the same port."""
        self._transport.listen()

    # What it saw

    def requests(self, kind: str | None = None) -> list[Arrived]:
        """All requests so far in order of arrival, or those of a kind."""
        return self._log.requests(kind)

    @property
    def asks(self) -> list[Arrived]:
        """All requests for completions, lines of batches among them."""
        return self.requests("chat")

    @property
    def answered(self) -> int:
        """How many completions were sent whole."""
        return sum(arrived.answered for arrived in self.asks)

    @property
    def paid(self) -> int:
        """How many replies the script gave, whether or not they got through."""
        return sum(arrived.paid for arrived in self.asks)

    @property
    def in_flight(self) -> int:
        """How many completions are waited for now."""
        return self._log.in_flight("chat")

    @property
    def max_in_flight(self) -> int:
        """How many completions were waited for at once; one is over just before its answer is sent."""
        return max((arrived.in_flight for arrived in self.asks), default=0)

    @property
    def files(self) -> dict[str, File]:
        return self._api.store.files

    @property
    def batches(self) -> dict[str, Batch]:
        return self._api.store.batches

    def wait(self, condition: Callable[[], bool], timeout: float = PATIENCE) -> None:
        """Wait until the record fulfils a condition.

        Raises:
            TimeoutError: It does not come to that.
        """
        self._log.wait(condition, timeout)

    async def until(self, condition: Callable[[], bool], timeout: float = PATIENCE) -> None:
        """`wait` for use in an event loop."""
        await asyncio.to_thread(self.wait, condition, timeout)
