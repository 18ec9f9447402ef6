"""Packing evidence into a prompt."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Mapping, Sequence

import msgspec

from hmem_core.errors import InvalidInput
from hmem_core.records import Context, Evidence, Line

__all__ = ["Counter", "check_budget", "pack"]

Counter = Callable[[str], int]
"""Number of tokens of a text."""

FACTS = "Facts"
"""The heading of facts."""

LEADING = 4
"""Turns that lead in to others take up at most one part in so many of the budget."""


def check_budget(max_tokens: int) -> None:
    """Refuse a budget that is not a positive integer.

    Raises:
        InvalidInput
    """
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
        raise InvalidInput(f"max_tokens={max_tokens!r} must be a whole number from 1")


def pack(
    evidence: Sequence[Evidence],
    max_tokens: int,
    count: Counter,
    tz: dt.tzinfo,
    lead_ins: Mapping[int, Evidence] | None = None,
) -> Context:
    """The best evidence that fits, in chronological order, a line each, under headings of day and session.

    Evidence is taken in the order of its scores; a piece that no longer fits is left out and a smaller one
    after it may still come in. Only the best piece is ever cut, where it alone is over the budget.

    Args:
        lead_ins: by turn id, the turn without which it is hard to understand. It comes in with it where it
            fits into what is set aside for such turns (`LEADING`).

    Returns:
        A context with ``count(context.text) <= max_tokens``, always.

    Raises:
        InvalidInput: `max_tokens` is not a positive integer.
    """
    check_budget(max_tokens)
    ranked = sorted(evidence, key=lambda piece: -piece.score)
    own = {turn for piece in ranked for turn in piece.turns}
    taken: list[Line] = []
    headings: set[str] = set()
    used = led = 0

    def cost(line: Line) -> int:
        heading = _heading(line, tz)
        return count(line.text + "\n") + (0 if heading in headings else count("\n" + heading + "\n"))

    def take(line: Line) -> None:
        nonlocal used
        used += cost(line)
        headings.add(_heading(line, tz))
        taken.append(line)

    for piece in ranked:
        line = _line(piece, piece.text, tz)
        if not taken and cost(line) > max_tokens:
            cut = _cut(piece, max_tokens, count, tz)
            if cut is None:
                continue
            line = cut
        elif used + cost(line) > max_tokens:
            continue
        take(line)
        lead = None if lead_ins is None else lead_ins.get(piece.turns[0] if piece.turns else -1)
        if lead is None or own & set(lead.turns):
            continue
        own.update(lead.turns)
        leading = _line(msgspec.structs.replace(lead, score=piece.score), lead.text, tz, lead_in=True)
        price = cost(leading)
        if led + price <= max_tokens // LEADING and used + price <= max_tokens:
            led += price
            take(leading)
    # A text may have more tokens than its lines together, and an order more headings than there are groups;
    # the promise is about the text.
    while taken and count(_join(taken, tz)) > max_tokens:
        taken.pop()
    text = _join(taken, tz)
    return Context(
        text=text,
        tokens=count(text) if text else 0,
        lines=tuple(_chronological(taken)),
        left_out=len(ranked) - sum(not line.lead_in for line in taken),
    )


def _chronological(lines: Sequence[Line]) -> list[Line]:
    """Facts first, under one heading: their times are those at which they began, not those of turns."""
    return sorted(lines, key=lambda line: (not line.fact, line.at, line.turns))


def _join(lines: Sequence[Line], tz: dt.tzinfo) -> str:
    groups = itertools.groupby(_chronological(lines), key=lambda line: _heading(line, tz))
    return "\n\n".join("\n".join([heading, *(line.text for line in group)]) for heading, group in groups)


def _heading(line: Line, tz: dt.tzinfo) -> str:
    if line.fact:
        return FACTS
    day = f"{line.at.astimezone(tz):%a %Y-%m-%d}"
    return day if line.session is None else f"{day}, {' '.join(line.session.split())}"


def _line(
    piece: Evidence, text: str, tz: dt.tzinfo, *, truncated: bool = False, lead_in: bool = False
) -> Line:
    if piece.kind == "fact":
        return _fact(piece, text, truncated=truncated)
    ids = str(piece.span[0]) if piece.span[0] == piece.span[1] else f"{piece.span[0]}-{piece.span[1]}"
    speaker = piece.speaker or piece.role
    # Indented, a line break in stored text cannot be mistaken for the start of another piece.
    body = "\n    ".join(text.splitlines())
    again = f" (also {', '.join(f'[{turn}]' for turn in piece.repeats)})" if piece.repeats else ""
    return Line(
        text=f"[{ids}] {piece.at.astimezone(tz):%H:%M} {' '.join(speaker.split())}: {body}{again}",
        turns=piece.turns,
        at=piece.at,
        speaker=speaker,
        session=piece.session,
        quote=text,
        score=piece.score,
        truncated=truncated,
        lead_in=lead_in,
    )


def _fact(piece: Evidence, text: str, *, truncated: bool) -> Line:
    """A fact, whose text says when it holds and what tells it."""
    ids = ", ".join(f"f{unit.id}" for unit in piece.facts)
    return Line(
        text=f"[{ids}] {' '.join(text.split())}",
        turns=piece.turns,
        at=piece.at,
        speaker=piece.role,
        quote=text,
        score=piece.score,
        truncated=truncated,
        fact=True,
    )


def _cut(piece: Evidence, max_tokens: int, count: Counter, tz: dt.tzinfo) -> Line | None:
    """The longest beginning of `piece` that fits; None if not even one character does."""
    low, high = 0, len(piece.text)
    while low < high:
        middle = (low + high + 1) // 2
        line = _line(piece, piece.text[:middle] + "…", tz)
        if (
            count(_join([line], tz)) <= max_tokens
            and count(_heading(line, tz)) + count(line.text) <= max_tokens
        ):
            low = middle
        else:
            high = middle - 1
    return _line(piece, piece.text[:low] + "…", tz, truncated=True) if low else None
