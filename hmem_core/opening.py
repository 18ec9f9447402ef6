"""Opening a memory, and looking at one that cannot be opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hmem_core import times
from hmem_core.embedding import registry
from hmem_core.embedding.base import Encoder, Reranker, states_of
from hmem_core.errors import (
    Damaged,
    InvalidInput,
    MemoryNotFound,
    StorageError,
)
from hmem_core.journal.base import Journal
from hmem_core.journal.sqlite import SqliteJournal
from hmem_core.journal.volatile import VolatileJournal
from hmem_core.memory import Memory
from hmem_core.options import LLM, EventOptions, FactOptions, ReadingOptions, SegmentOptions
from hmem_core.reports import Verified
from hmem_core.store import Store, checkpoints_of, system_clock
from hmem_core.store import verify as verify_files

__all__ = ["JOURNAL_FILE", "open", "verify"]

JOURNAL_FILE = "journal.sqlite"
"""Name of the journal inside a memory's directory."""

if TYPE_CHECKING:
    from hmem_core.llm.threads import ThreadDriver

EncoderLike = Encoder | str | os.PathLike[str] | Callable[[list[str]], Any]
RerankerLike = Reranker | str | os.PathLike[str] | Callable[[str, list[str]], Any]


def open(
    location: str | os.PathLike[str] | None = None,
    *,
    encoder: EncoderLike | None = None,
    tz: str | Any = "UTC",
    create: bool = True,
    reembed: bool = False,
    late_interaction: bool = True,
    reranker: RerankerLike | None = None,
    language: str | None = None,
    segments: SegmentOptions = SegmentOptions(),
    events: EventOptions = EventOptions(),
    reading: ReadingOptions = ReadingOptions(),
    facts: FactOptions = FactOptions(),
    llm: LLM | None = None,
    clock: Callable[[], int] = system_clock,
) -> Memory:
    """Open a memory, creating it if there is none.

    Args:
        location: a directory; None keeps the memory in the process, gone when it ends.
        encoder: None for the default; a directory with ``model.onnx`` and ``tokenizer.json``; a function from
            a list of texts to an array; or an `Encoder`. A memory stays with the encoder that wrote it.
        tz: the time zone (IANA name or tzinfo) in which naive times are read and contexts are dated.
        create: False raises `MemoryNotFound` where no memory is.
        late_interaction: keep with each turn added a narrow form of the states of its tokens (some 0.7 kB),
            and let searches compare them with the query's. An encoder that gives no states keeps none.
        reranker: what reads the best turns of a search beside the query and orders them anew: a directory
            with ``model.onnx`` and ``tokenizer.json`` of a cross-encoder; a function from a query and a list
            of texts to a number for each; or a `Reranker`. With None, none does. If it fails, so does the
            search. How much it reads is in `ReadingOptions`.
        language: how words in Latin script are stemmed for the lexical channel (a Snowball language, default
            English); chosen when the memory is created. Other scripts bring their own.
        segments: how turns find their place in the segment tree.
        events: how turns are put together to events.
        reading: how searches weigh what they find.
        facts: how the fact graph is rewritten.
        llm: a language model; with None, nothing ever calls one.
        reembed: if the memory was written with another encoder, make every vector anew with this one.
        clock: gives UTC microseconds since 1970; for tests and simulations.

    Raises:
        MemoryNotFound: ``create=False`` and there is none.
        EncoderMismatch: another encoder wrote the memory, and not `reembed`.
        EncoderMissing: the encoder's package or files, or the reranker's, are absent.
        Damaged: the journal's bytes are not what was written.
        StorageError: the directory cannot be used.
        InvalidInput: an argument has no meaning.
    """
    zone = times.zone(tz)
    made = registry.resolve(encoder)
    ranks = None if reranker is None else _reranker(reranker)
    directory = _directory(location)
    journal: Journal = VolatileJournal() if directory is None else _journal(directory, create)
    try:
        store = Store(journal, directory, made.identity, language=language, reembed=reembed, clock=clock)
        driver = None if llm is None else _driver_of(made, llm, ranks)
        memory = Memory(store, made, zone, segments, events, reading, driver, facts, late_interaction, ranks)
        if reembed:
            memory._reembed()
            store.reembedded()
    except BaseException:
        journal.close()
        raise
    return memory


def verify(location: str | os.PathLike[str]) -> Verified:
    """Read everything that the memory at `location` has on disk and say what is wrong with it.

    Needs no encoder, and works where `open` raises `Damaged`.

    Raises:
        MemoryNotFound: there is none.
        StorageError: the directory cannot be read.
        InvalidInput: `location` is not a path.
    """
    directory = _directory(location)
    if directory is None:
        raise InvalidInput("a memory in the process has no files; give a directory")
    try:
        journal = _journal(directory, create=False)
    except Damaged as error:
        return Verified(entries=0, problems=(str(error),), checkpoints=())
    with closing(journal):
        return verify_files(journal, checkpoints_of(directory))


def _directory(location: str | os.PathLike[str] | None) -> Path | None:
    if location is None:
        return None
    text = os.fspath(location)
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise InvalidInput(f"location={location!r} is not a path; give a directory, or None for the process")
    if "://" in text:
        raise InvalidInput(f"location={location!r}: only directories are supported; give a path")
    return Path(text)


def _journal(directory: Path, create: bool) -> Journal:
    path = directory / JOURNAL_FILE
    if directory.exists() and not directory.is_dir():
        raise StorageError(f"{directory} is a file; a memory is a directory, so give another name")
    if checkpoints_of(directory).newest() is not None:
        # There was a journal: a new one in place of one that was lost or emptied would hide the loss.
        if not path.exists():
            raise Damaged(
                f"the journal {path} is gone, although there are checkpoints beside it; put it back from a "
                f"backup, or delete {directory} to start anew"
            )
        create = False
    if not create and not path.exists():
        raise MemoryNotFound(
            f"there is no memory at {directory}; check the path, or open it with create=True"
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"the directory {directory} cannot be made: {error}; choose another place"
        ) from error
    return SqliteJournal(path, create=create)


def _reranker(given: RerankerLike) -> Reranker:
    """The reranker that is meant. Loaded late, as few memories have one."""
    from hmem_core.embedding.reranker import resolve

    return resolve(given)


def _driver_of(encoder: Encoder, llm: LLM, reranker: Reranker | None) -> ThreadDriver:
    """What runs the programs of a memory with a language model. Loaded late, as few memories have one."""
    from hmem_core.llm.threads import ThreadDriver

    rank = None if reranker is None else reranker.score
    return ThreadDriver(encoder.embed, llm, embed_states=states_of(encoder), rank=rank)
