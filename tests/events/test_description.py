"""What stands for an event that no model described."""

from __future__ import annotations

import pytest

import hmem_core as hmem
from tests.helpers import open_memory

ONE = hmem.EventOptions(tau=-1.0)
"""All turns are one event."""


def event_of(*texts: str, **more: object) -> hmem.Event:
    with open_memory(events=ONE) as memory:
        memory.add(
            [{"speaker": ("Ann", "Ben")[n % 2], "content": text} for n, text in enumerate(texts)], **more
        )
        return memory.events.get(0)


def test_names_are_written_with_capitals_where_no_sentence_begins() -> None:
    event = event_of(
        "Yesterday we saw the Grand Canyon. Wow, what a view! We went with Maria.",
        "Maria loves it. [a photo of a rock] Thanks, Ann! I'm glad, and so was NASA. The view was great.",
        "Have a Great day, said the Bank of Portugal's clerk: Welcome",
    )
    assert event.entities[:2] == ("Ann", "Ben")
    assert set(event.entities[2:]) == {"Grand Canyon", "Maria", "NASA", "Bank of Portugal"}


@pytest.mark.parametrize("text", ["東京へ行きました", "ไปเชียงใหม่กับแม่", "نسافر إلى القاهرة"])
def test_rare_terms_are_names_where_there_are_no_capitals(text: str) -> None:
    assert len(event_of(text, "ok").entities) > 2


def test_keywords_tell_an_event_from_the_others() -> None:
    options = hmem.EventOptions(tau=2.0)
    with open_memory(events=options) as memory:
        memory.add([f"we talk about the weather {n}" for n in range(20)])
        memory.add("we talk about Kettles; my kettle whistles")
        found = memory.events.of_turn(20)[0].keywords
    assert set(found[:2]) == {"kettle", "whistles"}


def test_a_summary_quotes_a_few_turns_and_a_timeline_dates_them() -> None:
    with open_memory(events=ONE) as memory:
        for day in range(1, 6):
            turns = [f"on day {day} we did {thing}" for thing in ("this", "that", "nothing", "it all")]
            memory.add(turns, session=f"day{day}", at=f"2026-01-0{day}", speaker="Ann")
        event = memory.events.get(0)
        assert len(event.summary.splitlines()) == 3
        assert all(line.startswith("Ann: on day") for line in event.summary.splitlines())
        assert [item.at.day for item in event.timeline] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
        assert all(memory.get(item.turn).text in item.fact for item in event.timeline)
        memory.forget(session="day3")
        after = memory.events.get(0)
        assert [item.at.day for item in after.timeline] == [1, 1, 2, 2, 4, 4, 5, 5]
        assert "day 3" not in str(after)


@pytest.mark.parametrize("text", ["...", "👍", "a", "\u200f", "1234", "I", "x" * 5000, "A. B. C."])
def test_any_text_can_be_described(text: str) -> None:
    event = event_of(text)
    assert event.turns == (0,)
    assert event.entities[0] == "Ann"
    assert len(event.summary) < 200


def test_a_giant_event_is_described_from_a_part_of_it() -> None:
    with open_memory(events=ONE) as memory:
        memory.add([f"turn {n} of many" for n in range(3000)], session="s")
        event = memory.events.get(0)
    assert len(event.turns) == 3000
    assert len(event.timeline) <= 64
    assert len(event.keywords) <= 8
