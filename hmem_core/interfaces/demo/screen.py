"""The demo on one screen."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from hmem_core.interfaces.demo.run import Answered, Shown
from hmem_core.interfaces.outline import draw
from hmem_core.interfaces.output import printable
from hmem_core.records import Evidence
from hmem_core.segments.annotation import shortened

__all__ = ["show"]

WIDTH = 100


def show(shown: Shown, console: Console) -> None:
    """Print what the demo found: what was imported, questions with their evidence, a context, what next."""
    width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    console.width = width
    for line in _lines(shown, width):
        console.print(line, soft_wrap=isinstance(line, Text))


def _lines(shown: Shown, width: int) -> Iterator[Text | Tree]:
    stats = shown.stats
    imported = f"Imported {shown.added} turns" if shown.added else f"Knew all {stats.turns} turns already"
    yield Text(
        f"{imported}: {stats.sessions} talks from {stats.first:%Y-%m-%d} to {stats.last:%Y-%m-%d}, in "
        f"{shown.import_seconds:.1f} s; {stats.disk_bytes / 1000:,.0f} kB on disk.",
        style="bold",
    )
    yield Text(
        f"Closed the memory and opened it again: {stats.turns} turns in {shown.open_milliseconds:.0f} ms."
    )
    yield Text("No LLM is asked: found is what was said. ✓ marks turns that the known answer rests on.")
    for answered in shown.answered:
        yield from _question(answered, width)
    yield Text()
    yield Text("What belongs together, from memory.segments (hmem tree shows more):", style="bold")
    yield draw(shown.outline, "{:%Y-%m-%d}".format, printable, more=False)
    yield Text()
    call = f"memory.context({shown.packed!r}, max_tokens={shown.max_tokens}).text"
    yield Text(f"For a prompt: {call}", style="bold")
    for line in shown.context.text.splitlines():
        yield Text("  " + printable(line, width - 2), style="dim")
    yield Text()
    yield Text("Go on:", style="bold")
    place = shown.location or "my-memory"
    if shown.location is None:
        yield Text(f"  hmem demo -m {place}  # and keep it", style="cyan")
    yield Text(f'  hmem search -m {place} "What is Jonas allergic to?"', style="cyan")
    yield Text(f'  hmem add -m {place} --speaker Maya "We moved again, to Braga."', style="cyan")


def _question(answered: Answered, width: int) -> Iterator[Text]:
    yield Text()
    yield Text("? " + printable(answered.question, width - 2), style="bold")
    yield Text("  known answer: " + printable(answered.known_answer, width - 16), style="dim")
    best_right = answered.right[0] if answered.right else 1
    for place in sorted({0, best_right}):
        if place < len(answered.hits):
            yield _hit(answered.hits[place], place, place in answered.right, width)


def _hit(hit: Evidence, place: int, right: bool, width: int) -> Text:
    """A hit on one line."""
    head = f"{place + 1}. {hit.score:.2f}  {hit.at:%Y-%m-%d}  [{hit.turns[0]}] {hit.speaker or hit.role}: "
    text = printable(shortened(hit.text, max(20, width - len(head) - 2)))
    return Text.assemble(("✓ " if right else "  ", "bold green"), (head, "cyan"), text)
