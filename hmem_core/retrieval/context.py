"""Packing evidence into a prompt."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

from hmem_core.errors import InvalidInput
from hmem_core.records import Context, Evidence, Line

__all__ = ["Counter", "check_budget", "pack"]

Counter = Callable[[str], int]
"""Number of tokens of a text."""


def check_budget(max_tokens: int) -> None:
    """Refuse a budget that is not a positive integer.

    Raises:
        InvalidInput
    """
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
        raise InvalidInput(f"max_tokens={max_tokens!r} must be a whole number from 1")


def pack(evidence: Sequence[Evidence], max_tokens: int, count: Counter, tz: dt.tzinfo) -> Context:
    """The best evidence that fits, in chronological order, one dated line each.

    Evidence is taken in the order of its scores; a piece that no longer fits is left out and a smaller one
    after it may still come in. Only the best piece is ever cut, where it alone is over the budget.

    Returns:
        A context with ``count(context.text) <= max_tokens``, always.

    Raises:
        InvalidInput: `max_tokens` is not a positive integer.
    """
    check_budget(max_tokens)
    ranked = sorted(evidence, key=lambda piece: -piece.score)
    taken: list[Line] = []
    used = 0
    for piece in ranked:
        line = _line(piece, piece.text, tz)
        cost = count(line.text + "\n")
        if not taken and cost > max_tokens:
            cut = _cut(piece, max_tokens, count, tz)
            if cut is None:
                continue
            line, cost = cut, count(cut.text)
        if used + cost <= max_tokens:
            taken.append(line)
            used += cost
    # A text may have more tokens than its lines together; the promise is about the text.
    while taken and count(_join(taken)) > max_tokens:
        taken.pop()
    text = _join(taken)
    return Context(
        text=text,
        tokens=count(text) if text else 0,
        lines=tuple(_chronological(taken)),
        left_out=len(ranked) - len(taken),
    )


def _chronological(lines: Sequence[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: (line.at, line.turns))


def _join(lines: Sequence[Line]) -> str:
    return "\n".join(line.text for line in _chronological(lines))


def _line(piece: Evidence, text: str, tz: dt.tzinfo, truncated: bool = False) -> Line:
    ids = str(piece.span[0]) if piece.span[0] == piece.span[1] else f"{piece.span[0]}-{piece.span[1]}"
    if piece.kind == "fact":  # its text has its times and sources
        ids = ", ".join(f"f{unit.id}" for unit in piece.facts)
        line = f"[{ids}] {text}"
        return Line(text=line, turns=piece.turns, at=piece.at, score=piece.score, truncated=truncated)
    head = f"[{ids}] {piece.at.astimezone(tz):%a %Y-%m-%d %H:%M} {piece.speaker or piece.role}: "
    # Indented, a line break in stored text cannot be mistaken for the start of another piece.
    body = "\n    ".join(text.splitlines())
    return Line(text=head + body, turns=piece.turns, at=piece.at, score=piece.score, truncated=truncated)


def _cut(piece: Evidence, max_tokens: int, count: Counter, tz: dt.tzinfo) -> Line | None:
    """The longest beginning of `piece` that fits; None if not even one character does."""
    low, high = 0, len(piece.text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(_line(piece, piece.text[:middle] + "…", tz).text) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return _line(piece, piece.text[:low] + "…", tz, truncated=True) if low else None
