"""Which facts a question asks for, as a model says it: the temporary units of HiGram (arXiv 2608.05095)."""

from __future__ import annotations

from datetime import datetime

from hmem_core.effects import Program
from hmem_core.llm.prompts import question_facts
from hmem_core.llm.prompts.question_facts import Asked
from hmem_core.records import FactSlots

__all__ = ["parse"]

FACTS = 4
"""Facts that are kept of one reply, at most."""
NAME = 200
"""Characters of a slot, at most; a longer one is left open."""

_OPEN = frozenset({"?", "none", "null", "unknown", "n/a", "what", "who", "where", "which", "when", "any"})


def parse(question: str, now: datetime) -> Program[list[FactSlots]]:
    """The facts that a question asks for, with None for open slots; [] if the reply names nothing to look
    for.

    Raises:
        LLMError: the model could not be asked, or gave no reply that can be used.
    """
    reply: Asked = yield question_facts.ask(question, now)
    found: dict[FactSlots, None] = {}
    for one in reply.facts:
        slots = FactSlots(
            subject=_slot(one.subject),
            relation=_slot(one.relation),
            object=_slot(one.object),
            category=_slot(one.category),
            context=_slot(one.context),
            at=_slot(one.at),
        )
        if any((slots.subject, slots.relation, slots.object, slots.category)):
            found.setdefault(slots)
    return list(found)[:FACTS]


def _slot(value: object) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    text = " ".join(str(value).encode("utf-8", "replace").decode().split())
    said = 0 < len(text) <= NAME and any(map(str.isalnum, text)) and text.casefold() not in _OPEN
    return text if said else None
