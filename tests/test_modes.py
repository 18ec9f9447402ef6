"""A memory with a language model: places that it judges, summaries that it writes, and what else happens.

The model here is a function, so that nothing but the engine is tested.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hmem_core as hmem
from hmem_core.effects import Ask, Embed, Single, drive
from hmem_core.errors import LLMError, LLMUnavailable
from hmem_core.llm.prompts.compatibility_batch import Place
from hmem_core.llm.prompts.compatibility_pointwise import Compatible
from hmem_core.llm.prompts.segment_summary import Summary
from hmem_core.settling import segments as settling
from tests.helpers import Clock, files_holding, hashing_encoder, open_memory

Answer = Callable[[str, list[dict[str, Any]]], Any]


def records(ask: Ask) -> list[dict[str, Any]]:
    """The records that a prompt shows."""
    user = ask.messages[-1].content
    return [json.loads(line) for line in user.splitlines() if line.startswith("{")]


class Model:
    """Drives programs with an answer for each ask; counts asks by purpose, and rounds."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.encoder = hashing_encoder()
        self.asks: Counter[str] = Counter()
        self.down = False
        self.ledger = self

    def snapshot(self) -> None:
        return None

    def forget(self) -> None:
        pass

    def close(self) -> None:
        pass

    def run(self, program: Any, priority: object) -> Any:
        return drive(program, self._reply)

    def _reply(self, effect: Single) -> Any:
        if not isinstance(effect, Ask):
            return self.encoder.embed(effect.texts)
        if self.down:
            raise LLMUnavailable("the model is down")
        self.asks[effect.purpose] += 1
        return self.answer(effect.purpose, records(effect))


def topic(text: str) -> str:
    return re.findall(r"topic(\w+)", text)[-1]


def by_topic(purpose: str, shown: list[dict[str, Any]]) -> Any:
    """A turn belongs to the narrowest segment whose latest turn has its topic."""
    if purpose == "segment_summary":
        return Summary(f"summary of {len(shown)} parts, {topic(shown[-1]['text'])}")
    if purpose == "compatibility_pointwise":
        turn, segment = shown
        return Compatible(topic(turn["text"]) == topic(segment["text"]))
    *segments, turn = shown
    fits = [one["height"] for one in segments if topic(one["text"]) == topic(turn["text"])]
    return Place(min(fits) if fits else None)


def with_model(model: Model, location: Any = None, **options: Any) -> hmem.Memory:
    memory = open_memory(
        location,
        segments=hmem.SegmentOptions(**options),
        events=hmem.EventOptions(affiliation="cosine", describe=False),
        encoder=model.encoder,
    )
    memory._driver = model  # type: ignore[assignment]
    return memory


TURNS = [f"topic{name} number {i}" for name in "abcab" for i in range(6)]


@pytest.mark.parametrize("mode", ["pointwise", "batch"])
@pytest.mark.parametrize("size", [1, 4, 30])
def test_places_are_what_the_model_says(mode: str, size: int) -> None:
    model = Model(by_topic)
    with with_model(model, compatibility=mode, summarise=False) as memory:
        for start in range(0, len(TURNS), size):
            memory.add(TURNS[start : start + size])
        heights = memory._store.view().narrow["height"].tolist()
    with open_memory(encoder=model.encoder) as cosine:
        cosine.add(TURNS)
        assert heights != cosine._store.view().narrow["height"].tolist()
    # The second turn starts a segment over the first; the rest of a topic joins it, a new one goes above.
    assert heights[:3] == [0, 1, 1]
    starts = range(6, len(TURNS), 6)
    assert all(heights[start] > heights[start - 1] for start in starts)
    assert heights[2:6] == [1] * 4
    if mode == "batch":
        assert (
            model.asks["compatibility_batch"] == len(TURNS) - 2
        )  # none for the first two, which have no choice


def test_both_modes_and_any_batch_size_give_one_tree() -> None:
    trees = []
    for mode in ("pointwise", "batch"):
        for size in (1, 7, 30):
            with with_model(Model(by_topic), compatibility=mode, summarise=False) as memory:
                for start in range(0, len(TURNS), size):
                    memory.add(TURNS[start : start + size])
                trees.append(memory._store.view(tree=True).tree)
    for tree in trees[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(tree, trees[0], strict=True))


def test_a_height_that_was_not_offered_means_none() -> None:
    model = Model(lambda purpose, shown: Place(10_000))
    with with_model(model, compatibility="batch", summarise=False) as memory:
        memory.add(TURNS[:5])
        assert memory._store.view().narrow["height"].tolist() == [0, 1, 2, 3, 4]


def test_decisions_are_in_the_journal_and_a_replay_asks_nobody(tmp_path: Any) -> None:
    model = Model(by_topic)
    with with_model(model, tmp_path / "m", compatibility="batch") as memory:
        memory.add(TURNS)
        memory.settle()
        before = memory._store._state.arrays()
    with open_memory(tmp_path / "m", encoder=model.encoder) as memory:
        after = memory._store._state.arrays()
        assert after["frontier sums"].tobytes() == before["frontier sums"].tobytes()
        assert after["annotation text"] == before["annotation text"]
        assert memory.segments.get(memory.segments.root().id).text.startswith("summary of")


def test_with_the_model_down_turns_are_stored_and_caught_up_later() -> None:
    model = Model(by_topic)
    model.down = True
    with with_model(model, compatibility="batch") as memory:
        memory.add(TURNS)
        assert len(memory.turns()) == len(TURNS)
        assert memory.search("topica number 3", view="dense")[0].text == "topica number 3"
        assert (waiting := memory.stats().waiting) > 0
        with pytest.raises(LLMError, match="down"):
            memory.settle()
        model.down = False
        assert memory.settle() >= waiting
        assert memory.stats().waiting == 0
        assert memory.settle() == 0
        model.down = True
        memory.add([f"topicz {i}" for i in range(8)])
        model.down = False
        memory.add("topicz again")  # the next add catches up
        assert memory.stats().waiting == 0


def test_summaries_are_searched_and_shown() -> None:
    def answer(purpose: str, shown: list[dict[str, Any]]) -> Any:
        return Summary("Ann and Bo argue about zebras")

    with with_model(Model(answer)) as memory:
        memory.add([f"plain remark number {i}" for i in range(12)])
        memory.settle()
        root = memory.segments.root()
        assert root.text == "Ann and Bo argue about zebras"
        found = memory.search("Ann and Bo argue about zebras", k=12, view="time")
        assert found[0].kind == "segment"


def test_forgetting_a_turn_takes_the_summaries_that_read_it(tmp_path: Any) -> None:
    def answer(purpose: str, shown: list[dict[str, Any]]) -> Any:
        return Summary(" ".join(one["text"] for one in shown)[:500])

    with with_model(Model(answer), tmp_path / "m", tau=-1.0) as memory:
        memory.add([*(f"ordinary {i}" for i in range(5)), "the kumquat secret", "ordinary 6"])
        memory.settle()
        assert "kumquat" in memory.segments.root().text
        memory.checkpoint()
        memory.forget(5)
        assert "kumquat" not in memory.segments.root().text
        assert files_holding(tmp_path, "kumquat") == []
        assert memory.stats().waiting == 1
        memory.settle()
        assert "kumquat" not in memory.segments.root().text
        assert files_holding(tmp_path, "kumquat") == []


def test_the_calls_a_turn_are_bounded_whatever_the_length() -> None:
    model = Model(lambda purpose, shown: Summary("s"))
    rng = np.random.default_rng(0)
    rates = []
    with with_model(model, summarise_from=4) as memory:
        done = 0
        for total in (2_500, 5_000, 10_000):
            asked = model.asks["segment_summary"]
            while done < total:
                kinds = np.repeat(rng.integers(0, 60, 10), 10)
                memory.add([f"topic{kind} word{rng.integers(9)} and more" for kind in kinds])
                done += 100
            memory.settle()
            rates.append((model.asks["segment_summary"] - asked) / (total / 2 if total > 2_500 else total))
    assert max(rates) < 1.0
    assert rates[-1] < 1.5 * rates[0]


def test_an_add_waits_for_few_of_the_summaries_that_were_missed() -> None:
    model = Model(by_topic)
    with with_model(model, tau=(0.9, 0.5), summarise_from=2) as memory:
        model.down = True
        memory.add([f"topic{i} number {n}" for i in range(200) for n in range(3)])
        model.down = False
        assert (waiting := memory.stats().waiting) > 128
        memory.add("topicz")
        assert model.asks["segment_summary"] == settling.CATCH_UP
        memory.add([f"topicz number {n}" for n in range(20)])
        assert model.asks["segment_summary"] == settling.CATCH_UP + 20
        memory.add([f"topicz number {n}" for n in range(100)])
        assert model.asks["segment_summary"] == settling.CATCH_UP + 20 + settling.ROUND
        memory.settle()
        assert memory.stats().waiting == 0
        assert model.asks["segment_summary"] >= waiting


def test_an_add_that_must_not_wait_leaves_summaries_to_settle() -> None:
    model = Model(by_topic)
    with with_model(model, summarise_when="settle") as memory:
        for turn in TURNS:
            memory.add(turn)
        assert not model.asks
        assert (waiting := memory.stats().waiting) > 0
        assert memory.settle() == waiting == model.asks["segment_summary"]


def test_settling_by_halves_takes_fewer_rounds() -> None:
    rounds = []
    for halve in (False, True):
        model = Model(by_topic)
        with with_model(model, tau=(0.9, 0.5), summarise_from=2, summarise_when="settle") as memory:
            memory.add([f"topic{i} number {n}" for i in range(400) for n in range(3)])
            waiting = memory.stats().waiting
            before = memory._store.view().seq
            program = settling.settle(memory._store, memory._segment_options, halve=halve)
            seen = []
            done = drive(program, lambda effect: seen.append(effect) or model._reply(effect))  # noqa: B023
            assert done == waiting == memory._store.view().seq - before
            assert memory.stats().waiting == 0
            rounds.append(sum(isinstance(effect, Embed) for effect in seen))
    assert rounds[0] == -(-waiting // settling.ROUND)
    assert rounds[1] <= np.log2(waiting / settling.ROUND) + 2 < rounds[0]


@pytest.mark.parametrize(
    "options",
    [{"compatibility": "psychic"}, {"summarise_from": 1}, {"summary_words": 0}, {"summarise_when": "never"}],
)
def test_options_without_meaning_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(hmem.InvalidInput, match=next(iter(options))):
        hmem.SegmentOptions(**options)


def test_without_a_model_settling_says_what_is_missing() -> None:
    with open_memory(clock=Clock()) as memory:
        memory.add([f"turn {i}" for i in range(9)])
        assert memory.stats().waiting == 0
        with pytest.raises(LLMError, match="llm=LLM"):
            memory.settle()
