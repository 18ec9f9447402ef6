"""Events as a user reads them, and searches that use them."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

import hmem_core as hmem
from hmem_core.journal.entries import Entry, EventDescribed, TimelineItem, TurnAnalysed
from hmem_core.state import pack_vector
from hmem_core.store import Plan
from tests.helpers import files_holding, hashed, hashing_encoder, open_memory
from tests.test_replay import assert_same, replayed

TALK = [
    ("garden", ["the garden needs water", "roses in the garden", "water the garden roses"]),
    ("train", ["the train was late", "a late train again", "trains are late"]),
    ("garden", ["garden roses bloom", "the roses of the garden bloom"]),
]
TURNS = {"garden": (0, 1, 2, 6, 7), "train": (3, 4, 5)}


def filled(location: Path | None = None, **options: object) -> hmem.Memory:
    options.setdefault("events", hmem.EventOptions(tau=0.5, continuity=0.0))
    memory = open_memory(location, **options)
    for number, (_, texts) in enumerate(TALK):
        memory.add(texts, session=f"s{number}", speaker="Ann", at=f"2026-01-0{number + 1}")
    return memory


def write(memory: hmem.Memory, *entries: Entry) -> None:
    memory._store.commit(lambda _: Plan(list(entries)))


def described(event: int, summary: str | None, read: tuple[int, ...], *facts: TimelineItem) -> EventDescribed:
    return EventDescribed(
        recorded=0,
        event=event,
        summary=summary,
        keywords=("plants",) if summary else (),
        tags=("hobby",) if summary else (),
        entities=("Rosa",) if summary else (),
        timeline=facts,
        read=read,
        vector=pack_vector(hashed([f"plants\nhobby\n{summary}"])[0]) if summary else None,
    )


def test_events_are_listed_newest_first() -> None:
    with filled() as memory:
        assert [event.turns for event in memory.events] == [TURNS["garden"], TURNS["train"]]
        garden = next(memory.events.all(1))
        assert (garden.id, garden.sessions, garden.speakers) == (0, ("s0", "s2"), ("Ann",))
        assert [event.id for event in memory.events.all(min_turns=4)] == [0]
        assert memory.events.get(0) == garden
        assert [event.id for event in memory.events.of_turn(4)] == [1]
        memory.add("late trains, late again", session="s9")
        assert [event.id for event in memory.events] == [1, 0]


def test_what_is_not_there() -> None:
    with open_memory() as memory:
        assert list(memory.events) == []
        assert memory.events.search("anything") == []
        assert memory.search("anything", view="events") == []
        with pytest.raises(hmem.EventNotFound, match="no events yet"):
            memory.events.get(0)
    with filled() as memory:
        with pytest.raises(hmem.EventNotFound, match="0 to 1"):
            memory.events.get(2)
        with pytest.raises(hmem.TurnNotFound):
            memory.events.of_turn(99)
        for call in (
            lambda: memory.events.get("0"),  # type: ignore[arg-type]
            lambda: memory.events.get(True),
            lambda: memory.events.all(0),
            lambda: memory.events.all(min_turns=1.5),  # type: ignore[arg-type]
            lambda: memory.events.search(" "),
            lambda: memory.events.search("x", 0),
        ):
            with pytest.raises(hmem.InvalidInput):
                call()


def test_events_are_searched() -> None:
    with filled() as memory:
        found = memory.events.search("Is the train late?", 1)
        assert [event.id for event in found] == [1]
        both = memory.events.search("roses in the garden")
        assert [event.id for event in both] == [0, 1]
        assert both[0].score is not None
        assert both[1].score is not None
        assert both[0].score > both[1].score


def test_turns_gain_by_their_events() -> None:
    """A turn that shares no word with the query is found beside those of its event that do."""
    options = hmem.EventOptions(tau=-1.0)
    with open_memory(events=options) as memory:
        memory.add(["zebra stripes", "quite so"], session="a")
        memory._event_options = hmem.EventOptions(tau=2.0)
        memory.add([f"number {n} alone" for n in range(20)], session="b")
        hits = memory.search("zebra stripes", 2, view="events", explain=True)
        assert [hit.turns for hit in hits] == [(0,), (1,)]
        for hit in hits:
            assert hit.signals is not None
            assert set(hit.signals) == {"dense", "lexical", "event"}
            assert hit.score == pytest.approx(sum(hit.signals.values()))
        fused = memory.search("zebra stripes", 2, explain=True)[0].signals
        assert fused is not None
        assert fused["event"] > 0
        without = hmem.ReadingOptions(event=0.0)
        left = memory.search("zebra stripes", 2, explain=True, reading=without)[0].signals
        assert left is not None
        assert left["event"] == 0.0


def test_filters_hold_in_the_event_view() -> None:
    with filled() as memory:
        found = memory.search("roses in the garden", 8, view="events", where={"session": "s2"})
        assert {hit.turns[0] for hit in found} == {6, 7}
        assert memory.search("roses", view="events", where={"session": "nowhere"}) == []


def test_a_model_s_description_takes_the_place_of_what_is_drawn_from_the_turns(tmp_path: Path) -> None:
    first, second = TimelineItem(0, "last week", "water was needed"), TimelineItem(6, None, "roses bloomed")
    with filled(tmp_path) as memory:
        write(memory, described(0, "About plants.", (0, 1), first), described(0, None, (6,), second))
        event = memory.events.get(0)
        assert (event.summary, event.keywords, event.tags) == ("About plants.", ("plants",), ("hobby",))
        assert event.entities == ("Rosa",)
        assert [(item.fact, item.turn, item.time) for item in event.timeline] == [
            ("water was needed", 0, "last week"),
            ("roses bloomed", 6, None),
        ]
        assert [event.id for event in memory.events.search("hobby plants", 1)] == [0]
        write(memory, described(0, "A secret of the roses.", (7,)))
        assert memory.events.get(0).summary == "A secret of the roses."
        memory.checkpoint()
        expected = memory._store._state.arrays()
    with open_memory(tmp_path) as memory:
        assert_same(memory._store._state.arrays(), expected)
        memory.forget(7)
        event = memory.events.get(0)
        assert event.summary == "About plants."
        assert len(event.timeline) == 2
        memory.forget(1)
        event = memory.events.get(0)
        assert event.summary.startswith("Ann: ")
        assert [item.fact for item in event.timeline] == ["roses bloomed"]
        assert_same(memory._store._state.arrays(), replayed(memory).arrays())
    assert files_holding(tmp_path, "secret of the roses") == []
    assert files_holding(tmp_path, "About plants") == []


def test_what_a_model_says_of_a_turn(tmp_path: Path) -> None:
    with filled(tmp_path) as memory:
        analysed = TurnAnalysed(recorded=0, turn=1, keywords=("bloom",), context="They garden.", read=(0, 1))
        write(memory, analysed)
        assert memory._store.view().events.analysis_of(1) == analysed
        assert memory._store.view().events.analysis_of(2) is None
        memory.forget(0)
        assert memory._store.view().events.analysis_of(1) is None
    assert files_holding(tmp_path, "They garden") == []


def test_another_encoder_makes_the_vectors_of_descriptions_anew(tmp_path: Path) -> None:
    with filled(tmp_path) as memory:
        write(memory, described(0, "About plants.", (0,)), described(0, None, (1,)))
    with open_memory(tmp_path, encoder=hashing_encoder(16), reembed=True) as memory:
        state = memory._store._state
        assert state.events.descriptions.vectors.view()[0].shape == (1, 16)
        assert memory.events.get(0).summary == "About plants."
        assert [event.turns for event in memory.events] == [TURNS["garden"], TURNS["train"]]
        assert_same(state.arrays(), replayed(memory).arrays())


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (described(2, "x", (0,)), "describes event 2"),
        (described(0, "x", (99,)), "never added"),
        (described(0, None, (), TimelineItem(99, None, "x")), "never added"),
        (EventDescribed(recorded=0, event=0, summary="x", read=()), "not both"),
        (EventDescribed(recorded=0, event=0, summary="x", read=(), vector=b"\0\0"), "1 numbers"),
        (TurnAnalysed(recorded=0, turn=99, read=()), "never added"),
    ],
)
def test_descriptions_that_do_not_fit_are_damage(entry: Entry, message: str) -> None:
    with filled() as memory:
        state = memory._store._state
        before = state.arrays()
        with pytest.raises(hmem.Damaged, match=message):
            state.apply(state.seq + 1, entry)
        assert_same(state.arrays(), before)


def test_a_listing_is_of_the_memory_as_it_was() -> None:
    with filled() as memory:
        listing = memory.events.all()
        first = next(listing)
        memory.add("something else entirely", session="s9")
        memory.forget(session="s1")
        assert first.id == 0
        assert list(listing) == []


def test_awaited(tmp_path: Path) -> None:
    filled(tmp_path).close()

    async def ask() -> None:
        async with await hmem.AsyncMemory.open(tmp_path, encoder=hashing_encoder()) as memory:
            assert (await memory.events.get(1)).turns == TURNS["train"]
            assert [event.id for event in await memory.events.of_turn(0)] == [0]
            assert [event.id for event in await memory.events.search("late train", 1)] == [1]
            assert [event.id async for event in memory.events] == [0, 1]
            assert [event.id async for event in memory.events.all(1)] == [0]

    asyncio.run(ask())


def test_searches_while_events_are_made(tmp_path: Path) -> None:
    """A view holds what it holds, however many links are made and indexed after it was taken."""
    with filled(tmp_path) as memory:
        view = memory._store.view(events=True)
        before = [view.events.links.turns_of(event).tolist() for event in range(2)]
        norms = view.events.links.norm.copy()
        for _ in itertools.repeat(None, 3):
            memory.add(["garden roses bloom again"] * 400, session="s9")
        assert [view.events.links.turns_of(event).tolist() for event in range(2)] == before
        assert (view.events.links.norm == norms).all()
        assert len(memory._store.view().events.links.turns_of(0)) == 5 + 1200
