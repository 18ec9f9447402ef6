"""To which events turns go, and what that costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hmem_core as hmem
from hmem_core.columns import blocks, links
from hmem_core.effects import drive
from hmem_core.events.construction import Coming, decide
from hmem_core.journal.entries import TurnsLinked
from hmem_core.options import EventOptions
from hmem_core.store import Plan
from tests.helpers import Clock, open_memory
from tests.test_replay import assert_same, replayed

TOPICS = 6
DIMENSION = 24


def about(texts: list[str]) -> np.ndarray:
    """A direction for each topic, "3 anything" being of topic 3, and a little noise for each text."""
    rows = np.zeros((len(texts), DIMENSION))
    for row, text in enumerate(texts):
        said = text.split(": ")[-1]
        rows[row, int(said.split()[0]) % TOPICS] = 1
        rows[row] += np.random.default_rng(len(said)).standard_normal(DIMENSION) * 0.02
    return rows


def topical(location: Path | None = None, **options: object) -> hmem.Memory:
    encoder = hmem.FunctionEncoder(about, name="topics", dimension=DIMENSION)
    options.setdefault("events", EventOptions(tau=0.8))
    return open_memory(location, encoder=encoder, **options)


def of(memory: hmem.Memory) -> list[tuple[int, ...]]:
    """The turns of each event."""
    return [event.turns for event in sorted(memory.events, key=lambda event: event.id)]


def test_successive_turns_of_one_topic_are_one_event() -> None:
    with topical() as memory:
        memory.add([f"{topic} word" for topic in (0, 0, 0, 1, 1, 1)], session="s")
        assert of(memory) == [(0, 1, 2), (3, 4, 5)]
        # The third topic's first turn stands beside two of another, but is the largest part of its context.
        memory.add("2 word", session="s")
        assert of(memory)[2] == (6,)


def test_a_topic_that_comes_back_after_weeks_is_the_same_event() -> None:
    with topical() as memory:
        for week, topic in enumerate((0, 1, 2, 0)):
            memory.add([f"{topic} word"] * 3, session=f"s{week}", at=f"2026-0{week + 1}-01")
        assert of(memory) == [(0, 1, 2, 9, 10, 11), (3, 4, 5), (6, 7, 8)]
        event = memory.events.get(0)
        assert event.sessions == ("s0", "s3")
        assert (event.start.month, event.end.month) == (1, 4)


def test_threads_that_run_side_by_side_are_told_apart() -> None:
    with topical() as memory:
        for _ in range(4):
            memory.add("0 word", session="a")
            memory.add("1 word", session="b")
        assert of(memory) == [(0, 2, 4, 6), (1, 3, 5, 7)]


@pytest.mark.parametrize(("tau", "count"), [(-1.0, 1), (2.0, 300)], ids=["one event", "an event a turn"])
def test_extremes(tau: float, count: int, tmp_path: Path) -> None:
    with topical(tmp_path, events=EventOptions(tau=tau, continuity=0.0)) as memory:
        memory.add([f"{number} word" for number in range(270)], session="s")
        for number in range(270, 300):
            memory.add(f"{number} word", session="s")
        view = memory._store.view(events=True)
        assert view.events.links.events == count
        assert {turn for event in memory.events for turn in event.turns} == set(range(300))
        assert len(memory.search("1 word", view="events")) == 8
        memory.forget(range(0, 300, 7))
        assert_same(memory._store._state.arrays(), replayed(memory).arrays())
        memory.checkpoint()
        expected = memory._store._state.arrays()
    with topical(tmp_path) as memory:
        assert_same(memory._store._state.arrays(), expected)


def test_a_batch_goes_where_single_turns_would() -> None:
    """With nothing recalled by words, which looks at what was stored before the batch alone."""
    rng = np.random.default_rng(3)
    turns = [
        {
            "content": f"{rng.integers(TOPICS)} {'x' * int(rng.integers(1, 9))}",
            "session": "ab"[rng.integers(2)],
        }
        for _ in range(60)
    ]
    options = EventOptions(recalled=0)
    with topical(events=options) as whole, topical(events=options) as single:
        whole.add(turns)
        for turn in turns:
            single.add(turn)
        assert of(whole) == of(single)
        assert len(of(whole)) > 1


def test_rare_words_recall_an_event_that_was_updated_long_ago() -> None:
    def links_of(recalled: int) -> int:
        options = EventOptions(tau=0.8, recent=2, recalled=recalled)
        with topical(events=options) as memory:
            for session, topic in enumerate((0, 1, 2, 3)):
                memory.add([f"{topic} word of topic{topic}"] * 3, session=f"s{session}")
            memory.add("0 once more of topic0", session="late")
            return memory.events.of_turn(12)[0].id

    assert links_of(0) == 4
    assert links_of(16) == 0


@pytest.mark.parametrize("turns", [200, 2_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_the_comparisons_for_a_turn_do_not_grow_with_the_memory(turns: int) -> None:
    """An event for each turn, and words that all turns share."""
    options = EventOptions(tau=2.0, recent=32, recalled=8)
    with topical(events=options) as memory:
        for start in range(0, turns, 2000):
            memory.add([f"{n} shared words" for n in range(start, min(start + 2000, turns))])
        with memory._store.reading() as state:
            vectors = state.vectors.view()[0][:1]
            decided = decide(state, [Coming(None, "1 shared words")], vectors, options)
        assert 32 <= decided.compared <= 32 + 8


def test_turns_that_wait_are_linked_with_the_next_ones() -> None:
    """As a memory with a model leaves them, if it is then used without one."""
    with topical() as memory:
        store = memory._store
        model = EventOptions(affiliation="model", tau=0.8)
        from hmem_core.changes import write_turns
        from hmem_core.messages import Defaults, read_messages

        defaults = Defaults(
            role="user", speaker=None, session="s", at=None, key=None, metadata=None, system=False
        )
        drafts, _ = read_messages(["0 word", "0 word", "1 word"], defaults, memory._tz)
        drive(write_turns(store, drafts, (), hmem.SegmentOptions(), model, False), memory._answer)
        assert list(memory.events) == []
        assert memory.events.of_turn(1) == []
        hits = memory.search("1 word", view="events")
        assert {turn for hit in hits for turn in (*hit.turns, *hit.repeats)} == {0, 1, 2}
        memory.forget(0)
        assert_same(store._state.arrays(), replayed(memory).arrays())
        memory.add("1 word", session="s")
        assert of(memory) == [(1,), (2, 3)]
        assert not store._state.events.links.unlinked
        assert_same(store._state.arrays(), replayed(memory).arrays())


def test_two_writers_decide_anew(tmp_path: Path) -> None:
    clock = Clock()
    with topical(tmp_path, clock=clock) as first, topical(tmp_path, clock=clock) as second:
        for number in range(6):
            (first, second)[number % 2].add(f"{number // 3} word", session="s")
        assert of(first) == of(second) == [(0, 1, 2), (3, 4, 5)]
        append, raced = first._store.journal.append, []

        def late(*given: object, **named: object) -> int:
            if not raced:
                raced.append(second.add("4 word", session="other"))
            return append(*given, **named)  # type: ignore[arg-type]

        first._store.journal.append = late  # type: ignore[method-assign]
        added = first.add("5 word", session="third")
        assert (raced[0].ids, added.ids) == ((6,), (7,))
        assert of(first) == of(second) == [(0, 1, 2), (3, 4, 5), (6,), (7,)]


def test_links_that_do_not_fit_are_damage() -> None:
    with topical() as memory:
        memory.add(["0 word", "1 word"])
        state = memory._store._state
        seq = state.seq
        for wrong in (((2, (0,)),), ((0, (0,)),), ((0, (3,)),), ((1, (2, 2)),), ((-1, (2,)),)):
            before = state.arrays()
            with pytest.raises(hmem.Damaged, match="links turn"):
                state.apply(seq + 1, TurnsLinked(recorded=0, links=wrong))
            assert_same(state.arrays(), before)


def test_forgetting_reaches_events(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(links, "_TAIL", 2)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 4)
    with topical(tmp_path) as memory:
        memory.add(["0 word", "0 wordy secret", "1 word", "1 word"], session="s")
        memory.forget(1)
        assert of(memory) == [(0,), (2, 3)]
        assert "secret" not in str(list(memory.events))
        memory.forget(0)
        assert of(memory) == [(2, 3)]
        with pytest.raises(hmem.EventNotFound, match="forgotten"):
            memory.events.get(0)
        assert [event.id for event in memory.events.search("0 word")] == [1]
        memory.add("0 word", session="t")
        # An event without turns stays empty: nothing is near to nothing.
        assert of(memory) == [(2, 3), (4,)]
        assert_same(memory._store._state.arrays(), replayed(memory).arrays())


def test_a_plan_may_link_a_turn_to_several_events() -> None:
    with topical() as memory:
        memory.add(["0 word", "1 word"])
        links_ = ((0, (1, 2)),)
        memory._store.commit(lambda _: Plan([TurnsLinked(recorded=0, links=links_)]))
        assert [event.id for event in memory.events.of_turn(0)] == [0, 1, 2]
        assert of(memory) == [(0,), (0, 1), (0,)]
        assert_same(memory._store._state.arrays(), replayed(memory).arrays())


@pytest.mark.parametrize(
    "wrong",
    [
        {"affiliation": "llm"}, {"tau": "automatic"}, {"tau": float("nan")}, {"continuity": -1},
        {"recent": 0}, {"recalled": -1}, {"recalled": True}, {"low": 0.5, "high": 0.4}, {"window": -1},
        {"batch": 1.5},
    ],
)  # fmt: skip
def test_options_without_meaning(wrong: dict[str, object]) -> None:
    with pytest.raises(hmem.InvalidInput, match=next(iter(wrong))):
        EventOptions(**wrong)  # type: ignore[arg-type]
