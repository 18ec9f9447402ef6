"""`Memory`: what a user holds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import msgspec
import numpy as np

from hmem_core import messages, settling, times
from hmem_core.changes import forget_turns, reembed, write_turns
from hmem_core.effects import Ask, Embed, Priority, Program, Single, drive
from hmem_core.embedding.base import Encoder, embed_states
from hmem_core.errors import (
    InvalidInput,
    LLMMissing,
    TurnForgotten,
    TurnNotFound,
)
from hmem_core.factview import Facts
from hmem_core.messages import Message
from hmem_core.methods import program
from hmem_core.options import EventOptions, FactOptions, GuidedOptions, ReadingOptions, SegmentOptions
from hmem_core.records import Added, Context, Evidence, Forgotten, Guided, Turn
from hmem_core.reports import Stats, Verified
from hmem_core.retrieval import context as packing
from hmem_core.retrieval import filters, guiding, reading
from hmem_core.retrieval.events import Events
from hmem_core.retrieval.filters import Where
from hmem_core.retrieval.outline import Segments
from hmem_core.retrieval.search import Request, check, search
from hmem_core.retrieval.tokens import estimate_tokens
from hmem_core.retrieval.views import Ranker
from hmem_core.state import View
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
        events: EventOptions,
        reading: ReadingOptions,
        driver: ThreadDriver | None,
        facts: FactOptions,
        late_interaction: bool = True,
    ) -> None:
        self._store = store
        self._encoder = encoder
        self._tz = tz
        self._segment_options = segments
        self._event_options = events
        self._reading_options = reading
        self._segments = Segments(lambda: store.view(tree=True))
        self._events = Events(lambda: store.view(events=True), self._run, tz, reading)
        self._driver = driver
        self._late = late_interaction
        self._fact_options = facts
        self._facts = Facts(store, tz, facts, self._run, self._forgot)

    def _run(self, program: Program[T], priority: Priority) -> T:
        if self._driver is not None:
            return self._driver.run(program, priority=priority)
        return drive(program, self._answer)

    def _answer(self, effect: Single) -> Any:
        if isinstance(effect, Ask):
            raise LLMMissing(f"{effect.purpose} needs a language model; open the memory with llm=LLM(...)")
        if effect.states:
            return embed_states(self._encoder, effect.texts)
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

        With a language model the call also waits for it: for one reply a turn where the model says where
        turns belong, one after the other, and for one round of the summaries that are due, side by side. They
        are eight at most or as many as there are new turns, and 64 in any case; the rest stays due. When
        they are waited for, the turns are stored already. Where an agent must not wait, open the memory with
        ``SegmentOptions(summarise_when="settle")`` and call `settle` when there is time; no `add` asks
        the model then.

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
        options, events = self._segment_options, self._event_options
        if self._driver is None:  # nothing asks a model that is not there
            options = msgspec.structs.replace(options, compatibility="cosine")
            events = msgspec.structs.replace(events, affiliation="cosine")
        added = yield from write_turns(self._store, drafts, tuple(skipped), options, events, self._late)
        if self._driver is not None and added.new:
            yield from settling.catch_up(self._work(), len(added.new))
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
        reembed(self._store, lambda texts: self._answer(Embed(tuple(texts), states=self._late)))

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
        k: int | Literal["auto"] = 8,
        *,
        view: str = "fused",
        between: Between | None = None,
        where: Where | None = None,
        as_of: int | TimeLike | None = None,
        explain: bool = False,
        reading: ReadingOptions | None = None,
        guided: bool | GuidedOptions = False,
    ) -> Program[list[Evidence]]:
        """The turns most worth reading for `query`, best first; an empty list if none passes the filters.

        Args:
            query: a question or statement, of any length.
            k: how many turns at most; ``"auto"``: those that stand out from the rest, 16 at most
                (`ReadingOptions.enough`).
            view: how turns are ranked: ``"fused"``, all signals together; ``"dense"``, the cosine of
                embeddings alone; ``"lexical"``, BM25 alone; ``"time"``, the segment tree alone, whose
                evidence may be segments of several turns; ``"events"``, embeddings and words, and the events
                of the turns.
            between: only turns whose own time lies in [start, end); None leaves a side open; an end
                given as a bare date includes that day.
            where: only turns with these values in ``session``, ``speaker``, ``role``, ``key`` or a metadata
                field; a list means any of its values, a dict holds operators such as ``{"$gte": 3}``.
            as_of: only what the memory knew at that sequence number (int) or time. Forgotten turns stay gone.
            explain: fill `Evidence.signals`, and in a guided search `Evidence.stages`.
            reading: how scores come about, instead of what the memory was opened with.
            guided: let the language model choose among what is found, and look into events for more; see
                `guided`. It may return fewer than `k`.

        Raises:
            InvalidInput: an empty query, or an argument without meaning.
            EncoderError: the encoder failed.
            LLMMissing: `guided`, and the memory has no language model.
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
        return (yield from self._search(request, guided))

    @program(Priority.SEARCH)
    def guided(
        self,
        query: str,
        k: int | Literal["auto"] = 8,
        *,
        options: GuidedOptions | None = None,
        view: str = "fused",
        between: Between | None = None,
        where: Where | None = None,
        as_of: int | TimeLike | None = None,
        explain: bool = False,
        reading: ReadingOptions | None = None,
    ) -> Program[Guided]:
        """What ``search(query, guided=True)`` returns, with an account of how (HiGMem, arXiv 2604.18349).

        The best turns and the best events are found as in any search. The language model is asked which turns
        of these events are worth reading, all at once, and then which of all these candidates help. What it
        keeps is returned, best first; if it keeps nothing, the best turns.

        Filters apply before everything: the model is shown nothing that they exclude. A question that fails
        is passed over, with a warning to the logger ``hmem.llm``; if the model is down, the result is that of
        a search without it.

        Args:
            options: how much is asked.
            view: how turns are ranked; any but ``"time"``.
            query, k, between, where, as_of, explain, reading: as in `search`.

        Raises:
            As `search`.
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
        return (yield from self._guided(request, options or GuidedOptions()))

    def _search(self, request: Request, guided: bool | GuidedOptions) -> Program[list[Evidence]]:
        if guided is not False:
            options = GuidedOptions() if guided is True else guided
            return list((yield from self._guided(request, options)).evidence)
        check(request)
        self._store.check_open()
        return (yield from search(request, self._read, self._tz, self._reading_options, self._late))

    def _guided(self, request: Request, options: GuidedOptions) -> Program[Guided]:
        if not isinstance(options, GuidedOptions):
            raise InvalidInput(f"guided={options!r}: give True, False or GuidedOptions")
        guiding.check_guided(request)
        self._store.check_open()
        if self._driver is None:
            raise LLMMissing("guided search asks a language model; open the memory with llm=LLM(...)")
        return guiding.search(request, self._read, self._tz, self._reading_options, options, self._late)

    def _read(self, ranker: Ranker) -> View:
        return self._store.view(tree=ranker.tree, events=ranker.events)

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
        guided: bool | GuidedOptions = False,
    ) -> Program[Context]:
        """Evidence for `query`, packed for a prompt: chronological, dated, with ids, within a budget.

        Beside it come turns that make others understandable, such as the question that one answers.

        Args:
            max_tokens: ``count(context.text)`` never exceeds it.
            count: counts tokens; the default estimates, leaning high, for any model.
            view, between, where, as_of, guided: as in `search`.

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
        found = yield from self._search(request, guided)
        now = self._store.view()
        allowed = filters.mask(now, self._tz, between=between, where=where, as_of=as_of)
        return packing.pack(found, max_tokens, count, self._tz, reading.lead_ins(now, found, allowed))

    @property
    def segments(self) -> Segments:
        """The segment tree over the turns, to walk and to read."""
        return self._segments

    @property
    def events(self) -> Events:
        """What the turns are about: events, to read and to search."""
        return self._events

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
            waiting=0 if self._driver is None else settling.waiting(self._work()),
        )

    @program(Priority.BACKGROUND)
    def settle(self) -> Program[int]:
        """Let the language model do all that is due, as after a time when it was down: summarise segments,
        analyse turns, link them to events, describe events, read turns for facts. `add` does a part of this
        by itself, but a few turns may wait for more, so that they can share a question.

        Returns how many pieces of work were done; `stats` says how many wait.

        Raises:
            LLMError: there is no model, or it failed; what it had done by then is kept.
        """
        return (yield from settling.settle(self._work()))

    def _work(self) -> settling.Work:
        options = self._segment_options, self._event_options, self._fact_options
        return settling.Work(self._store, *options, self._tz)

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
