"""`Memory`: what a user holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from hmem_core import messages, times
from hmem_core.changes import forget_turns, reembed, write_turns
from hmem_core.effects import Ask, Priority, Program, Single, drive
from hmem_core.embedding import registry
from hmem_core.embedding.base import Encoder
from hmem_core.errors import (
    Damaged,
    InvalidInput,
    LLMMissing,
    MemoryNotFound,
    StorageError,
    TurnForgotten,
    TurnNotFound,
)
from hmem_core.journal.base import Journal
from hmem_core.journal.sqlite import SqliteJournal
from hmem_core.journal.volatile import VolatileJournal
from hmem_core.messages import Message
from hmem_core.methods import program
from hmem_core.options import LLM, ReadingOptions, SegmentOptions
from hmem_core.records import Added, Context, Evidence, Forgotten, Stats, Turn, Verified
from hmem_core.retrieval import context as packing
from hmem_core.retrieval import filters, reading
from hmem_core.retrieval.filters import Where
from hmem_core.retrieval.outline import Segments
from hmem_core.retrieval.search import Request, check, search
from hmem_core.retrieval.tokens import estimate_tokens
from hmem_core.store import Store, checkpoints_of, system_clock
from hmem_core.store import verify as verify_files
from hmem_core.times import TimeLike

__all__ = ["JOURNAL_FILE", "Memory", "open", "verify"]

JOURNAL_FILE = "journal.sqlite"
"""Name of the journal inside a memory's directory."""

if TYPE_CHECKING:
    from hmem_core.llm.threads import ThreadDriver

T = TypeVar("T")

Between = tuple[TimeLike | None, TimeLike | None]
EncoderLike = Encoder | str | os.PathLike[str] | Callable[[list[str]], Any]


def open(
    location: str | os.PathLike[str] | None = None,
    *,
    encoder: EncoderLike | None = None,
    tz: str | Any = "UTC",
    create: bool = True,
    reembed: bool = False,
    language: str | None = None,
    segments: SegmentOptions = SegmentOptions(),
    reading: ReadingOptions = ReadingOptions(),
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
        language: how words in Latin script are stemmed for the lexical channel (a Snowball language, default
            English); chosen when the memory is created. Other scripts bring their own.
        segments: how turns find their place in the segment tree.
        reading: how searches weigh what they find.
        llm: a language model; with None, nothing ever calls one.
        reembed: if the memory was written with another encoder, make every vector anew with this one.
        clock: gives UTC microseconds since 1970; for tests and simulations.

    Raises:
        MemoryNotFound: ``create=False`` and there is none.
        EncoderMismatch: another encoder wrote the memory, and not `reembed`.
        EncoderMissing: the encoder's package or files are absent.
        Damaged: the journal's bytes are not what was written.
        StorageError: the directory cannot be used.
        InvalidInput: an argument has no meaning.
    """
    zone = times.zone(tz)
    made = registry.resolve(encoder)
    directory = _directory(location)
    journal: Journal = VolatileJournal() if directory is None else _journal(directory, create)
    try:
        store = Store(journal, directory, made.identity, language=language, reembed=reembed, clock=clock)
        memory = Memory(store, made, zone, segments, reading, llm)
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


class Memory:
    """A growing history of turns, and ways to ask what to read of it. Made by `hmem.open`.

    Safe to use from several threads; several processes may have the same memory open. Every read sees
    every add that returned before it. Close it, or use it as a context manager.
    """

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        tz: Any,
        segments: SegmentOptions,
        reading: ReadingOptions,
        llm: LLM | None,
    ) -> None:
        self._store = store
        self._encoder = encoder
        self._tz = tz
        self._segment_options = segments
        self._reading_options = reading
        self._segments = Segments(lambda: store.view(tree=True))
        self._driver = None if llm is None else _driver_of(encoder, llm)

    def _run(self, program: Program[T], priority: Priority) -> T:
        if self._driver is not None:
            return self._driver.run(program, priority=priority)
        return drive(program, self._answer)

    def _answer(self, effect: Single) -> Any:
        if isinstance(effect, Ask):
            raise LLMMissing(f"{effect.purpose} needs a language model; open the memory with llm=LLM(...)")
        return self._encoder.embed(effect.texts)

    # -- writing -------------------------------------------------------------------------------------

    @program(Priority.WRITE)
    def add(
        self,
        content: Message | Iterable[Message],
        *,
        session: str | None = None,
        at: TimeLike | None = None,
        key: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        role: str = "user",
        speaker: str | None = None,
        system: bool = False,
    ) -> Program[Added]:
        """Remember one message or several, all or none.

        Args:
            content: text, an OpenAI-style message (tool calls and multi-part content included), a `Turn`, or
                a list of these. What a message says itself (``role``, ``name`` or ``speaker``, ``session``,
                ``at``, ``key``, ``metadata``) comes before the arguments below.
            session: the conversation the turns belong to.
            at: when they were said; default: now. Naive times are read in the memory's time zone.
            key: makes a retry harmless: a turn whose key (and place in the list) is known is not stored
                again, and its id is returned.
            metadata: JSON-like values to filter by.
            role: for plain text.
            speaker: who said it, where the role is not enough.
            system: also store system and developer prompts, which are skipped otherwise.

        Returns:
            The ids, in order; messages without text are reported in `Added.skipped`.

        Raises:
            InvalidInput: something is no message, or a value has no meaning.
            EncoderError: the encoder failed.
            StorageError: the disk refused.
            In each case nothing was stored.
        """
        self._store.check_open()
        defaults = messages.Defaults(
            role=role, speaker=speaker, session=session, at=at, key=key, metadata=metadata, system=system
        )
        drafts, skipped = messages.read_messages(content, defaults, self._tz)
        return (yield from write_turns(self._store, drafts, tuple(skipped), self._segment_options))

    def forget(
        self,
        ids: int | Iterable[int] | None = None,
        *,
        key: str | None = None,
        session: str | None = None,
        before: TimeLike | None = None,
    ) -> Forgotten:
        """Forget turns for good: their text, vectors, names and metadata leave every file of the memory.

        Ids are never given out again, and other turns keep theirs. Give one or more of the arguments; with
        several, a turn is forgotten only if all of them apply.

        Args:
            ids: turn ids.
            key: the key they were added under; a list added under one key goes as a whole.
            session: the session they belong to.
            before: turns whose own time lies before this one.

        Raises:
            TurnNotFound: an id or key that was never stored; nothing was forgotten.
            InvalidInput: no argument was given, or one has no meaning.
            StorageError: nothing was forgotten; or, if the message says so, the turns are forgotten but
                another process kept their bytes from being erased, which is done at the next opening.
        """
        limit = None if before is None else times.micros(before, self._tz, "before")
        forgotten = forget_turns(self._store, ids, key, session, limit)
        if self._driver is not None:
            self._driver.forget()
        return forgotten

    def _reembed(self) -> None:
        reembed(self._store, self._encoder.embed)

    # -- reading -------------------------------------------------------------------------------------

    def get(self, id: int | None = None, *, key: str | None = None) -> Turn:
        """One turn, by its id or by its key.

        Raises:
            TurnNotFound: it was never stored.
            TurnForgotten: it was stored and forgotten.
            InvalidInput: neither or both given, or several turns have the key.
        """
        if (id is None) == (key is None):
            raise InvalidInput("give either an id or a key")
        if id is None:
            return self._by_key(str(key))
        view = self._store.view()
        turn = reading.turn(view, reading.row(view, id))
        if turn is None:  # in this moment
            raise TurnForgotten(f"turn {id} was forgotten")
        return turn

    def _by_key(self, key: str) -> Turn:
        with self._store.reading() as state:
            rows = state.turns.index.rows(key)
        if not rows:
            raise TurnNotFound(f"no turn has the key {key!r}; it was never stored, or was forgotten")
        if len(rows) > 1:
            ids = ", ".join(map(str, rows))
            raise InvalidInput(f"the turns {ids} were added as a list under the key {key!r}; get them by id")
        return self.get(rows[0])

    def turns(
        self,
        *,
        session: str | None = None,
        between: Between | None = None,
        where: Where | None = None,
        as_of: int | TimeLike | None = None,
    ) -> list[Turn]:
        """All turns that pass the filters (see `search`), in the order of their times, then of their ids."""
        view = self._store.view()
        conditions = {**(where or {}), **({"session": session} if session is not None else {})}
        allowed = filters.mask(view, self._tz, between=between, where=conditions or None, as_of=as_of)
        rows = np.flatnonzero(allowed)
        rows = rows[np.argsort(view.narrow["at"][rows], kind="stable")]
        return [turn for row in rows if (turn := reading.turn(view, int(row))) is not None]

    @program(Priority.SEARCH)
    def search(
        self,
        query: str,
        k: int = 8,
        *,
        view: str = "fused",
        between: Between | None = None,
        where: Where | None = None,
        as_of: int | TimeLike | None = None,
        explain: bool = False,
        reading: ReadingOptions | None = None,
    ) -> Program[list[Evidence]]:
        """The turns most worth reading for `query`, best first; an empty list if none passes the filters.

        Args:
            query: a question or statement, of any length.
            k: how many turns at most.
            view: how turns are ranked: ``"fused"``, all signals together; ``"dense"``, the cosine of
                embeddings alone; ``"lexical"``, BM25 alone; ``"time"``, the segment tree alone, whose
                evidence may be segments of several turns.
            between: only turns whose own time lies in [start, end); None leaves a side open; an end
                given as a bare date includes that day.
            where: only turns with these values in ``session``, ``speaker``, ``role``, ``key`` or a metadata
                field; a list means any of its values, a dict holds operators such as ``{"$gte": 3}``.
            as_of: only what the memory knew at that sequence number (int) or time. Forgotten turns stay gone.
            explain: fill `Evidence.signals`.
            reading: how scores come about, instead of what the memory was opened with.

        Raises:
            InvalidInput: an empty query, or an argument without meaning.
            EncoderError: the encoder failed.
        """
        request = Request(
            query=query,
            k=k,
            view=view,
            between=between,
            where=where,
            as_of=as_of,
            explain=explain,
            reading=reading,
        )
        return (yield from self._search(request))

    def _search(self, request: Request) -> Program[list[Evidence]]:
        check(request)
        self._store.check_open()
        return search(request, lambda tree: self._store.view(tree=tree), self._tz, self._reading_options)

    @program(Priority.SEARCH)
    def context(
        self,
        query: str,
        max_tokens: int = 1000,
        *,
        count: packing.Counter = estimate_tokens,
        view: str = "fused",
        between: Between | None = None,
        where: Where | None = None,
        as_of: int | TimeLike | None = None,
    ) -> Program[Context]:
        """Evidence for `query`, packed for a prompt: chronological, dated, with ids, within a budget.

        Args:
            max_tokens: ``count(context.text)`` never exceeds it.
            count: counts tokens; the default estimates, leaning high, for any model.
            view, between, where, as_of: as in `search`.

        Raises:
            As `search`.
        """
        packing.check_budget(max_tokens)
        # No line takes fewer than a dozen tokens, so more evidence than this cannot fit.
        request = Request(
            query=query,
            k=min(max(8, max_tokens // 12), 512),
            view=view,
            between=between,
            where=where,
            as_of=as_of,
        )
        found = yield from self._search(request)
        return packing.pack(found, max_tokens, count, self._tz)

    @property
    def segments(self) -> Segments:
        """The segment tree over the turns, to walk and to read."""
        return self._segments

    def stats(self) -> Stats:
        """Sizes and state."""
        view = self._store.view()
        live = view.narrow["live"] == 1
        at = view.narrow["at"][live]
        held, mapped = self._store.nbytes()
        directory = self._store.directory
        return Stats(
            turns=int(at.size),
            forgotten=view.rows - int(at.size),
            sessions=view.sessions.in_use(),
            speakers=view.speakers.in_use(),
            first=times.datetime_of(at.min()) if at.size else None,
            last=times.datetime_of(at.max()) if at.size else None,
            seq=view.seq,
            encoder=self._store.encoder,
            location=None if directory is None else str(directory),
            checkpoint=self._store.checkpoint_seq,
            disk_bytes=0 if directory is None else _disk_bytes(directory),
            memory_bytes=held,
            mapped_bytes=mapped,
            llm=None if self._driver is None else self._driver.ledger.snapshot(),
        )

    # -- keeping -------------------------------------------------------------------------------------

    def checkpoint(self) -> bool:
        """Write a checkpoint now, so that the next opening is quick. Done by itself when many entries have
        come, and at `close`; False if there is nothing to write.

        Raises:
            StorageError: the disk refused; the memory is unharmed.
        """
        self._store.refresh()
        return self._store.checkpoint()

    def verify(self) -> Verified:
        """Read the journal and the checkpoints in full and say what is wrong with them; see `hmem.verify`."""
        return self._store.verify()

    def close(self) -> None:
        """Release files. Idempotent; any other use afterwards raises `Closed`."""
        if self._driver is not None:
            self._driver.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<hmem.Memory {self._store.directory or 'in the process'}>"


def _driver_of(encoder: Encoder, llm: LLM) -> ThreadDriver:
    """What runs the programs of a memory with a language model. Loaded late, as few memories have one."""
    from hmem_core.llm.threads import ThreadDriver

    return ThreadDriver(encoder.embed, llm)


def _disk_bytes(directory: Path) -> int:
    total = 0
    for root, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.stat(os.path.join(root, name)).st_size
            except FileNotFoundError:
                continue  # a checkpoint that was replaced meanwhile
    return total
