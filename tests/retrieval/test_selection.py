"""What is shown of what was ranked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hmem_core as hmem
from hmem_core.retrieval.selection import MOST, REACH, enough, pool, varied
from tests.helpers import open_memory


def test_what_one_speaker_repeats_is_shown_once() -> None:
    with open_memory() as memory:
        memory.add(
            [
                {"speaker": "Ann", "content": "The boat is red."},
                {"speaker": "Bo", "content": "The boat is red."},
                {"speaker": "Ann", "content": "the boat  is red"},
                {"speaker": "Ann", "content": "The boat is not red."},
                {"speaker": "Ann", "content": "🎉"},
                {"speaker": "Ann", "content": "😊"},
            ]
        )
        found = {hit.turns[0]: hit for hit in memory.search("red boat", k=6)}
        assert len(found) == 5
        (shown,) = found.keys() & {0, 2}
        assert found[shown].repeats == tuple({0, 2} - {shown})
        assert all(not hit.repeats for turn, hit in found.items() if turn != shown)
        every = memory.search("red boat", k=6, reading=hmem.ReadingOptions(fold=False))
        assert sorted(hit.turns[0] for hit in every) == [0, 1, 2, 3, 4, 5]
        assert all(not hit.repeats for hit in every)


def test_long_texts_that_begin_alike_are_no_repetitions() -> None:
    with open_memory() as memory:
        memory.add(["boat " * 200 + "red", "boat " * 200 + "blue!"], speaker="Ann")
        assert len(memory.search("boat", k=6)) == 2


def test_repetitions_make_room_for_others() -> None:
    with open_memory() as memory:
        memory.add(["the boat"] * 20 + ["a boat on the river"], speaker="Ann")
        found = memory.search("the boat", k=2, reading=hmem.ReadingOptions(lateral=()))
        assert {hit.text for hit in found} == {"the boat", "a boat on the river"}
        assert sum(len(hit.repeats) for hit in found) == 19


vectors = st.integers(1, 12).flatmap(
    lambda n: st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=n, max_size=n)
)


@given(vectors, st.integers(1, 12), st.floats(0, 3))
def test_variety_equals_its_definition(rows: list[list[int]], k: int, weight: float) -> None:
    block = np.array(rows, np.float32)
    scores = np.arange(len(rows), 0, -1, dtype=np.float32)
    chosen: list[int] = []
    for _ in range(min(k, len(rows))):
        left = [place for place in range(len(rows)) if place not in chosen]
        worth = {
            place: scores[place]
            - np.float32(weight) * max([np.float32(0), *(block[place] @ block[one] for one in chosen)])
            for place in left
        }
        chosen.append(max(left, key=lambda place: (worth[place], -place)))
    found = varied([block], np.arange(len(rows)), scores, k, weight)
    if weight and k < len(rows):
        assert found.tolist() == sorted(chosen)
    else:
        assert found.tolist() == list(range(min(k, len(rows))))


def test_likeness_counts_against_a_turn() -> None:
    block = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    scores = np.array([1.0, 0.9, 0.8], np.float32)
    assert varied([block], np.arange(3), scores, 2, 0.0).tolist() == [0, 1]
    assert varied([block], np.arange(3), scores, 2, 0.5).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("scores", "share", "shown"),
    [
        ([], 0.4, 0),
        ([3.0], 0.4, 1),
        ([3.0, 1.0], 0.4, 1),
        ([10, 9, 5, 1, 0], 0.4, 3),
        ([10, 9, 5, 1, 0], 1.0, 1),
        ([2.0] * 5, 0.4, 5),
        ([2.0] * 40, 0.0, MOST),
    ],
)
def test_enough(scores: list[float], share: float, shown: int) -> None:
    assert enough(scores, share) == shown


def test_a_list_takes_more_turns_and_a_date_fewer() -> None:
    scores = [10, 9, 5.1, 4.1, 3.5, 3.1, 0]
    assert [enough(scores, 0.4, kind) for kind in ("list", "other", "time")] == [6, 4, 3]  # type: ignore[arg-type]
    assert enough(scores, 1.0, "time") == 1


@given(st.integers(1, 10_000))
def test_the_pool_holds_what_is_wanted(k: int) -> None:
    assert k + 2 * REACH <= pool(k) <= k + 4 * REACH


def test_as_many_as_stand_out_are_shown() -> None:
    fillers = [f"{word} {number}" for number in range(20) for word in ("weather", "football", "dinner")]
    with open_memory() as memory:
        memory.add([*fillers, "the red boat sank", "the red boat was raised"])
        found = memory.search("red boat", k="auto", reading=hmem.ReadingOptions(lateral=(), tree=0))
        assert {hit.turns[0] for hit in found} == {60, 61}
        assert len(memory.search("red boat", k="auto", view="lexical")) <= 2
        assert memory.search("red boat", k="auto", where={"speaker": "nobody"}) == []
        with pytest.raises(hmem.InvalidInput, match="auto"):
            memory.search("boat", k="many")  # type: ignore[arg-type]
