"""What `hmem demo` does: import, close, open again, ask."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import msgspec

import hmem_core as hmem
from hmem_core.ingest.bulk import ingest
from hmem_core.interfaces.demo import Question, conversation, questions
from hmem_core.records import Context, Evidence, Segment
from hmem_core.reports import Stats

__all__ = ["Answered", "Shown", "run"]

HITS = 8
"""Hits that a question gets."""
PACKED = "What happened to my stolen bike?"
MAX_TOKENS = 160
"""Budget of the context that is shown."""


Watch = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A question and what the memory found for it."""

    question: str
    known_answer: str
    """What a reader of the whole conversation would say; nothing computes it here."""
    hits: tuple[Evidence, ...]
    right: tuple[int, ...]
    """Places in `hits`, from 0, that hold the answer."""
    milliseconds: float


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the demo has to show."""

    location: str | None
    """Where the memory was kept; None if it was thrown away."""
    stats: Stats
    """Of the memory as it was opened again."""
    added: int
    """Turns that were new; the others were kept from an earlier demo."""
    import_seconds: float
    open_milliseconds: float
    answered: tuple[Answered, ...]
    outline: tuple[Segment, ...]
    """The largest segments of the memory's tree, in the order of a walk."""
    packed: str
    """What `context` was asked for."""
    max_tokens: int
    context: Context


def run(location: Path | None, encoder: str | None, watch: Watch) -> Shown:
    """Import the conversation into a memory at `location`, or a temporary one, and ask the questions.

    Args:
        watch: given a label and a total, a context that gives a function to report progress to.
    """
    source = conversation()
    with _directory(location) as directory:
        begun = time.perf_counter()
        with (
            hmem.open(directory, encoder=encoder) as memory,
            watch("importing the demo conversation", source.total) as progress,
        ):
            imported = ingest(memory, source.items, batch=16, progress=lambda done: progress(done.messages))
        import_seconds = time.perf_counter() - begun
        begun = time.perf_counter()
        with hmem.open(directory, encoder=encoder, create=False) as memory:
            opened = time.perf_counter() - begun
            return Shown(
                location=None if location is None else str(location),
                stats=memory.stats(),
                added=imported.added,
                import_seconds=import_seconds,
                open_milliseconds=1000 * opened,
                answered=tuple(_ask(memory, question) for question in questions() if question.demo),
                outline=tuple(memory.segments.walk(depth=2, width=2)),
                packed=PACKED,
                max_tokens=MAX_TOKENS,
                context=memory.context(PACKED, MAX_TOKENS),
            )


def _ask(memory: hmem.Memory, asked: Question) -> Answered:
    begun = time.perf_counter()
    hits = tuple(memory.search(asked.question, k=HITS))
    return Answered(
        question=asked.question,
        known_answer=asked.answer,
        hits=hits,
        right=tuple(place for place, hit in enumerate(hits) if hit.key in asked.evidence),
        milliseconds=1000 * (time.perf_counter() - begun),
    )


@contextmanager
def _directory(location: Path | None) -> Iterator[Path]:
    if location is not None:
        yield location
        return
    with tempfile.TemporaryDirectory(prefix="hmem-demo-", ignore_cleanup_errors=True) as made:
        yield Path(made) / "memory"
