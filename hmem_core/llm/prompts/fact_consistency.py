"""Two facts contradict one another, and nothing says which is newer: what is meant? Asked where the rules of
a rewrite cannot decide (consistency check of HiGram, arXiv 2608.05095)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from hmem_core.effects import Ask
from hmem_core.llm.prompts.rendering import QUOTED, Prompt, ShownTurn, line, shown_text, turn_line

__all__ = ["PAIRS", "PROMPT", "Pair", "Verdict", "Verdicts", "ask"]

PAIRS = 8
"""Pairs of facts that one question shows, at most."""
QUOTE = 300
"""Characters of each turn that tells one of them."""
SLOT = 120
"""Characters of each slot."""

Text = Annotated[str, msgspec.Meta(max_length=400)]


class Side(msgspec.Struct, frozen=True):
    """One of the two facts."""

    object: str
    since: datetime | None
    turn: ShownTurn | None
    """The last one that tells it."""


class Pair(msgspec.Struct, frozen=True):
    """Two facts of one subject and relation that contradict one another."""

    subject: str
    relation: str
    contexts: tuple[str, ...]
    earlier: Side
    later: Side
    """Told after the other."""


class Verdict(msgspec.Struct, frozen=True):
    """What is meant by one pair."""

    pair: int
    verdict: Text


class Verdicts(msgspec.Struct, frozen=True):
    """What is meant by each pair."""

    pairs: Annotated[list[Verdict], msgspec.Meta(max_length=200)]


Choice = Literal["replaces", "both", "unclear"]

PROMPT = Prompt(
    name="fact_consistency",
    version=1,
    system=f"""\
You keep the facts of a memory consistent. You are shown pairs of facts about the same subject and relation, \
with the turns of a conversation that tell them. Nothing is known of which is newer. For each pair decide:

- "replaces": the later one tells of a change or corrects the earlier one, which is true no longer.
- "both": both are true at the same time, as the subject can have several of these.
- "unclear": the later one is probably an error, or it cannot be told.

{QUOTED}

Reply with one JSON object and nothing else, with an entry for every pair, under its number: \
{{"pairs": [{{"pair": 1, "verdict": "replaces"}}]}}.""",
    reply=Verdicts,
    max_tokens=256,
)


def ask(pairs: Sequence[Pair]) -> Ask:
    """What is meant by each of `pairs` (`PAIRS` at most), which are numbered from 1.

    Reply: `Verdicts`; it may name pairs that were not shown, and lack some.
    """
    lines: list[str] = []
    for number, pair in enumerate(pairs, 1):
        record: dict[str, Any] = {"pair": number}
        record["subject"] = shown_text(pair.subject, SLOT)
        record["relation"] = shown_text(pair.relation, SLOT)
        if pair.contexts:
            record["context"] = [shown_text(one, SLOT) for one in pair.contexts[:4]]
        for name, side in (("earlier", pair.earlier), ("later", pair.later)):
            record[name] = shown_text(side.object, SLOT)
            if side.since is not None:
                record[f"{name} since"] = side.since.date().isoformat()
        lines += [f"Pair {number}:", line(record)]
        lines += [turn_line(side.turn, QUOTE) for side in (pair.earlier, pair.later) if side.turn is not None]
        lines.append("")
    asked = PROMPT.ask("\n".join(lines[:-1]))
    return msgspec.structs.replace(asked, max_tokens=24 * len(pairs) + 96)
