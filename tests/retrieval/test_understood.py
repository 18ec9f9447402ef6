"""Searches that name a speaker or a time."""

from __future__ import annotations

import datetime as dt

import pytest

import hmem_core as hmem
from tests.helpers import open_memory

ALONE = hmem.ReadingOptions(lateral=(), answer=0, session=0, tree=0, event=0)


def signals(memory: hmem.Memory, query: str, **options: object) -> dict[int, dict[str, float]]:
    found = memory.search(query, 99, explain=True, reading=ALONE, **options)  # type: ignore[arg-type]
    return {hit.turns[0]: dict(hit.signals or {}) for hit in found}


def test_turns_of_a_speaker_who_is_named_gain() -> None:
    with open_memory() as memory:
        memory.add("I sail on Sundays.", speaker="Ann Berg")
        memory.add("Ann sails on Sundays.", speaker="Bo")
        memory.add("I bake on Sundays.", speaker="Anna")
        found = signals(memory, "When does Ann sail?")
        assert [found[turn]["speaker"] for turn in range(3)] == [1, 0, 0]
        assert memory.search("When does Ann sail?", 1)[0].turns == (0,)
        assert all(parts["speaker"] == 0 for parts in signals(memory, "When does somebody sail?").values())


def test_roles_are_no_speakers() -> None:
    """Most queries of a user speak of "my" or "I"; that says little about who said what is wanted."""
    with open_memory() as memory:
        memory.add([{"role": "user", "content": "a boat"}, {"role": "assistant", "content": "the boat"}])
        assert all(parts["speaker"] == 0 for parts in signals(memory, "where is my boat").values())


def test_turns_of_a_time_that_is_named_gain() -> None:
    with open_memory(clock=lambda: 1_772_452_800_000_000) as memory:  # 2026-03-02
        for day in ("2025-05-03", "2026-01-20", "2026-02-25"):
            memory.add(f"rain in the morning ({day})", at=day)
        found = signals(memory, "Did it rain last week?")
        assert found[2]["period"] == pytest.approx(4.0)
        assert found[2]["period"] > found[1]["period"] > found[0]["period"] >= 0
        assert memory.search("Did it rain last week?", 1)[0].turns == (2,)
        later = signals(memory, "Did it rain last week?", now="2026-01-27")
        assert max(later, key=lambda turn: later[turn]["period"]) == 1
        assert memory.context("rain last week?", 60, now=dt.datetime(2026, 1, 27)).lines[0].turns == (1,)
        assert all(parts["period"] == 0 for parts in signals(memory, "Did it rain?").values())
        with pytest.raises(hmem.InvalidInput, match="now"):
            memory.search("rain", now="soon")
