"""How LoCoMo is asked: what every measurement of it shares."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import hmem_core as hmem
from bench.quality.locomo_data import Conversation

__all__ = ["SHOWN", "SPLITS", "asked_at", "fill", "halves", "progress"]

SHOWN = 8
"""The cut at which precision, turns and tokens are taken."""
SPLITS = ("all", "dev", "test")
DEV = 5
"""Conversations of the dev half."""


def halves(conversations: Sequence[Conversation], split: str) -> list[tuple[str, Conversation]]:
    """The conversations of a split, each with the half it belongs to."""
    both = [("dev" if number < DEV else "test", one) for number, one in enumerate(conversations)]
    return [(half, one) for half, one in both if split in ("all", half)]


def asked_at(conversation: Conversation) -> Callable[[], int]:
    """A memory's clock: questions are asked when the conversation is over."""
    end = round(max(turn.at for turn in conversation.turns).timestamp() * 1e6)
    return lambda: end


def fill(memory: hmem.Memory, conversation: Conversation) -> None:
    """Add all turns of a conversation, a session at a time."""
    for session in dict.fromkeys(turn.session for turn in conversation.turns):
        turns = [turn for turn in conversation.turns if turn.session == session]
        memory.add(
            [{"speaker": turn.speaker, "content": turn.content, "key": turn.dia_id} for turn in turns],
            session=f"session_{session}",
            at=turns[0].at,
        )


def progress(number: int, of: int, conversation: Conversation) -> None:
    """Say which conversation comes now."""
    turns, questions = len(conversation.turns), len(conversation.questions)
    print(f"{number}/{of} {conversation.name}: {turns} turns, {questions} questions", file=sys.stderr)
