"""Who is named in a text."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hmem_core as hmem
from hmem_core.retrieval.understanding import Mention, Roster, roster_of, understand
from hmem_core.state import View
from tests.helpers import open_memory

ROSTER = Roster(
    ["Ida", None, "Idana Voss", "Bo Kim", "Bo Lin", "Will", "田中", "Zoé", "マリ", "Al Ito", "수진"],
    ["user", "assistant", "tool"],
    ["Ida", "Chess Club", "rowing club"],
    {"Granny": "Idana Voss", "nobody": "who is not known"},
)


def names(text: str, roster: Roster = ROSTER) -> list[tuple[str, str]]:
    return [(one.kind, one.name) for one in roster.find(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did Ida's dog do?", [("speaker", "Ida"), ("subject", "Ida")]),
        ("IDA’s", [("speaker", "Ida"), ("subject", "Ida")]),
        ("Idana", [("speaker", "Idana Voss")]),
        ("idana voss and zoe", [("speaker", "Idana Voss"), ("speaker", "Zoé")]),
        ("Ｚｏé", [("speaker", "Zoé")]),
        ("Idanas and Idaho", []),
        ("Bo", []),  # two of that name
        ("Bo Kim", [("speaker", "Bo Kim")]),
        ("Al", [("speaker", "Al Ito")]),
        ("Ito", []),  # first names stand for the whole, others do not
        ("Granny", [("speaker", "Idana Voss")]),
        ("nobody", []),
        ("will Zoé come?", [("speaker", "Zoé")]),
        ("Will Zoé come?", [("speaker", "Zoé")]),
        ("What did Will say?", [("speaker", "Will")]),
        ("Will's car", [("speaker", "Will")]),
        ("the chess club", [("subject", "Chess Club")]),
        ("chess", [("subject", "Chess Club")]),
        ("rowing", []),  # no name of a person: its first word alone says too little
        ("田中さんはどこ", [("speaker", "田中")]),
        ("昨日田中は", [("speaker", "田中")]),
        ("マリは", [("speaker", "マリ")]),
        ("マリア", []),
        ("マリ・ロペス", [("speaker", "マリ")]),
        ("수진이가 뭐래", [("speaker", "수진")]),
        ("What is my name?", [("role", "user")]),
        ("Tell me what I said", [("role", "user")]),
        ("Tell me a joke", []),
        ("mon chien", [("role", "user")]),
        ("我家在哪里", [("role", "user")]),
        ("what did the assistant say", [("role", "assistant")]),
        ("a tool", []),
        ("", []),
    ],
)
def test_who_is_named(text: str, expected: list[tuple[str, str]]) -> None:
    assert names(text) == expected


def test_a_first_person_needs_a_user() -> None:
    assert names("What did I say?", Roster(["Ida"], ["narrator"])) == []


def test_a_mention_has_its_place_and_code() -> None:
    text = "Did Bo Lin call?"
    (one,) = ROSTER.find(text)
    assert one == Mention("speaker", 4, "Bo Lin", (4, 10))
    assert text[slice(*one.span)] == "Bo Lin"


def test_only_the_beginning_is_read() -> None:
    assert ROSTER.find("x " * 1000 + "Zoé") == ()
    assert names("Zoé " + "x" * 5_000_000) == [("speaker", "Zoé")]


_PIECES = [
    "Ida",
    "idana",
    "Voss",
    "Bo",
    "Kim",
    "will",
    "Will",
    "田",
    "中",
    "マリ",
    "ア",
    "I",
    "me",
    "the",
    "user",
    "'s",
    ",",
    "\n",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map(" ".join) | st.text(max_size=60))
def test_mentions_stand_in_order_and_apart(text: str) -> None:
    spans = sorted({one.span for one in ROSTER.find(text)})
    assert all(0 <= first < last <= len(text) for first, last in spans)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


@given(st.lists(st.text(max_size=12) | st.none(), max_size=6))
def test_any_names_may_be_known(some: list[str | None]) -> None:
    roster = Roster(some, some, some)
    for text in filter(None, some):
        roster.find(text)
        roster.find(f"Did {text} come?")


def test_the_roster_of_a_memory_follows_it() -> None:
    with open_memory() as memory:
        memory.add([{"speaker": "Ida", "content": "hello"}], session="s")
        assert names("Ida and I", roster_of(_view(memory))) == [("speaker", "Ida"), ("role", "user")]
        assert names("Zoé", roster_of(_view(memory))) == []
        memory.add([{"speaker": "Zoé", "content": "hello"}], session="s")
        assert names("Zoé", roster_of(_view(memory))) == [("speaker", "Zoé")]
        memory.forget(session="s")
        assert names("Zoé and Ida", roster_of(_view(memory))) == []
        assert names("rowing club", roster_of(_view(memory), ["rowing club"])) == [("subject", "rowing club")]


def test_a_query_is_understood_as_a_whole() -> None:
    found = understand("How many games did Zoé win in October 2023?", "2024-05-15T10:30", names=ROSTER)
    assert [one.name for one in found.who] == ["Zoé"]
    assert [one.text for one in found.when] == ["in October 2023"]
    assert found.kind == "count"


def _view(memory: hmem.Memory) -> View:
    return memory._store.view()
