"""Stored turns as prompts show them."""

from __future__ import annotations

from hmem_core.llm.prompts.rendering import ShownTurn
from hmem_core.retrieval import reading
from hmem_core.state import View

__all__ = ["shown"]


def shown(view: View, row: int) -> ShownTurn | None:
    """The turn in `row` as a model is shown it; None if it was forgotten."""
    turn = reading.turn(view, row)
    if turn is None or turn.at is None:
        return None
    return ShownTurn(turn.id, turn.at, turn.speaker or turn.role, turn.text)
