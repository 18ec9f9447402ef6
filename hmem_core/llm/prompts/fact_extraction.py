"""Which facts do turns tell? Asked of several turns in one question (units of HiGram, arXiv 2608.05095)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from hmem_core.effects import Ask
from hmem_core.llm.prompts.rendering import (
    QUOTED,
    SHOWN,
    Prompt,
    ShownTurn,
    line,
    share,
    shown_text,
    turn_line,
)

__all__ = ["CHARACTERS", "KNOWN", "PROMPT", "TURNS", "Extracted", "Extraction", "KnownFact", "ask"]

TURNS = 32
"""Turns that one question reads, at most."""
KNOWN = 24
"""Known facts that one question shows, at most."""
CHARACTERS = 9_000
"""Characters of all texts of turns together, about; of the turns before them, a third of it."""
SLOT = 100
"""Characters of each slot of a known fact that are shown."""

Text = Annotated[str, msgspec.Meta(max_length=2000)]


class KnownFact(msgspec.Struct, frozen=True):
    """A fact that the memory holds, as a prompt shows it."""

    subject: str
    relation: str
    object: str
    category: str | None = None
    contexts: tuple[str, ...] = ()
    since: str | None = None


class Extracted(msgspec.Struct, frozen=True):
    """One fact."""

    turn: int
    subject: Text | None = None
    relation: Text | None = None
    object: Text | int | float | None = None
    id: Text | int | None = None
    category: Text | None = None
    context: Text | None = None
    since: Text | int | None = None
    until: Text | int | None = None
    confidence: float | Text | None = None
    because: Annotated[list[Text | int], msgspec.Meta(max_length=60)] | Text | None = None


class Extraction(msgspec.Struct, frozen=True):
    """The facts that some turns tell."""

    facts: Annotated[list[Extracted], msgspec.Meta(max_length=400)]


PROMPT = Prompt(
    name="fact_extraction",
    version=1,
    system=f"""\
You keep the memory of a conversation. You are shown some turns to read, and perhaps turns that were said \
before them, which only help you to understand, and facts that are known already. Write down the lasting \
facts that the turns to read tell: about people, places, things and their relations; what someone is, has, \
does, likes, plans or decided; what has changed. Leave out greetings, questions, suppositions, and what only \
the moment concerns. Each fact says one thing:

- "id": "f1", "f2", … in order.
- "turn": the id of the turn that tells it, one of the turns to read.
- "subject": whom or what it is about, by name. A speaker who says "I" is meant by the speaker's name.
- "relation": a short phrase in the present tense, such as "lives in". Where a known fact has a relation of \
the same meaning, use its words.
- "object": the value, as short as it can be said: a name, a thing, a number.
- "category": the kind of fact in one word, such as "residence", "work", "health", "family", "preference".
- "context": the condition under which alone it holds, such as "in winter"; else "".
- "since": when it began to be true, as a date like 2026-03-01, reckoned from the time of the turn; "now" if \
the turn tells of a change that has just happened; "" if nobody says.
- "until": likewise, when it stopped to be true; "past" if it is over and nobody says since when; else "".
- "confidence": from 0 to 1, lower where the turn is unsure.
- "because": the ids of facts of your reply, or of known facts, of which the turn says, or clearly means, \
that this one is true only because of them; else [].

Do not repeat known facts that the turns to read do not tell again. Write in the language of the turns. If \
they tell no facts, reply {{"facts": []}}.

{QUOTED}

Reply with one JSON object and nothing else: {{"facts": [{{"id": "f1", "turn": 12, "subject": "Ann", \
"relation": "lives in", "object": "Porto", "category": "residence", "context": "", "since": "2026-03-01", \
"until": "", "confidence": 0.9, "because": []}}]}}.""",
    reply=Extraction,
    max_tokens=1024,
)


def ask(
    turns: Sequence[ShownTurn],
    before: Sequence[ShownTurn] = (),
    known: Sequence[KnownFact] = (),
    asides: frozenset[int] = frozenset(),
) -> Ask:
    """Which facts `turns` (`TURNS` at most) tell.

    Args:
        before: turns said just before, in order.
        known: facts that are known, `KNOWN` at most; they are shown as k1, k2, …
        asides: of `turns`, the ids of those that only help to understand the others.

    Reply: `Extraction`; it may name turns and facts that were not shown.
    """
    limit = min(SHOWN, share((len(turn.text) for turn in turns), CHARACTERS))
    near = min(SHOWN, CHARACTERS // 3 // max(len(before), 1))
    lines = []
    if known:
        lines += [
            "Known facts:",
            *(_known_line(f"k{place}", fact) for place, fact in enumerate(known, 1)),
            "",
        ]
    if before:
        lines += ["Said before:", *(turn_line(turn, near) for turn in before), ""]
    if asides:
        lines += ["Said in between:", *(turn_line(turn, limit) for turn in turns if turn.id in asides), ""]
    lines += ["The turns to read:", *(turn_line(turn, limit) for turn in turns if turn.id not in asides)]
    asked = PROMPT.ask("\n".join(lines))
    return msgspec.structs.replace(asked, max_tokens=160 * (len(turns) - len(asides)) + 256)


def _known_line(name: str, fact: KnownFact) -> str:
    record: dict[str, Any] = {"known": name}
    for slot in ("subject", "relation", "object", "category", "since"):
        if value := getattr(fact, slot):
            record[slot] = shown_text(value, SLOT)
    if fact.contexts:
        record["context"] = [shown_text(one, SLOT) for one in fact.contexts[:2]]
    return line(record)
