"""What kind of answer a question wants."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmem_core.retrieval.understanding import kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("When did Ida move?", "time"),
        ("What year was the flood?", "time"),
        ("On which day do they row?", "time"),
        ("How long ago did they meet?", "time"),
        ("Since when has she rowed?", "time"),
        ("How many cats does she have?", "count"),
        ("How often do they row?", "count"),
        ("What is the number of boats?", "count"),
        ("Does she row?", "yes_no"),
        ("Isn't she tired?", "yes_no"),
        ("Have they ever met?", "yes_no"),
        ("Do you remember where she lives?", "place"),
        ("Can you tell me when it rained?", "time"),
        ("What boats does she own?", "list"),
        ("What are her plans?", "list"),
        ("List all boats", "list"),
        ("What kinds of boats are there?", "list"),
        ("Who built it?", "person"),
        ("Whose boat is it?", "person"),
        ("Where is it?", "place"),
        ("Which town is it in?", "place"),
        ("Why did she stop?", "reason"),
        ("What did she say when it rained?", "other"),
        ("When she was young, what did she play?", "other"),
        ("What is her dress like?", "other"),
        ("the boat", "other"),
        ("", "other"),
        ("Wann zog sie um?", "time"),
        ("Wie viele Boote hat sie?", "count"),
        ("Où est le bateau ?", "place"),
        ("¿Quién lo construyó?", "person"),
        ("Perché?", "reason"),
        ("Сколько у неё лодок?", "count"),
        ("她什么时候搬家的", "time"),
        ("她有几个孩子", "count"),
        ("你去过里斯本吗", "yes_no"),
        ("彼女はどこに住んでいますか", "place"),
        ("누구를 만났어?", "person"),
    ],
)
def test_kinds(text: str, expected: str) -> None:
    assert kind(text) == expected


@given(st.text(max_size=300))
def test_any_text_has_a_kind(text: str) -> None:
    assert kind(text) in {"time", "count", "yes_no", "list", "person", "place", "reason", "other"}
    assert kind("When was it? " + text * 3) == "time"
