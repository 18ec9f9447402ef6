"""Types that replies are read into, and values of them."""

from __future__ import annotations

import enum
from typing import Annotated, Literal

import msgspec
from hypothesis import strategies as st


class Place(msgspec.Struct, frozen=True):
    height: Annotated[int, msgspec.Meta(ge=1)] | None


class Color(enum.Enum):
    DARK_RED = "dark red"
    BLUE = "Blue"


class Fact(msgspec.Struct, frozen=True):
    subject: str
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    summary: Annotated[str, msgspec.Meta(pattern=r"\S")]
    ids: list[int] = []
    sure: bool = False
    status: Literal["active", "superseded"] = "active"
    color: Color | None = None
    facts: tuple[Fact, ...] = ()
    note: str | None = None
    scores: dict[str, float] = {}


class Ids(msgspec.Struct, frozen=True):
    turn_ids: list[int]
    why: str = ""


class Add(msgspec.Struct, frozen=True, tag="add"):
    text: str


class Drop(msgspec.Struct, frozen=True, tag="drop"):
    id: int


class Step(msgspec.Struct, frozen=True):
    action: Add | Drop | None = None


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
awkward = st.sampled_from(
    ["```", "</think>", "<think>", *"{}\"'“\\", "[1]", "\\u12", "//", "# ", "None", "\u2028"]
)
strings = st.lists(texts | awkward, max_size=3).map("".join)
integers = st.integers(-(10**20), 10**20)
unit = st.floats(0, 1)
values: st.SearchStrategy[Reply] = st.builds(
    Reply,
    summary=strings.filter(lambda text: any(not char.isspace() for char in text)),
    ids=st.lists(integers, max_size=4),
    sure=st.booleans(),
    status=st.sampled_from(["active", "superseded"]),
    color=st.none() | st.sampled_from(Color),
    facts=st.lists(st.builds(Fact, subject=strings, confidence=unit), max_size=2).map(tuple),
    note=st.none() | strings,
    scores=st.dictionaries(strings, st.floats(allow_nan=False, allow_infinity=False), max_size=2),
)
