"""Importing conversations offline: many memories in lockstep, their questions to the model over a batch API.

What is told again after a restart must be what was asked before. So all that questions depend on is either
stored, and found again (turns by their keys, summaries in the journal), or fixed for the run: messages
without a time get that of its beginning.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec

from hmem_core import opening, times
from hmem_core.effects import Program
from hmem_core.embedding import registry
from hmem_core.errors import InvalidInput, LLMError
from hmem_core.ingest.bulk import Ingested, batches, checked
from hmem_core.ingest.readers import keyed
from hmem_core.ingest.source import Item
from hmem_core.llm.offline import OfflineDriver
from hmem_core.memory import Memory
from hmem_core.messages import Defaults
from hmem_core.methods import written
from hmem_core.options import LLM, EventOptions, SegmentOptions
from hmem_core.settling import segments as settling

__all__ = ["Imported", "import_offline"]

Location = str | os.PathLike[str]
L = TypeVar("L", bound=Location)


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one memory."""

    ingested: Ingested
    summarised: int = 0
    """Segments that were summarised, by this process."""
    waiting: int = 0
    """Segments that wait for a summary still."""
    problem: str | None = None
    """Why they do."""


def import_offline(
    conversations: Mapping[L, Iterable[Item]],
    llm: LLM,
    record: Location,
    *,
    encoder: opening.EncoderLike | None = None,
    tz: Any = "UTC",
    language: str | None = None,
    segments: SegmentOptions = SegmentOptions(),
    system: bool = False,
    batch: int = 256,
    together: int = 200,
    **driver: Any,
) -> dict[L, Imported | Exception]:
    """Add conversations to memories, and let a language model that answers in batches say what it has to.

    Turns are stored first. Then segments are summarised: up to 64 of a memory in one round, of n beyond that
    half of what is due, so log2(n / 64) + 1 rounds or so. A round is one batch of all memories together, and
    may take a day. With ``compatibility="pointwise"`` or ``"batch"`` each turn waits for the place of the
    one before it, which is a round for every turn of the longest conversation: prefer cosines, the default.

    Events are put together by cosines; `Memory.settle` lets a model that answers at once describe them later.

    Killed at any moment and called again with the same conversations and record, it goes on: no turn is
    stored twice, and no question sent twice. Inside a running event loop, call it in a thread.

    Args:
        conversations: by the location of its memory, the messages of each, as a reader gives them. Messages
            without a key are known by their content.
        llm: the model; its budget is for the whole run.
        record: a file that keeps what was submitted and replied. Delete it when all is done.
        encoder, tz, language: as for `hmem.open`.
        segments: as for `hmem.open`, but nothing is summarised before all turns are stored.
        system: also store system and developer prompts.
        batch: messages stored in one piece.
        together: memories that are open at once; those beyond come after them. Each takes four open files.
        driver: further options of `OfflineDriver`, such as ``poll``.

    Returns:
        What became of each memory. The error of one does not keep the others from going on.

    Raises:
        LLMError: the batch API itself cannot be used; call it again later.
        StorageError: the record cannot be used.
        InvalidInput: an option has no meaning.
    """
    for name, value in (("batch", batch), ("together", together)):
        if value < 1:
            raise InvalidInput(f"{name}={value!r}: a whole number from 1")
    if len({str(place) for place in conversations}) < len(conversations):
        raise InvalidInput("two conversations have one location; put their messages together")
    made = registry.resolve(encoder)
    open_memory = partial(
        opening.open,
        encoder=made,
        tz=tz,
        language=language,
        segments=msgspec.structs.replace(segments, summarise_when="settle"),
        events=EventOptions(affiliation="cosine", describe=False),
        llm=msgspec.structs.replace(llm, cache=None, budget=None),  # it marks the mode; the run's is asked
    )

    async def run() -> dict[L, Imported | Exception]:
        done: dict[str, Imported | Exception] = {}
        async with OfflineDriver(llm, made.embed, record, **driver) as offline:
            began = times.datetime_of(offline.began)
            waiting = iter(conversations.items())
            while wave := list(itertools.islice(waiting, together)):
                done |= await offline.run(
                    {
                        str(place): partial(_import, partial(open_memory, place), items, system, batch, began)
                        for place, items in wave
                    }
                )
        return {place: done[str(place)] for place in conversations}

    try:
        return asyncio.run(run())
    except LLMError as error:
        error.add_note(f"what was done by then is kept; importing again with the record {record} goes on")
        raise


def _import(
    open_memory: Callable[[], Memory], items: Iterable[Item], system: bool, batch: int, began: times.TimeLike
) -> Program[Imported]:
    add = written(Memory.add).method
    done = Ingested()
    with open_memory() as memory:
        for part in batches(checked(keyed(items), Defaults(system=system)), batch):
            messages = [item.message for item in part]
            done = done.plus((yield from add(memory, messages, system=system, at=began)))
        store, options = memory._store, memory._segment_options
        if not options.summarise:
            return Imported(ingested=done)
        problem = None
        due = settling.waiting(store, options)
        try:
            yield from settling.settle(store, options, halve=True)
        except LLMError as error:
            problem = str(error)
        waiting = settling.waiting(store, options)
        return Imported(ingested=done, summarised=due - waiting, waiting=waiting, problem=problem)
