"""`memory.segments` against the arrays it reads."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hmem_core as hmem
from tests.helpers import open_memory

EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
WORDS = ("kettle", "roof", "train", "bread", "violin", "harbour")

# Turns: which words they are of, and on which day they were said, in no order.
streams = st.lists(st.tuples(st.integers(0, len(WORDS) - 1), st.integers(0, 60)), min_size=1, max_size=40)
rules = st.sampled_from(
    [
        hmem.SegmentOptions(),
        hmem.SegmentOptions(tau=0.4),
        hmem.SegmentOptions(tau=2.0),  # nothing is compatible with anything
        hmem.SegmentOptions(tau=-1.0),
        hmem.SegmentOptions(tau=(0.9, 0.5, 0.1), choose="best"),
    ]
)


@contextmanager
def grown(
    stream: list[tuple[int, int]], rule: hmem.SegmentOptions, forgotten: set[int]
) -> Iterator[hmem.Memory]:
    with open_memory(segments=rule) as memory:
        memory.add(
            [
                hmem.Turn(text=f"{WORDS[word]} {WORDS[word]} {i}", at=EPOCH + dt.timedelta(days=day))
                for i, (word, day) in enumerate(stream)
            ]
        )
        memory.forget(forgotten) if forgotten else None
        yield memory


@given(stream=streams, rule=rules, data=st.data())
def test_segments_are_what_the_turns_say(
    stream: list[tuple[int, int]], rule: hmem.SegmentOptions, data: st.DataObject
) -> None:
    forgotten = data.draw(st.sets(st.integers(0, len(stream) - 1)))
    live = [i for i in range(len(stream)) if i not in forgotten]
    with grown(stream, rule, forgotten) as memory:
        walked = list(memory.segments.walk(min_size=1))
        by_id = {segment.id: segment for segment in walked}
        assert len(by_id) == len(walked)
        root = memory.segments.root()
        assert ([root] if root else []) == walked[:1]
        assert (root is None) == (not live)
        for segment in walked:
            turns = [i for i in live if segment.span[0] <= i <= segment.span[1]]
            days = [stream[i][1] for i in turns]
            assert segment.size == len(turns) > 0
            assert segment.start == EPOCH + dt.timedelta(days=min(days))
            assert segment.end == EPOCH + dt.timedelta(days=max(days))
            assert (segment.height == 0) == (segment.span[0] == segment.span[1]) == (not segment.children)
            assert memory.segments.get(segment.id) == segment
            assert memory.segments.children(segment.id) == [by_id[child] for child in segment.children]
            assert [by_id[child].parent for child in segment.children] == [segment.id] * len(segment.children)
            assert all(by_id[child].height < segment.height for child in segment.children)
            if segment.children:
                below = [by_id[child].span for child in segment.children]
                assert below == sorted(below)
                assert [i for span in below for i in live if span[0] <= i <= span[1]] == turns
                if not forgotten:
                    ends = [segment.span[0] - 1, *(last for _, last in below)]
                    assert [first for first, _ in below] == [end + 1 for end in ends[:-1]]
                    assert ends[-1] == segment.span[1]
        assert sorted(segment.span[0] for segment in walked if segment.height == 0) == live


@given(stream=streams, rule=rules, data=st.data())
def test_by_span_is_the_smallest_and_of_turn_is_all(
    stream: list[tuple[int, int]], rule: hmem.SegmentOptions, data: st.DataObject
) -> None:
    with grown(stream, rule, set()) as memory:
        turns = st.integers(0, len(stream) - 1)
        first, last = sorted((data.draw(turns), data.draw(turns)))
        everything = list(memory.segments.walk(min_size=1))
        over = [one for one in everything if one.span[0] <= first and last <= one.span[1]]
        assert memory.segments.by_span(first, last) == min(over, key=lambda one: one.size)
        holding = [one for one in everything if one.span[0] <= first <= one.span[1]]
        assert memory.segments.of_turn(first) == sorted(holding, key=lambda one: one.height)


@given(stream=streams, rule=rules, data=st.data())
def test_numbers_stay_while_turns_come_and_go(
    stream: list[tuple[int, int]], rule: hmem.SegmentOptions, data: st.DataObject
) -> None:
    def places(memory: hmem.Memory) -> dict[int, tuple[int, int]]:
        return {one.id: (one.span[0], one.height) for one in memory.segments.walk(min_size=1, turns=0)}

    with grown(stream, rule, set()) as memory:
        before = places(memory)
        memory.add([f"{WORDS[data.draw(st.integers(0, 5))]} again" for _ in range(5)])
        grown_places = places(memory)
        assert before.items() <= grown_places.items()
        memory.forget(data.draw(st.sets(st.integers(0, len(stream) - 1), min_size=1)))
        assert places(memory).items() <= grown_places.items()


def test_walk_goes_as_deep_and_wide_as_it_is_told() -> None:
    days = ["kettle kettle", "kettle steam"], ["roof roof", "roof rain", "roof tiles"], ["train train"] * 4
    with open_memory(segments=hmem.SegmentOptions(tau=(0.5, -1.0))) as memory:
        for day in days:
            memory.add(day)
        walk: Callable[..., Iterator[hmem.Segment]] = memory.segments.walk
        assert [one.span for one in walk()] == [(0, 8), (0, 1), (2, 4), (5, 8)]
        assert [one.span for one in walk(depth=0)] == [(0, 8)]
        assert [one.span for one in walk(min_size=3)] == [(0, 8), (2, 4), (5, 8)]
        assert [one.span for one in walk(min_size=3, width=1)] == [(0, 8), (5, 8)]
        assert [one.span for one in walk(min_size=99)] == [(0, 8)], "where it begins always shows"
        assert [one.span for one in walk(width=0)] == [(0, 8)]
        roof = memory.segments.by_span(2, 4)
        assert next(walk(roof.id)) == roof
        assert [one.span for one in walk(roof.id, min_size=1)] == [(2, 4), (2, 2), (3, 3), (4, 4)]
        assert {one.text for one in walk(turns=0)} == {""}
        assert [one.text.count("\n") for one in walk(turns=1)] == [0] * 4


def test_a_walk_sees_the_memory_as_it_was_when_it_began() -> None:
    with open_memory(segments=hmem.SegmentOptions(tau=-1.0)) as memory:
        memory.add(["kettle one", "kettle two", "kettle three"], at="2026-01-02")
        expected = [msgspec.structs.replace(one, text="") for one in memory.segments.walk(min_size=1)]
        walk = memory.segments.walk(min_size=1)
        first = next(walk)
        memory.add("kettle four", at="2026-01-03")
        memory.forget(1)
        rest = list(walk)
        assert [msgspec.structs.replace(one, text="") for one in (first, *rest)] == expected
        assert not any("two" in one.text for one in rest), "what is forgotten is gone at once"
        assert [one.span for one in memory.segments.walk(min_size=1)] == [(0, 3), (0, 0), (2, 2), (3, 3)]


def test_what_is_not_there_is_said() -> None:
    with open_memory() as memory:
        segments = memory.segments
        assert segments.root() is None
        assert list(segments.walk()) == []
        for call in (segments.get, segments.children, segments.text, segments.walk):
            with pytest.raises(hmem.SegmentNotFound, match="no segments yet"):
                call(0)
        with pytest.raises(hmem.TurnNotFound, match="empty"):
            segments.of_turn(0)

        memory.add(["kettle", "roof", "train"])
        gone = segments.of_turn(1)[0].id
        memory.forget(1)
        for call in (segments.get, segments.children, segments.text, segments.walk):
            with pytest.raises(hmem.SegmentNotFound, match="forgotten"):
                call(gone)
            with pytest.raises(hmem.SegmentNotFound, match="no segment 99"):
                call(99)
            for id in ("1", 1.0, True):
                with pytest.raises(hmem.InvalidInput):
                    call(id)  # type: ignore[arg-type]
        for spans in ((0, 1), (1, 2)):
            with pytest.raises(hmem.TurnForgotten):
                segments.by_span(*spans)
        with pytest.raises(hmem.TurnForgotten):
            segments.of_turn(1)
        with pytest.raises(hmem.TurnNotFound):
            segments.by_span(0, 3)
        with pytest.raises(hmem.InvalidInput, match="comes after"):
            segments.by_span(2, 0)
        for wrong in ({"depth": -1}, {"width": -1}, {"min_size": 0}, {"turns": -1}, {"turns": None}):
            with pytest.raises(hmem.InvalidInput):
                segments.walk(**wrong)  # type: ignore[arg-type]
        assert segments.get(np.int32(0)).id == 0  # type: ignore[arg-type]
        memory.forget([0, 2])
        assert segments.root() is None
        assert list(segments.walk()) == []
    with pytest.raises(hmem.Closed):
        segments.root()


def test_a_tree_as_deep_as_it_is_long_is_walked() -> None:
    numbers = count()
    encoder = hmem.FunctionEncoder(
        lambda texts: [np.eye(2)[next(numbers) % 2] for _ in texts], name="flips", dimension=2
    )
    with hmem.open(encoder=encoder, segments=hmem.SegmentOptions(tau=2.0)) as memory:
        memory.add(["turn"] * 3000)
        walked = list(memory.segments.walk(turns=0))
        assert [one.size for one in walked] == list(range(3000, 1, -1))
        assert len(memory.segments.of_turn(0)) == 3000
