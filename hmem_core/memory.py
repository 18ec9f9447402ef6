"""`Memory`: what a user holds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec
import numpy as np

from hmem_core import messages, settling, times
from hmem_core.changes import forget_turns, reembed, write_turns
from hmem_core.effects import Ask, Priority, Program, Single, drive
from hmem_core.embedding.base import Encoder
from hmem_core.errors import (
    InvalidInput,
    LLMMissing,
    TurnForgotten,
    TurnNotFound,
)
from hmem_core.factview import Facts
from hmem_core.messages import Message
from hmem_core.methods import program
from hmem_core.options import FactOptions, ReadingOptions, SegmentOptions
from hmem_core.records import Added, Context, Evidence, Forgotten, Stats, Turn, Verified
from hmem_core.retrieval import context as packing
from hmem_core.retrieval import filters, reading
from hmem_core.retrieval.factsearch import FactReader
from hmem_core.retrieval.filters import Where
from hmem_core.retrieval.outline import Segments
from hmem_core.retrieval.search import Request, check, search
from hmem_core.retrieval.tokens import estimate_tokens
from hmem_core.store import Store
from hmem_core.times import TimeLike

__all__ = ["Memory"]

if TYPE_CHECKING:
    from hmem_core.llm.threads import ThreadDriver

T = TypeVar("T")

Between = tuple[TimeLike | None, TimeLike | None]


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
        driver: ThreadDriver | None,
        facts: FactOptions,
    ) -> None:
        self._store = store
        self._encoder = encoder
        self._tz = tz
        self._segment_options = segments
        self._reading_options = reading
        self._segments = Segments(lambda: store.view(tree=True))
        self._driver = driver
        self._fact_options = facts
        self._facts = Facts(store, tz, facts, self._run, self._forgot)

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
        options = self._segment_options
        if self._driver is None:  # nothing asks a model that is not there
            options = msgspec.structs.replace(options, compatibility="cosine")
        added = yield from write_turns(self._store, drafts, tuple(skipped), options)
        if self._driver is not None and added.new:
            yield from settling.catch_up(self._store, options)
        return added

    def forget(
        self,
        ids: int | Iterable[int] | None = None,
        *,
        key: str | None = None,
        session: str | None = None,
        before: TimeLike | None = None,
    ) -> Forgotten:
        """Forget turns for good: their text, vectors, names and metadata leave every file of the memory.

        Ids are never given out again, and other turns keep theirs. Their scores become those of a memory that
        never saw what is forgotten, but for the borders of segments: these stay, and so what turns inherit
        from the segments above them may differ. Facts that nothing else told are forgotten with them,
        and what rests on those falls. Give one or more of the arguments; with several, a turn is
        forgotten only if all of them apply.

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
        forgotten = forget_turns(self._store, ids, key, session, limit, self._fact_options.cap)
        self._forgot()
        return forgotten

    def _forgot(self) -> None:
        """Let go of what the language model was shown of what is forgotten."""
        if self._driver is not None:
            self._driver.forget()

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
                evidence may be segments of several turns. ``"facts"`` finds facts instead (see `facts`):
                those that hold, with their contradictions, and the past where the query asks for it; then `k`
                counts facts, `between` is about when they are true, and `where` about the turns that tell
                them.
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
        facts = FactReader(self._store.reading, self._fact_options, self._store.clock)
        read = lambda tree: self._store.view(tree=tree)  # noqa: E731
        return search(request, read, facts, self._tz, self._reading_options)

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

    @property
    def facts(self) -> Facts:
        """What the memory holds to be true: units of facts, told, rewritten and asked for."""
        return self._facts

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
            waiting=0 if self._driver is None else settling.waiting(self._store, self._segment_options),
        )

    @program(Priority.BACKGROUND)
    def settle(self) -> Program[int]:
        """Let the language model summarise every segment whose summary is due, as after a time when it was
        down. `add` does a part of this by itself.

        Returns how many segments were summarised; `stats` says how many wait.

        Raises:
            LLMError: there is no model, or it failed; what it had done by then is kept.
        """
        return (yield from settling.settle(self._store, self._segment_options))

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


def _disk_bytes(directory: Path) -> int:
    total = 0
    for root, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.stat(os.path.join(root, name)).st_size
            except FileNotFoundError:
                continue  # a checkpoint that was replaced meanwhile
    return total
