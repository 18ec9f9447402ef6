"""The segment tree, drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from rich.text import Text
from rich.tree import Tree

from hmem_core.records import Segment

__all__ = ["draw", "levels"]


def levels(segments: Iterable[Segment]) -> list[int]:
    """How many of the segments lie above each; parents stand before their children."""
    found: dict[int, int] = {}
    for segment in segments:
        found[segment.id] = 0 if segment.parent is None else found.get(segment.parent, -1) + 1
    return list(found.values())


def draw(
    segments: Sequence[Segment],
    date: Callable[[datetime], str],
    clean: Callable[[str], str],
    more: bool = True,
) -> Tree:
    """The segments of a walk, at least one, as a tree with one line each.

    Args:
        date: how a time is shown.
        clean: makes stored text fit for a line of the terminal.
        more: where some of a segment's children are drawn, say how many are not.
    """
    trees: dict[int | None, Tree] = {}
    quoted: dict[int | None, tuple[str, ...]] = {None: ()}
    for segment in segments:
        above = quoted.get(segment.parent, ())
        quotes = segment.text.splitlines() or [""]
        quote = next((one for one in quotes if one not in above), quotes[0])
        quoted[segment.id] = (*above, quote)
        label = _label(segment, date).append("  " + clean(quote))
        parent = trees.get(segment.parent)
        trees[segment.id] = Tree(label, guide_style="dim") if parent is None else parent.add(label)
    if more:
        drawn = {segment.id: segment for segment in segments}
        for segment in segments:
            below = [drawn[child] for child in segment.children if child in drawn]
            missing = len(segment.children) - len(below)
            if below and missing:
                turns = segment.size - sum(child.size for child in below)
                trees[segment.id].add(Text(_more(missing, turns), style="dim"))
    return trees[segments[0].id]


def _label(segment: Segment, date: Callable[[datetime], str]) -> Text:
    first, last = segment.span
    span = f"[{first}]" if first == last else f"[{first}-{last}]"
    size = f" {segment.size:,} turn{'s' if segment.size > 1 else ''}" if segment.children else ""
    start, end = date(segment.start), date(segment.end)
    if start != end:
        start += f" to {end[5:] if end[:5] == start[:5] else end}"  # the year once
    height = f"  height {segment.height}" if segment.children else ""
    return Text.assemble(
        (span, "cyan"), size, (f"  {start}{height}", "dim"), no_wrap=True, overflow="ellipsis"
    )


def _more(count: int, turns: int) -> str:
    if count == turns:
        return f"… {count:,} single turn{'s' if count > 1 else ''}"
    return f"… {count:,} more, of {turns:,} turns"
