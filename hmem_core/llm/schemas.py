"""The JSON schema of a type, in the strict form that servers with structured output ask for."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hmem_core.errors import InvalidInput

__all__ = ["ASKED", "json_schema"]

ASKED = "askedItems"
"""In the schema of a list: so many items at most are asked for."""

_KEPT = {"type", "properties", "items", "anyOf", "enum", "const", "$ref", "$defs", "description"}
_KEPT |= {"minItems", "maxItems"}  # else a small model writes the same word until it may write no more
_SAID = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "format": "in the format {}",
}


def json_schema(schema: type[Any]) -> dict[str, Any]:
    """What stands under ``"json_schema"`` in a request's ``response_format`` to get a `schema`.

    Every property is required, and those with a default may be null; no other property is allowed. Bounds are
    said in descriptions, as not every server accepts them in a schema; those of lists, which servers commonly
    do, stand there too. `parse_reply` enforces them all. A list may be asked for with fewer items than are
    accepted: ``msgspec.Meta(max_length=60, extra_json_schema={ASKED: 8})``.
    A type that is not an object is asked for as the only property of one.
    """
    whole = msgspec.json.schema(schema)
    definitions = {name: _strict(one) for name, one in whole.pop("$defs", {}).items()}
    root = _strict(whole)
    name = getattr(schema, "__name__", None) or str(schema)
    if "$ref" in root:
        inner = root["$ref"].rpartition("/")[2]
        root = definitions[inner]
        if not _refers(definitions, inner):
            definitions.pop(inner)
    if root.get("type") != "object":
        root = _object({"value": root})
    if definitions:
        root = {**root, "$defs": definitions}
    return {"name": re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64], "strict": True, "schema": root}


def _strict(node: dict[str, Any]) -> dict[str, Any]:
    if "prefixItems" in node or isinstance(node.get("additionalProperties"), dict):
        raise InvalidInput(f"{node}: tuples of fixed length and mappings cannot be asked for; use a struct")
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    if ASKED in node:
        node = {**node, "maxItems": node[ASKED]}
    strict = {key: value for key, value in node.items() if key in _KEPT}
    said = [said.format(node[key]) for key, said in _SAID.items() if key in node]
    if said:
        strict["description"] = "; ".join([*filter(None, [node.get("description")]), *said])
    if "anyOf" in node:
        branches = [_strict(one) for one in node["anyOf"]]
        strict["anyOf"] = [
            leaf for one in branches for leaf in (one["anyOf"] if set(one) == {"anyOf"} else [one])
        ]
    if isinstance(node.get("items"), dict):
        strict["items"] = _strict(node["items"])
    if "properties" in node:
        required = set(node.get("required", ()))
        properties = {
            name: _strict(one) if name in required else _or_null(_strict(one))
            for name, one in node["properties"].items()
        }
        return {**strict, **_object(properties)}
    return {**strict, **_object({})} if node.get("type") == "object" else strict


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _or_null(node: dict[str, Any]) -> dict[str, Any]:
    if node.get("type") == "null" or None in node.get("enum", ()):
        return node
    if "anyOf" not in node:
        return {"anyOf": [node, {"type": "null"}]}
    nullable = any(one.get("type") == "null" for one in node["anyOf"])
    return node if nullable else {**node, "anyOf": [*node["anyOf"], {"type": "null"}]}


def _refers(node: Any, name: str) -> bool:
    """Whether a reference to the definition `name` stands anywhere in `node`."""
    if isinstance(node, dict):
        return node.get("$ref") == f"#/$defs/{name}" or any(_refers(one, name) for one in node.values())
    return isinstance(node, list) and any(_refers(one, name) for one in node)
