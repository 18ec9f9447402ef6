"""Embedding for many programs at once: their texts are gathered into batches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Batcher"]

FloatArray = npt.NDArray[np.float32]


class _Job:
    """The texts of one effect, and the rows that have come for them."""

    def __init__(
        self, texts: Sequence[str], place: tuple[int, int], reply: asyncio.Future[FloatArray]
    ) -> None:
        self.place = place
        self.reply = reply
        self.missing = texts
        self._parts: list[FloatArray] = []

    def add(self, rows: FloatArray) -> None:
        """Take the rows of the first of the missing texts."""
        self._parts.append(rows)
        self.missing = self.missing[len(rows) :]
        if not self.missing and not self.reply.done():
            self.reply.set_result(self._parts[0] if len(self._parts) == 1 else np.concatenate(self._parts))

    def fail(self, error: Exception) -> None:
        if not self.reply.done():
            self.reply.set_exception(error)


class Batcher:
    """Gathers what is asked for until the event loop has turned, and while the encoder works.

    Equal texts are embedded once. When a batch fails, each of its effects is tried alone, so that a text
    the encoder cannot take fails nobody else's. Belongs to one event loop.

    Args:
        embed: from texts to an array of rows; called in a thread, by one thread at a time.
        largest: texts in a batch at most.
    """

    def __init__(self, embed: Callable[[Sequence[str]], Any], largest: int) -> None:
        self._embed = embed
        self._largest = largest
        self._order = count()
        self._jobs: list[_Job] = []
        self._thread: ThreadPoolExecutor | None = None
        self._work: asyncio.Task[None] | None = None

    async def embed(self, texts: Sequence[str], priority: int) -> FloatArray:
        """The rows of `texts`, in order. Cancelling withdraws them."""
        reply: asyncio.Future[FloatArray] = asyncio.get_running_loop().create_future()
        self._jobs.append(_Job(texts, (priority, next(self._order)), reply))
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._run())
        return await reply

    async def close(self) -> None:
        """Stop; what is being embedded is waited for and thrown away."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])
        for job in self._jobs:
            job.reply.cancel()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.shutdown)

    async def _run(self) -> None:
        await asyncio.sleep(0)  # the programs that are ready now speak first
        while jobs := self._waiting():
            texts: dict[str, int] = {}
            taken = [(job, _take(job.missing, texts, self._largest)) for job in jobs]
            await self._answer(list(texts), [(job, rows) for job, rows in taken if rows or not job.missing])

    def _waiting(self) -> list[_Job]:
        """The effects that still wait for rows, the most urgent first."""
        self._jobs = sorted((job for job in self._jobs if not job.reply.done()), key=lambda job: job.place)
        return self._jobs

    async def _answer(self, texts: list[str], taken: list[tuple[_Job, list[int]]]) -> None:
        """Embed `texts`, and give each effect the rows that it takes of them."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="hmem-embed")
        try:
            loop = asyncio.get_running_loop()
            vectors = np.asarray(await loop.run_in_executor(self._thread, self._embed, texts))
            pieces = [vectors[np.asarray(rows, dtype=np.intp)] for _, rows in taken]
        except Exception as error:
            if len(taken) == 1:
                taken[0][0].fail(error)
                return
            for job, rows in taken:
                own: dict[str, int] = {}
                again = _take([texts[row] for row in rows], own, self._largest)
                await self._answer(list(own), [(job, again)])
        else:
            for (job, _), piece in zip(taken, pieces, strict=True):
                job.add(piece)


def _take(texts: Sequence[str], batch: dict[str, int], largest: int) -> list[int]:
    """Put texts into the batch until it is full; returns their places in it."""
    places = []
    for text in texts:
        if text not in batch and len(batch) == largest:
            break
        places.append(batch.setdefault(text, len(batch)))
    return places
