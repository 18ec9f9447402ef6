"""`Memory`: what a user holds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from hmem_core import messages, settling, times
from hmem_core.changes import forget_turns, reembed, write_turns
from hmem_core.effects import Ask, Embed, Priority, Program, Rank, Single, drive
from hmem_core.embedding.base import Encoder, Reranker, embed_states
from hmem_core.errors import (
    EncoderMissing,
    LLMMissing,
)
from hmem_core.factview import Facts
from hmem_core.messages import Message
from hmem_core.methods import program
from hmem_core.options import EventOptions, FactOptions, ReadingOptions, SegmentOptions
from hmem_core.reads import Reads
from hmem_core.records import Added, Forgotten
from hmem_core.reports import Stats, Verified
from hmem_core.retrieval.events import Events
from hmem_core.retrieval.outline import Segments
from hmem_core.store import Store
from hmem_core.times import TimeLike

__all__ = ["Memory"]

if TYPE_CHECKING:
    from hmem_core.llm.threads import ThreadDriver

T = TypeVar("T")


class Memory(Reads):
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
        reranker: Reranker | None = None,
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
        self._reranker = reranker
        self._fact_options = facts
        self._facts = Facts(store, tz, facts, self._run, self._forgot)

    def _run(self, program: Program[T], priority: Priority) -> T:
        if self._driver is not None:
            return self._driver.run(program, priority=priority)
        return drive(program, self._answer)

    def _answer(self, effect: Single) -> Any:
        if isinstance(effect, Ask):
            raise LLMMissing(f"{effect.purpose} needs a language model; open the memory with llm=LLM(...)")
        if isinstance(effect, Rank):
            if self._reranker is None:
                raise EncoderMissing("ranking needs a reranker; open the memory with reranker=...")
            return self._reranker.score(effect.query, effect.texts)
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

    # -- views and state -----------------------------------------------------------------------------

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
