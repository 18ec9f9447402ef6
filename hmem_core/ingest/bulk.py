"""The pipeline from items to a memory: in batches, safe to stop and to run again."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Iterable, Iterator

import msgspec

from hmem_core.errors import InvalidInput
from hmem_core.ingest.source import Item
from hmem_core.memory import Memory
from hmem_core.messages import Defaults, read_message
from hmem_core.records import Added

__all__ = ["Ingested", "batches", "checked", "ingest"]


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """What `ingest` did so far."""

    added: int = 0
    """Turns that are new."""
    known: int = 0
    """Messages that were stored before under the same key."""
    skipped: int = 0
    """Messages that are no turns: without text, or system prompts."""

    @property
    def messages(self) -> int:
        """Messages dealt with."""
        return self.added + self.known + self.skipped

    def plus(self, added: Added) -> Ingested:
        """With what one more `add` did."""
        new = len(added.new)
        return Ingested(
            added=self.added + new,
            known=self.known + len(added.ids) - new,
            skipped=self.skipped + len(added.skipped),
        )


def ingest(
    memory: Memory,
    items: Iterable[Item],
    *,
    system: bool = False,
    batch: int = 256,
    progress: Callable[[Ingested], None] | None = None,
) -> Ingested:
    """Add the messages of `items`, a batch at a time.

    Nothing is kept of a run but the memory itself: stopped at any point and started again with the same
    items, it skips what is stored by its key, without embedding it again.

    Args:
        system: also store system and developer prompts.
        batch: messages added in one piece; each is all or nothing.
        progress: called with the totals after every batch.

    Raises:
        Whatever `Memory.add` or the reader raises. All messages before the one that is wrong are stored
        then, and a note on the error says how many that is.
    """
    done = Ingested()
    defaults = Defaults(system=system)
    try:
        for part in batches(checked(items, defaults), batch):
            done = done.plus(memory.add([item.message for item in part], system=system))
            if progress is not None:
                progress(done)
    except BaseException as error:
        if done.messages:
            error.add_note(
                f"{done.messages:,} messages before it were dealt with: {done.added:,} added, {done.known:,} "
                f"known, {done.skipped:,} skipped; importing again goes on from there"
            )
        raise
    return done


def checked(items: Iterable[Item], defaults: Defaults) -> Iterator[Item]:
    """The items, each read once on its own, so that an error names its place in the file."""
    for item in items:
        read_message(item.message, 0, item.where, defaults, dt.UTC)
        yield item


def batches(items: Iterator[Item], size: int) -> Iterator[list[Item]]:
    """Lists of up to `size` items. What came before an error comes out before the error."""
    failure: InvalidInput | None = None

    def until_failure() -> Iterator[Item]:
        nonlocal failure
        try:
            yield from items
        except InvalidInput as error:
            failure = error

    source = until_failure()
    while part := list(itertools.islice(source, size)):
        yield part
    if failure is not None:
        raise failure
