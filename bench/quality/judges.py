"""Judges in place of a language model: they know the evidence, and err at given rates.

They answer the very questions that a model would be asked, from what those show and nothing else. So what
they come to bounds what the structure around a model can deliver.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import xxhash

from hmem_core.effects import Ask, Embed, Program, Single, drive
from hmem_core.llm.prompts import question_keywords, turn_filter, turn_prediction

__all__ = ["Judge", "Judged"]


@dataclass(frozen=True)
class Judge:
    """Who decides which turns help. Without errors, an oracle.

    Each decision is made for itself and depends on the seed, the question, the stage and the turn alone,
    not on what else is asked or when.
    """

    miss: float = 0.0
    """How often a turn of the evidence that is shown is not named."""
    wrong: float = 0.0
    """How often another turn that is shown is named."""
    seed: int = 0

    def reply(self, ask: Ask, question: str, gold: Collection[int]) -> Any:
        """The reply to `ask`.

        Args:
            question: tells questions apart.
            gold: ids of the turns that are evidence.
        """
        if ask.purpose == question_keywords.PROMPT.name:
            return question_keywords.Keywords([])  # it knows no words: the question is searched for
        if ask.purpose not in (turn_prediction.PROMPT.name, turn_filter.PROMPT.name):
            raise ValueError(f"a judge cannot be asked for {ask.purpose}")
        lines = (line for line in ask.messages[-1].content.splitlines() if line.startswith('{"id"'))
        shown = [json.loads(line)["id"] for line in lines]
        return ask.schema([turn for turn in shown if self._names(ask.purpose, question, turn, turn in gold)])

    def _names(self, stage: str, question: str, turn: int, right: bool) -> bool:
        packed = json.dumps([self.seed, stage, question, turn]).encode()
        chance = xxhash.xxh3_64_intdigest(packed) / 2**64
        return chance >= self.miss if right else chance < self.wrong


class Judged:
    """What runs the programs of a memory with a judge for a model. Takes the place of a `ThreadDriver`.

    Args:
        embed: from texts to vectors.
    """

    def __init__(self, embed: Callable[[Any], Any], judge: Judge) -> None:
        self._embed = embed
        self._judge = judge
        self.question = ""
        self.gold: Collection[int] = ()
        self.asks = 0

    def run(self, program: Program[Any], *, priority: int) -> Any:
        return drive(program, self._answer)

    def close(self) -> None:
        """There is nothing to close."""

    def _answer(self, effect: Single) -> Any:
        if isinstance(effect, Embed):
            return self._embed(effect.texts)
        assert isinstance(effect, Ask)  # no reranker is given
        self.asks += 1
        return self._judge.reply(effect, self.question, self.gold)
