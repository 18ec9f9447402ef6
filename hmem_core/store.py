"""One memory's journal, state and checkpoints, kept in step.

Writers append to the journal first and apply what they wrote; readers catch up with the journal before
they look. Nothing else touches the state.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import xxhash

from hmem_core.columns.checkpoint import Checkpoints, Described, Manifest
from hmem_core.columns.terms import Analyzer
from hmem_core.errors import Closed, Conflict, Damaged, EncoderMismatch, InvalidInput, StorageError
from hmem_core.journal.base import Journal
from hmem_core.journal.entries import SCHEMA, Entry, MemoryCreated, encode
from hmem_core.records import EncoderIdentity
from hmem_core.reports import Verified, VerifiedCheckpoint
from hmem_core.state import Outdated, State, View

__all__ = ["Plan", "Store", "checkpoints_of", "system_clock", "verify"]

CHECKPOINT_EVERY = 16_384
"""A checkpoint is written in the background once so many entries have come since the last,"""
CHECKPOINT_SHARE = 8
"""and at least this part of all: a checkpoint rewrites the segment tree, and so costs O(1) an entry."""
CHECKPOINT_AT_CLOSE = 256
"""Closing writes a checkpoint if so many entries have come since the last; fewer are replayed quickly."""

_log = logging.getLogger("hmem.store")


def system_clock() -> int:
    """UTC microseconds since 1970."""
    return time.time_ns() // 1000


class Plan(NamedTuple):
    """What a writer wants to append, and the earlier entries it rewrites."""

    entries: Sequence[Entry]
    rewrite: Mapping[int, Entry] | None = None


def checkpoints_of(directory: Path) -> Checkpoints:
    """The checkpoints of the memory in that directory."""
    return Checkpoints(directory / "checkpoints")


def _objection(journal: Journal, manifest: Manifest) -> str | None:
    """What keeps the checkpoint of that manifest from being used with `journal`.

    Raises:
        Damaged: it is the journal that is wrong.
    """
    position = journal.position()
    created = journal.fetch([1])[0].entry
    if not isinstance(created, MemoryCreated) or manifest.memory != created.memory:
        return "it belongs to another memory"
    if manifest.seq > position.head:
        raise Damaged(
            f"the journal ends at entry {position.head}, but a checkpoint was made at entry {manifest.seq}: "
            "the entries between are lost; put the journal back from a backup, or delete the checkpoints "
            "beside it to go on without them"
        )
    if manifest.seq < position.rewritten:
        return f"entries were rewritten at {position.rewritten}, after it was made"
    if manifest.last != _hash(journal, manifest.seq):
        return "the journal was replaced since it was made"
    return None


def _hash(journal: Journal, seq: int) -> str:
    return xxhash.xxh3_64_hexdigest(encode(journal.fetch([seq])[0].entry))


def verify(journal: Journal, checkpoints: Checkpoints | None) -> Verified:
    """Read `journal` and every checkpoint in full and say what is wrong with them."""
    entries, problems = journal.verify()

    def unusable(manifest: Manifest) -> str | None:
        try:
            return _objection(journal, manifest)
        except Damaged as error:
            return str(error)

    reports = [] if checkpoints is None else checkpoints.verify(unusable)
    return Verified(
        entries=entries,
        problems=problems,
        checkpoints=tuple(VerifiedCheckpoint(*report) for report in reports),
    )


class Store:
    """Opens (or creates) a memory's journal and brings its state up to date.

    Args:
        journal: where the truth is.
        directory: where checkpoints lie; None for a memory without files.
        encoder: who makes the vectors.
        language: how words in Latin script are stemmed; None for the memory's own, or English in a new one.
        reembed: accept a memory written with another encoder; the caller then makes its vectors anew.
        clock: gives UTC microseconds.

    Raises:
        EncoderMismatch: the memory was written with another encoder.
    """

    def __init__(
        self,
        journal: Journal,
        directory: Path | None,
        encoder: EncoderIdentity,
        *,
        language: str | None = None,
        reembed: bool = False,
        clock: Callable[[], int] = system_clock,
    ) -> None:
        self.journal = journal
        self.directory = directory
        self.encoder = encoder
        self.clock = clock
        self.checkpoint_seq: int | None = None
        self._reembed = reembed
        self._checkpoints = None if directory is None else checkpoints_of(directory)
        self._writing = threading.RLock()  # held while an append is planned and made
        self._applying = threading.RLock()  # held while the state changes or a view of it is taken
        self._closed = False
        self._background: ThreadPoolExecutor | None = None
        self._pending: Future[bool] | None = None
        self._create(language or "english")
        self._state = self._load()
        self.refresh()
        if language not in (None, self._state.language):
            raise InvalidInput(
                f"language={language!r}, but the memory was made with {self._state.language!r} and its index "
                "rests on that; leave language out, or copy the turns into a new memory"
            )
        _stores.add(self)

    def _create(self, language: str) -> None:
        if self.journal.position().head:
            return
        created = MemoryCreated(
            recorded=self.clock(),
            schema=SCHEMA,
            language=Analyzer(language).language,
            memory=uuid.uuid4().hex,
            encoder=self.encoder,
        )
        with suppress(Conflict):  # another process created it in this moment
            self.journal.append(0, [created])

    def _check_encoder(self) -> None:
        if self._state.encoder != self.encoder and not self._reembed:
            raise EncoderMismatch(
                f"the memory's vectors were made by {self._state.encoder}, it is opened with {self.encoder}; "
                "open it with the first, or pass reembed=True to make every vector anew"
            )

    def reembedded(self) -> None:
        """From here on the memory's vectors must be the encoder's own."""
        self._reembed = False
        self._check_encoder()

    # -- opening -------------------------------------------------------------------------------------

    def _load(self) -> State:
        """The state of the newest usable checkpoint, or of nothing; `refresh` adds the rest."""
        if self._checkpoints is None:
            return self._replayed()
        self._checkpoints.drop(below=self.journal.position().rewritten)
        loaded = self._checkpoints.load(self._objection)
        if loaded is not None:
            try:
                state = State.restore(loaded)
            except (ValueError, KeyError) as error:
                _log.warning("a checkpoint is not used: %s; rebuilding from the journal", error)
            else:
                self.checkpoint_seq = state.seq
                return state
        return self._replayed()

    def _replayed(self) -> State:
        """The state that the first entry makes."""
        state = State(settled=self.journal.position().rewritten)
        first = self.journal.fetch([1])[0]
        state.apply(first.seq, first.entry)
        return state

    def _objection(self, manifest: Manifest) -> str | None:
        return _objection(self.journal, manifest)

    # -- reading -------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Apply what the journal holds beyond the state, other processes' entries included."""
        self.check_open()
        if self.journal.position().head != self._state.seq:
            with self._applying:
                self._catch_up()
        self._check_encoder()

    def _catch_up(self) -> None:
        while True:
            rewritten = self.journal.position().rewritten
            try:
                for seq, entry in self.journal.read(self._state.seq):
                    self._state.apply(seq, entry)
            except (Outdated, Damaged) as error:
                # Entries that were rewritten while they were read need not fit those read before.
                if isinstance(error, Damaged) and self.journal.position().rewritten == rewritten:
                    raise
                self._state = self._replayed()
            else:
                return

    def view(self, *, tree: bool = False, events: bool = False) -> View:
        """The memory as it is now: every append that returned before this call is in it.

        Args:
            tree: with the segment tree.
            events: with the norms of events.
        """
        with self.reading() as state:
            return state.view(tree=tree, events=events)

    @contextmanager
    def reading(self) -> Iterator[State]:
        """The state as it is now, held still: writers wait until the block ends, so keep it short."""
        self.refresh()
        with self._applying:
            yield self._state

    # -- writing -------------------------------------------------------------------------------------

    def commit(self, plan: Callable[[State], Plan]) -> int:
        """Append what `plan` makes of the current state; returns the sequence number after it.

        If another process appends first, `plan` is called again with the newer state; it must have no side
        effects that a second call would double. An empty plan appends nothing.

        Raises:
            StorageError: nothing was written.
        """
        with self._writing:
            while True:
                self.refresh()
                with self._applying:
                    expected = self._state.seq
                    planned = plan(self._state)
                if not planned.entries:
                    return expected
                try:
                    seq = self.journal.append(expected, planned.entries, rewrite=planned.rewrite)
                except Conflict:
                    continue
                self._applied(expected, planned.entries)
                break
        if planned.rewrite:
            self._erase()
        elif seq - (self.checkpoint_seq or 0) >= max(CHECKPOINT_EVERY, seq // CHECKPOINT_SHARE):
            self._checkpoint_soon()
        return seq

    def _applied(self, expected: int, entries: Sequence[Entry]) -> None:
        with self._applying:
            for seq, entry in enumerate(entries, expected + 1):
                if seq > self._state.seq:  # else a reader has met it in the journal already
                    try:
                        self._state.apply(seq, entry)
                    except Outdated:
                        self._catch_up()
                        return

    def _erase(self) -> None:
        """Remove from the files what a rewrite took out of the journal."""
        if self._checkpoints is not None:
            self._checkpoints.drop()
            self.checkpoint_seq = None
        self.journal.scrub()

    # -- checkpoints ---------------------------------------------------------------------------------

    def checkpoint(self) -> bool:
        """Write a checkpoint of the current state. False if there is nothing to write or nowhere to.

        Raises:
            StorageError: the disk refused; the memory is unharmed.
        """
        self.check_open()
        if self._checkpoints is None:
            return False
        with self._applying:
            state = self._state
            seq, pieces, extra = state.seq, state.pieces(), state.extra()
        try:
            written = self._checkpoints.write(
                pieces,
                Described(state.memory, seq, _hash(self.journal, seq), extra),
                still_valid=lambda: self.journal.position().rewritten <= seq,
            )
        except OSError as error:
            raise StorageError(
                f"no checkpoint could be written in {self.directory}: {error}; the memory is whole without "
                "it, but opens more slowly until there is room and write access"
            ) from error
        if written:
            self.checkpoint_seq = seq
        return written

    def _checkpoint_soon(self) -> None:
        if self._checkpoints is None or (self._pending is not None and not self._pending.done()):
            return
        if self._background is None:
            self._background = ThreadPoolExecutor(1, thread_name_prefix="hmem-checkpoint")
        self._pending = self._background.submit(self._checkpoint_quietly)

    def _checkpoint_quietly(self) -> bool:
        try:
            return self.checkpoint()
        except StorageError as error:
            _log.warning("%s", error)
        except Closed:
            pass
        return False

    def verify(self) -> Verified:
        """Read the journal and every checkpoint in full and say what is wrong with them."""
        self.check_open()
        return verify(self.journal, self._checkpoints)

    # -- closing -------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raises: Closed."""
        if self._closed:
            raise Closed("this memory was closed; open it again to use it")

    def close(self) -> None:
        """Write a checkpoint where that saves time at the next opening, and release the files. Idempotent."""
        with self._writing:
            if self._closed:
                return
            if self._background is not None:
                self._background.shutdown(wait=True)
            if self._state.seq - (self.checkpoint_seq or 0) >= CHECKPOINT_AT_CLOSE:
                self._checkpoint_quietly()
            self._closed = True
            _stores.discard(self)
            self.journal.close()

    def nbytes(self) -> tuple[int, int]:
        """Bytes of the state: (held in the process, mapped from a checkpoint)."""
        with self._applying:
            return self._state.nbytes

    # -- forking -------------------------------------------------------------------------------------

    def _before_fork(self) -> None:
        self._writing.acquire()
        self._applying.acquire()

    def _after_fork(self) -> None:
        self._applying.release()
        self._writing.release()

    def _after_fork_in_child(self) -> None:
        self._background = self._pending = None  # its thread stayed in the parent
        self._after_fork()


_stores: weakref.WeakSet[Store] = weakref.WeakSet()
_held: list[Store] = []


def _before_fork() -> None:
    # A child must not inherit a state that another thread was in the middle of changing.
    _held.extend(_stores)
    for store in _held:
        store._before_fork()


def _after_fork() -> None:
    while _held:
        _held.pop()._after_fork()


def _after_fork_in_child() -> None:
    while _held:
        _held.pop()._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
