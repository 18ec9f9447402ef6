"""Filters, against a plain reading of what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import hmem_core as hmem
from tests.helpers import open_memory

TURNS: list[dict[str, Any]] = [
    {"content": "0", "metadata": {"n": 1, "tag": ["a", "b"], "ok": True}},
    {"content": "1", "metadata": {"n": 2.5, "tag": "a"}, "session": "s", "speaker": "Ann"},
    {"content": "2", "metadata": {"n": "2", "tag": []}, "role": "assistant", "key": "k2"},
    {"content": "3", "metadata": {"n": None, "note": "left at noon"}, "speaker": "Bo"},
    {"content": "4", "metadata": {"n": -7, "ok": False, "session": "in metadata"}, "session": "t"},
    {"content": "5"},
    {"content": "6", "metadata": {"n": 1, "deep": {"x": 1}}, "session": "s", "speaker": "Ann"},
]


@pytest.fixture(scope="module")
def find() -> Callable[[dict[str, Any]], list[int]]:
    memory = open_memory()
    memory.add(TURNS)
    return lambda where: [turn.id for turn in memory.turns(where=where)]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6]),
        ({"n": 1}, [0, 6]),
        ({"n": 1.0}, [0, 6]),
        ({"n": "2"}, [2]),
        ({"ok": True}, [0]),
        ({"ok": 1}, []),
        ({"n": {"$gte": 1}}, [0, 1, 6]),
        ({"n": {"$gt": -8, "$lt": 2}}, [0, 4, 6]),
        ({"n": {"$lte": "9"}}, [2]),
        ({"n": [1, "2"]}, [0, 2, 6]),
        ({"n": {"$in": [2.5]}}, [1]),
        ({"n": {"$nin": [1, 2.5, "2", -7]}}, [3, 5]),
        ({"n": {"$ne": 1}}, [1, 2, 3, 4, 5]),
        ({"n": None}, [3, 5]),
        ({"n": {"$exists": True}}, [0, 1, 2, 4, 6]),
        ({"n": {"$exists": False}}, [3, 5]),
        ({"tag": "a"}, [0, 1]),
        ({"tag": "b"}, [0]),
        ({"tag": {"$eq": ["a", "b"]}}, [0]),
        ({"tag": {"$ne": "a"}}, [2, 3, 4, 5, 6]),
        ({"note": {"$contains": "noon"}}, [3]),
        ({"deep": {"$eq": {"x": 1}}}, [6]),
        ({"session": "s"}, [1, 6]),
        ({"session": None}, [0, 2, 3, 5]),
        ({"metadata.session": "in metadata"}, [4]),
        ({"speaker": ["Ann", "Bo"]}, [1, 3, 6]),
        ({"speaker": {"$ne": "Ann"}}, [0, 2, 3, 4, 5]),
        ({"role": "assistant"}, [2]),
        ({"key": "k2"}, [2]),
        ({"key": {"$exists": False}}, [0, 1, 3, 4, 5, 6]),
        ({"speaker": "Ann", "n": 1}, [6]),
        ({"no such field": "x"}, []),
    ],
)
def test_conditions(
    find: Callable[[dict[str, Any]], list[int]], where: dict[str, Any], ids: list[int]
) -> None:
    assert find(where) == ids


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({"n": {"$near": 1}}, "unknown operator '\\$near'"),
        ({"n": {"x": 1}}, "unknown operator 'x'"),
        ({"n": {}}, "empty dict"),
        ({"n": {"$in": "abc"}}, "needs a list"),
        ({"n": {"$gt": None}}, "compares numbers or text"),
        ({"n": {"$gt": True}}, "compares numbers or text"),
        ({"n": {"$exists": 1}}, "True or False"),
        ({"n": {"$contains": 3}}, "looks for text"),
    ],
)
def test_conditions_without_meaning_raise(
    find: Callable[[dict[str, Any]], list[int]], where: dict[str, Any], says: str
) -> None:
    with pytest.raises(hmem.InvalidInput, match=says):
        find(where)


def test_a_field_is_kept_up_with_later_turns() -> None:
    with open_memory() as memory:
        for number in range(5):
            memory.add("x", metadata={"n": number % 2})
            assert [turn.id for turn in memory.turns(where={"n": 0})] == list(range(0, number + 1, 2))
        memory.forget(2)
        assert [turn.id for turn in memory.turns(where={"n": 0})] == [0, 4]
