"""Searches with a reranker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hmem_core as hmem
from hmem_core.effects import Embed, Priority, Program, Rank, Run, Single
from hmem_core.errors import EncoderError, EncoderMissing, InvalidInput
from hmem_core.methods import written
from hmem_core.retrieval import reranking
from hmem_core.retrieval.tokens import estimate_tokens
from tests.embedding import tiny
from tests.helpers import Clock, hashing_encoder, open_memory
from tests.test_modes import Model

SINGLE = ("fused", "events", "dense", "lexical")
ALONE = hmem.ReadingOptions(reranked=1000.0)
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven")
TURNS = [f"the cat number {word} sat on a mat" for word in NUMBERS]


class Longest:
    """A reranker that prefers long texts, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        self.asked.append((query, tuple(texts)))
        return np.array([len(text) for text in texts], np.float32)


def filled(reranker: Any, turns: Sequence[str] = TURNS, **options: Any) -> hmem.Memory:
    memory = open_memory(reranker=reranker, clock=Clock(), **options)
    memory.add(list(turns), session="s")
    return memory


def ids(hits: Sequence[hmem.Evidence]) -> list[int]:
    return [hit.turns[0] for hit in hits]


@pytest.mark.parametrize("view", SINGLE)
def test_the_order_is_what_the_model_says(tmp_path: Path, view: str) -> None:
    tiny.write_cross_encoder(tmp_path)
    turns = ["a cat", "a cat and a dog and a dog", "the cat and far far", "cat cat cat dog"]
    with filled(tmp_path, turns) as memory, filled(None, turns) as plain:
        before = plain.search("cat dog", view=view)
        after = memory.search("cat dog", view=view, reading=ALONE, explain=True)
    # 4, 3 and twice 1 equal words; those two keep their order.
    assert ids(after) == [3, 1, *(turn for turn in ids(before) if turn in (0, 2))]
    assert [hit.signals["reranker"] > 0 for hit in after if hit.signals] == [True, True, False, False]
    for hit in after:
        assert hit.signals is not None
        assert sum(hit.signals.values()) == pytest.approx(hit.score)


@pytest.mark.parametrize("view", SINGLE)
def test_candidates_are_the_best_and_the_others_stay_below(view: str) -> None:
    options = hmem.ReadingOptions(rerank=3, reranked=1000.0, diversity=0.0)
    reranker = Longest()
    with filled(reranker) as memory:
        plain = memory.search(
            "cat number seven", 7, view=view, reading=hmem.ReadingOptions(rerank=0, diversity=0)
        )
        assert not reranker.asked
        hits = memory.search("cat number seven", 7, view=view, reading=options, explain=True)
    ((query, texts),) = reranker.asked
    assert query == "cat number seven"
    assert texts == tuple(hit.text for hit in plain[:3])
    assert [hit.text for hit in hits[:3]] == sorted(texts, key=lambda text: -len(text))
    assert [hit.text for hit in hits[3:]] == [hit.text for hit in plain[3:]]
    assert [hit.score for hit in hits[3:]] == [hit.score for hit in plain[3:]]
    assert all("reranker" not in (hit.signals or {}) for hit in hits[3:])
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)


def test_the_weight_lets_both_decide() -> None:
    """In the dense view by hand: standardised scores, side by side."""
    with filled(Longest()) as memory, filled(None) as plain:
        own = {hit.text: hit.score for hit in plain.search("cat number two", 7, view="dense")}
        hits = memory.search("cat number two", 7, view="dense", reading=hmem.ReadingOptions(reranked=0.5))
    lengths = np.array([len(text) for text in own], float)
    total = np.array(list(own.values())) + 0.5 * np.std(list(own.values())) * (
        (lengths - lengths.min()) / lengths.std()
    )
    expected = dict(zip(own, total.tolist(), strict=True))
    assert {hit.text: hit.score for hit in hits} == pytest.approx(expected)


@pytest.mark.parametrize("reading", [hmem.ReadingOptions(rerank=0), hmem.ReadingOptions(reranked=0.0)])
def test_it_can_be_switched_off(reading: hmem.ReadingOptions) -> None:
    reranker = Longest()
    with filled(reranker) as memory, filled(None) as plain:
        assert memory.search("cat", reading=reading) == plain.search("cat")
    assert not reranker.asked


def test_the_time_view_is_left_alone() -> None:
    reranker = Longest()
    with filled(reranker) as memory, filled(None) as plain:
        assert memory.search("cat", view="time") == plain.search("cat", view="time")
    assert not reranker.asked


def test_equal_scores_change_nothing() -> None:
    with filled(lambda query, texts: [7.0] * len(texts)) as memory, filled(None) as plain:
        assert memory.search("cat number") == plain.search("cat number")


def test_huge_scores_and_equal_turns() -> None:
    turns = ["cat"] * 3
    reading = hmem.ReadingOptions(fold=False)
    with filled(lambda query, texts: [1e38, -1e38, 3e38], turns) as memory:
        hits = memory.search("cat", view="dense", reading=reading)
    assert ids(hits) == [2, 0, 1]
    assert np.isfinite([hit.score for hit in hits]).all()


def test_the_budget_counts_query_and_texts() -> None:
    reranker = Longest()
    with filled(reranker) as memory:
        pair = estimate_tokens("cat") + estimate_tokens(TURNS[0])
        for tokens, read in ((3 * pair, 3), (4 * pair - 1, 3), (2 * pair, 2), (2 * pair - 1, 0), (0, 0)):
            reranker.asked.clear()
            reading = hmem.ReadingOptions(rerank_tokens=tokens)
            assert len(memory.search("cat", 7, view="dense", reading=reading)) == 7
            assert [len(texts) for _, texts in reranker.asked] == ([read] if read else [])
            for query, texts in reranker.asked:
                assert sum(estimate_tokens(query) + estimate_tokens(text) for text in texts) <= tokens


def test_long_queries_and_texts_are_cut() -> None:
    reranker = Longest()
    with filled(reranker, ["cat " * 5000, "dog", "cat"]) as memory:
        memory.search("cat " * 5000)
    ((query, texts),) = reranker.asked
    assert len(query) == max(map(len, texts)) == reranking.LONGEST


def test_speakers_are_shown_as_they_are_indexed() -> None:
    reranker = Longest()
    with open_memory(reranker=reranker) as memory:
        memory.add("the cat", speaker="Ann")
        memory.add("a cat")
        memory.search("cat")
    assert set(reranker.asked[0][1]) == {"Ann: the cat", "a cat"}


def test_filters_come_first() -> None:
    reranker = Longest()
    with filled(reranker) as memory:
        memory.add(["a dog", "a longer dog", "the longest dog of all"], session="dogs")
        hits = memory.search("cat", where={"session": "dogs"}, reading=ALONE)
        assert memory.search("cat", where={"session": "none"}) == []
    assert ids(hits) == [9, 8, 7]
    assert len(reranker.asked) == 1
    assert set(reranker.asked[0][1]) == {"a dog", "a longer dog", "the longest dog of all"}


def test_what_is_forgotten_is_not_shown() -> None:
    reranker = Longest()
    with filled(reranker) as memory:
        memory.forget([0, 1])
        memory.search("cat")
    assert not set(reranker.asked[0][1]) & {TURNS[0], TURNS[1]}


@pytest.mark.parametrize("turns", [[], ["a cat"]])
def test_with_nothing_to_order_nothing_is_asked(turns: list[str]) -> None:
    reranker = Longest()
    with filled(reranker, turns) as memory:
        assert ids(memory.search("cat")) == list(range(len(turns)))
        assert memory.search("cat", "auto") == memory.search("cat", 16)
    assert not reranker.asked


def test_few_and_enough_are_chosen_afterwards() -> None:
    """The best by the reranker is found though the view has it last, also if only one turn is wanted."""
    turns = [*TURNS, "something else altogether, and at that a good deal longer"]
    for view in ("fused", "dense"):
        with filled(Longest(), turns) as memory, filled(None, turns) as plain:
            assert ids(plain.search("cat number", 8, view=view))[-1] == 7
            for k in (1, "auto"):
                assert ids(memory.search("cat number", k, view=view, reading=ALONE))[0] == 7


def test_variety_is_chosen_after_reranking() -> None:
    seen = []
    turns = ["the cat sat on a mat", "the cat sat on a mat far", "dog ran"]
    for diversity in (0.0, 1e5):
        reading = hmem.ReadingOptions(diversity=diversity)
        with filled(Longest(), turns) as memory:
            seen.append(ids(memory.search("the cat sat on a mat", 2, reading=reading)))
    assert set(seen[0]) == {0, 1}
    assert set(seen[1]) == {1, 2}


def test_candidates_are_chosen_before_variety() -> None:
    reranker = Longest()
    turns = [f"the cat sat {number}" for number in range(100)] + [f"dog {number} ran" for number in range(40)]
    alike, varied = (hmem.ReadingOptions(rerank=5, diversity=weight) for weight in (0.0, 1e5))
    with filled(reranker, turns) as memory, filled(None, turns) as plain:
        memory.search("the cat sat", reading=varied)
        best = plain.search("the cat sat", 5, reading=alike)
    assert reranker.asked[0][1] == tuple(hit.text for hit in best)


def test_context_is_reranked() -> None:
    reranker = Longest()
    with filled(reranker) as memory:
        memory.context("cat", 200)
    assert len(reranker.asked) == 1


def test_a_reranker_that_fails_fails_the_search() -> None:
    def broken(query: str, texts: list[str]) -> list[float]:
        raise OSError("no route")

    with filled(broken) as memory:
        with pytest.raises(EncoderError, match="no route"):
            memory.search("cat")
        assert memory.search("cat", reading=hmem.ReadingOptions(rerank=0))


@pytest.mark.parametrize("reply", [[1.0], [float("nan")] * 7, "no numbers", None])
def test_what_an_object_gives_is_checked(reply: Any) -> None:
    class Bad:
        def score(self, query: str, texts: Sequence[str]) -> Any:
            return reply

    with filled(Bad()) as memory, pytest.raises(EncoderError, match=r"Bad\.score"):
        memory.search("cat")


def test_a_bad_directory_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(EncoderMissing, match="nowhere"):
        open_memory(tmp_path / "memory", reranker=tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="not a reranker"):
        open_memory(tmp_path / "memory", reranker=3)
    assert not (tmp_path / "memory").exists()


@pytest.mark.parametrize(
    "options", [{"rerank": -1}, {"rerank": True}, {"rerank": 1025}, {"rerank_tokens": 0.5}, {"reranked": -1}]
)
def test_numbers_without_meaning(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        hmem.ReadingOptions(**options)


def test_it_is_an_effect_that_anyone_can_answer() -> None:
    """The program does no I/O: it asks once for the vector and once for the scores."""
    with filled(Longest()) as memory:
        program, _ = written(hmem.Memory.search)
        run: Run[list[hmem.Evidence]] = Run(program(memory, "cat", 7, view="dense"))
        (first,) = run.effects
        assert isinstance(first, Embed)
        run.resume([memory._encoder.embed(first.texts)])
        (second,) = run.effects
        assert isinstance(second, Rank)
        run.resume([np.arange(7, dtype=np.float32)])
        assert run.done
        assert len(run.result()) == 7


def test_without_a_reranker_the_effect_is_refused() -> None:
    with open_memory() as memory, pytest.raises(EncoderMissing, match="reranker="):
        memory._answer(Rank("q", ("a", "b")))


# -- other ways to run -------------------------------------------------------------------------------


def test_awaited() -> None:
    reranker = Longest()

    async def scenario() -> list[list[hmem.Evidence]]:
        options = {"encoder": hashing_encoder(), "reranker": reranker, "clock": Clock()}
        async with await hmem.AsyncMemory.open(**options) as memory:
            await memory.add(TURNS, session="s")
            readings = hmem.ReadingOptions(rerank=0), ALONE
            return [await memory.search("cat number two", reading=reading) for reading in readings]

    with filled(Longest()) as memory:
        expected = [memory.search("cat number two", reading=hmem.ReadingOptions(rerank=0))]
        expected.append(memory.search("cat number two", reading=ALONE))
    assert asyncio.run(scenario()) == expected
    assert len(reranker.asked) == 1


def test_beside_a_language_model_that_is_not_asked(tmp_path: Path) -> None:
    tiny.write_cross_encoder(tmp_path / "model")
    turns = ["a cat", "a cat and a dog and a dog", "the cat and far far"]
    with filled(None, turns, location=tmp_path / "memory"):
        pass
    llm = hmem.LLM(model="none", base_url="http://127.0.0.1:9/v1")

    async def scenario() -> list[int]:
        options = {"encoder": hashing_encoder(), "reranker": tmp_path / "model", "llm": llm}
        async with await hmem.AsyncMemory.open(tmp_path / "memory", **options) as memory:
            return ids(await memory.search("a dog", reading=ALONE))

    with open_memory(tmp_path / "memory", reranker=tmp_path / "model", llm=llm) as memory:
        hits = memory.search("a dog", reading=ALONE)
        assert ids(hits)[0] == 1
        assert not memory.stats().llm.total.calls  # type: ignore[union-attr]
    assert asyncio.run(scenario()) == ids(hits)

    def broken(query: str, texts: list[str]) -> list[float]:
        raise OSError("no route")

    fails = pytest.raises(EncoderError, match="no route")
    with open_memory(tmp_path / "memory", reranker=broken, llm=llm) as memory, fails:
        memory.search("cat")
    with open_memory(tmp_path / "memory", llm=llm) as memory:
        assert ids(memory.search("a dog"))


def test_the_driver_of_a_memory_without_one_refuses() -> None:
    def ask() -> Program[Any]:
        return (yield Rank("q", ("a", "b")))

    llm = hmem.LLM(model="none", base_url="http://127.0.0.1:9/v1")
    refused = pytest.raises(EncoderMissing, match="none is configured")
    with open_memory(llm=llm) as memory, refused:
        memory._run(ask(), Priority.SEARCH)


def test_guided_search_falls_back_on_the_reranked_order() -> None:
    """With the model down, the hits are those of a search without it; else it is the model that decides."""
    reranker = Longest()
    with filled(reranker) as memory:
        expected = memory.search("cat number two", reading=ALONE)
        down = Model(lambda purpose, shown: None)
        down.down = True
        replies = down._reply

        def reply(effect: Single) -> Any:
            return reranker.score(effect.query, effect.texts) if isinstance(effect, Rank) else replies(effect)

        down._reply = reply  # type: ignore[method-assign]
        memory._driver = down  # type: ignore[assignment]
        assert memory.search("cat number two", reading=ALONE, guided=True) == expected
    assert len(reranker.asked) == 2
