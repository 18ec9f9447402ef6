"""Stored turns as prompts show them."""

from __future__ import annotations

from collections.abc import Callable

from hmem_core.llm.prompts.rendering import ShownTurn
from hmem_core.retrieval import reading
from hmem_core.state import View

__all__ = ["shown"]


def shown(view: View) -> Callable[[int], ShownTurn | None]:
    """How to show a stored turn to a model, by its row."""

    def show(row: int) -> ShownTurn | None:
        turn = reading.turn(view, row)
        if turn is None or turn.at is None:
            return None
        return ShownTurn(turn.id, turn.at, turn.speaker or turn.role, turn.text)

    return show
