"""Reading replies: what holds for every reply, of any content and length."""

from __future__ import annotations

import contextlib
import json
import time
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmem_core.errors import MalformedReply
from hmem_core.llm.loose import DEPTH, Broken, Reader, Unclosed
from hmem_core.llm.replies import parse_reply
from tests.llm.replies import Add, Drop, Ids, Place, Reply, Step, integers, strings, values

prose = st.text("abc XYZ.,:;!?-—12*_/é猫\n", max_size=30)


def dumped(value: Any) -> str:
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


def messy(value: Any, random: Random) -> str:
    """`value` as a careless model would write it, another way each time."""
    blank = random.choice(["", "", " ", "\n  ", "\u200b", " // so\n", "/* {[ */", "\t#\n", "\u00a0"])
    flip = random.choice([True, False])
    if isinstance(value, dict):
        keys = [key if flip and key.isidentifier() else messy(key, random) for key in value]
        items = [messy(one, random) for one in value.values()]
        parts = [f"{key}{blank}:{blank}{item}" for key, item in zip(keys, items, strict=True)]
        inside = ("{", "}")
    elif isinstance(value, list):
        parts, inside = [messy(one, random) for one in value], ("[", "]")
    elif isinstance(value, str):
        return repr(value) if flip else json.dumps(value, ensure_ascii=random.choice([True, False]))
    else:
        return repr(value) if flip else json.dumps(value)
    end = "," if parts and flip else ""
    return inside[0] + blank + f",{blank}".join(parts) + end + blank + inside[1]


wrappings = st.tuples(
    st.sampled_from(["plain", "fence", "prose", "think", "begun", "both"]),
    st.sampled_from(["```", "~~~", "````"]),
    prose,
    prose,
)


def wrap(text: str, decoy: str, wrapping: tuple[str, str, str, str]) -> str:
    """`text` with what models put around it."""
    kind, fence, before, after = wrapping
    match kind:
        case "fence":
            return f"{fence}json\n{text}\n{fence}"
        case "prose":
            return f"{before}\n{text}\n{after}"
        case "think":
            return f"<think>{before}{decoy}{after}{{</think>\n{text}"
        case "begun":
            return f"{before}\n</think>{text}{after}"
        case "both":
            return f"<think>{decoy}</think>{before}\n{fence}\n{text}\n{fence}\n{after}"
    return text


@pytest.mark.parametrize("form", ["json", "indented", "messy", "twice"])
@given(value=values, decoy=values, wrapping=wrappings, random=st.randoms(use_true_random=False))
def test_any_value_in_any_wrapping_is_itself(
    form: str, value: Reply, decoy: Reply, wrapping: tuple[str, str, str, str], random: Random
) -> None:
    plain = json.loads(dumped(value))
    inside = "x" if "</think>" in dumped(decoy) else dumped(decoy)
    match form:
        case "json":
            text = wrap(dumped(value), inside, wrapping)
        case "indented":
            text = wrap(json.dumps(plain, indent=2), inside, wrapping)
        case "messy":
            text = wrap(messy(plain, random), inside, wrapping)
        case _:
            text = json.dumps(dumped(value))
    assert parse_reply(text, Reply) == value
    assert parse_reply(text, Reply, finish_reason="stop") == value


@settings(max_examples=12)
@given(value=values, neat=st.booleans(), wrapping=wrappings, random=st.randoms(use_true_random=False))
def test_a_cut_reply_is_whole_or_refused(
    value: Reply, neat: bool, wrapping: tuple[str, str, str, str], random: Random
) -> None:
    text = dumped(value) if neat else messy(json.loads(dumped(value)), random)
    whole = wrap(text, dumped(Reply(summary="a decoy")), wrapping).encode()
    for end in range(len(whole)):
        cut = whole[:end].decode(errors="ignore")
        try:
            got = parse_reply(cut, Reply, finish_reason="length" if end % 2 else None)
        except MalformedReply:
            continue
        assert got == value


pieces = [
    *"{}[],:\"'“”\\/#*-. \n`1a\ufeff\x00",
    "<think>",
    "</think>",
    "[THINK]",
    "```json\n",
    "//",
    "/*",
    "\\u",
]
pieces += [
    '"summary"',
    '"height": 2',
    '{"height": 2}',
    '"turn_ids": [1]',
    "{}",
    "[]",
    "\ud800",
    "null",
    "NaN",
]
noise = st.lists(st.sampled_from(pieces), max_size=60).map("".join)


@settings(max_examples=300)
@given(noise | st.text(), st.sampled_from([None, "stop", "length"]))
def test_nothing_but_one_exception_and_linear_work(text: str, finish_reason: str | None) -> None:
    for schema in (Place, Reply, Ids, Step, list[int], int, str, Any, dict[str, int], Add | Drop):
        try:
            got = parse_reply(text, schema, finish_reason=finish_reason)
        except MalformedReply:
            pass
        else:
            assert msgspec.json.encode(got) is not None
    reader = Reader(text)
    with contextlib.suppress(Broken, Unclosed):
        reader.structures()
    assert reader.steps <= 4 * len(text) + 4
    assert reader.position <= len(text)


leaves = st.none() | st.booleans() | integers | st.floats(allow_nan=False, allow_infinity=False) | strings
documents = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(strings, inner, max_size=4)
)


@given(documents, st.booleans(), st.sampled_from([None, 1]))
def test_json_is_read_as_json(document: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps([document], ensure_ascii=ascii_only, indent=indent)
    assert [found.value for found in Reader(text).structures()] == [[document]]


MILLION = 1_000_000
TAGS = ("<think>", "</think>", "<think></think>", "[THINK]")


@pytest.mark.parametrize(
    "piece",
    [*'[{"“\\\n\u200b1', '{"a":', '["', "['", "[a", "{a:", "[1,", "[/*", "[//\n", "[#", '"{', "```\n", *TAGS],
)
def test_a_million_of_anything_fails_quickly(piece: str) -> None:
    text = (piece * MILLION)[:MILLION]
    for whole in (text, f'{{"turn_ids": {text}', f'{{"turn_ids": "{text}"}}'):
        start = time.process_time()
        with pytest.raises(MalformedReply):
            parse_reply(whole, Ids)
        assert time.process_time() - start < 3


def test_depth_is_limited_and_not_by_the_stack() -> None:
    deep = "[" * (DEPTH - 1) + "]" * (DEPTH - 1)
    assert len(Reader(f"[{deep}]").structures()) == 1
    with pytest.raises(Broken, match="within each other"):
        Reader(f'{{"a": [{deep}]}}').structures()
