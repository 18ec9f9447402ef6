"""What turns speak of, as a model says it (HiGMem, arXiv 2604.18349; several turns a question is ours)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hmem_core.effects import Program
from hmem_core.events.asking import in_parts
from hmem_core.events.wording import sentence, words
from hmem_core.llm.prompts import turn_analysis
from hmem_core.llm.prompts.rendering import ShownTurn
from hmem_core.llm.prompts.turn_analysis import Analyses

__all__ = ["Analysed", "analyse"]

CONTEXT = 400
"""Characters of a turn's context that are kept."""


class Analysed(NamedTuple):
    """What one turn speaks of."""

    turn: int
    keywords: tuple[str, ...]
    context: str
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    read: tuple[int, ...]
    """The turns that were read for it, ascending."""


def analyse(turns: Sequence[ShownTurn], before: Sequence[ShownTurn], window: int) -> Program[list[Analysed]]:
    """What each of `turns` speaks of. Nothing at all, if no reply about a turn can be used.

    Args:
        before: turns said just before them, in order.
        window: so many turns before those that are asked about are shown with them.

    Raises:
        LLMError: no turn could be analysed now.
    """
    known = [*before, *turns]
    places = {turn.id: place for place, turn in enumerate(known)}

    def ask(part: Sequence[ShownTurn]) -> Program[dict[int, Analysed]]:
        first = places[part[0].id]
        shown = known[max(first - window, 0) : first]
        reply: Analyses = yield turn_analysis.ask(part, shown)
        read = tuple(sorted({turn.id for turn in (*shown, *part)}))
        asked = {turn.id for turn in part}
        found: dict[int, Analysed] = {}
        for one in reply.turns:
            if one.id in asked and one.id not in found:
                found[one.id] = Analysed(
                    one.id,
                    words(one.keywords),
                    sentence(one.context, CONTEXT),
                    words(one.tags),
                    words(one.entities),
                    read,
                )
        return found

    found = yield from in_parts(turns, ask)
    return [
        found[turn.id] or Analysed(turn.id, (), "", (), (), (turn.id,)) for turn in turns if turn.id in found
    ]
