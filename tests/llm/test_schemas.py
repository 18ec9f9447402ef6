"""What a server is told about the form of a reply."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given

from hmem_core.errors import InvalidInput
from hmem_core.llm.replies import parse_reply
from hmem_core.llm.schemas import ASKED, json_schema
from tests.llm.replies import Add, Color, Drop, Fact, Reply, values


def objects(node: Any) -> list[dict[str, Any]]:
    """Every schema of an object within `node`."""
    if isinstance(node, list):
        return [found for one in node for found in objects(one)]
    if not isinstance(node, dict):
        return []
    here = [node] if "properties" in node and "additionalProperties" in node else []
    return here + [found for one in node.values() for found in objects(one)]


class Asked(msgspec.Struct):
    summary: Annotated[str, msgspec.Meta(pattern=r"\S", max_length=80)]
    color: Color = Color.BLUE
    facts: list[Fact] = []
    note: str | None = None
    action: Add | Drop | None = None


def test_a_schema_is_strict() -> None:
    named = json_schema(Asked)
    assert (named["name"], named["strict"]) == ("Asked", True)
    schema = named["schema"]
    assert schema["type"] == "object"
    assert schema["required"] == list(schema["properties"])
    assert len(objects(schema)) == 4
    for one in objects(schema):
        assert one["additionalProperties"] is False
        assert one["required"] == list(one["properties"])
    assert schema["properties"]["note"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert set(schema["$defs"]) == {"Color", "Fact", "Add", "Drop"}
    confidence = schema["$defs"]["Fact"]["properties"]["confidence"]
    assert confidence["anyOf"][0]["description"] == "at least 0; at most 1"
    for word in ("default", "title", "minimum", "pattern", "discriminator", "minItems"):
        assert f'"{word}"' not in json.dumps(named)


class Tree(msgspec.Struct):
    name: str
    children: list[Tree] = []


def test_a_schema_may_refer_to_itself() -> None:
    schema = json_schema(Tree)["schema"]
    assert schema["type"] == "object"
    assert schema["properties"]["children"]["anyOf"][0]["items"] == {"$ref": "#/$defs/Tree"}
    assert "Tree" in schema["$defs"]


def test_a_list_is_asked_for_in_an_object_and_read_from_it() -> None:
    named = json_schema(list[int])
    assert named["schema"]["required"] == ["value"]
    assert set(named["name"]) <= set("abcdefghijklmnopqrstuvwxyz_")
    assert parse_reply('{"value": [1, 2]}', list[int]) == [1, 2]


@pytest.mark.parametrize("schema", [dict[str, int], tuple[int, str]])
def test_what_cannot_be_asked_strictly_is_said(schema: type) -> None:
    with pytest.raises(InvalidInput, match="use a struct"):
        json_schema(schema)


@given(values)
def test_null_for_every_default_is_the_default(value: Reply) -> None:
    fields = dict.fromkeys(Reply.__struct_fields__) | {"summary": value.summary}
    assert parse_reply(json.dumps(fields), Reply) == Reply(summary=value.summary)


def test_bounds_of_lists_stand_in_the_schema_and_fewer_items_may_be_asked_for() -> None:
    class Lists(msgspec.Struct):
        some: Annotated[list[int], msgspec.Meta(max_length=60, extra_json_schema={ASKED: 8})]
        more: Annotated[list[int], msgspec.Meta(min_length=1, max_length=60)]

    properties = json_schema(Lists)["schema"]["properties"]
    assert properties["some"]["maxItems"] == 8
    assert "at most 8 items" in properties["some"]["description"]
    assert (properties["more"]["minItems"], properties["more"]["maxItems"]) == (1, 60)
    assert ASKED not in json.dumps(properties)
    reply = json.dumps({"some": list(range(20)), "more": [1]})
    assert parse_reply(reply, Lists).some == list(range(20))
