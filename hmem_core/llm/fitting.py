"""Bending a value to the type that was asked for, where only one meaning is possible.

Nothing here validates: what is not understood is passed on as it is, for `msgspec.convert` to refuse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import inspect as types

__all__ = ["as_id", "fit", "fits_shape", "unwrap"]

_ID = re.compile(
    r"(?:#?([+-]?\d{1,300})|"
    r"(?:turn|message|line|segment|event|unit|fact|height|level|number|no\.|nr\.?|id)s?(?:-|[\s_:.=#]*)(\d{1,300}))\.?",
    re.ASCII | re.IGNORECASE,
)
_DECIMAL = re.compile(r"[+-]?\d{1,300}(?:\.\d{0,300})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_BRACKETS = {"[": "]", "(": ")", "<": ">", "{": "}"}
_BOOLS = {"true": True, "yes": True, "false": False, "no": False}
_NOTHING = {"", "null", "none", "nil", "n/a", "undefined"}
_CALLS = ("arguments", "parameters", "input")

_Lists = (types.ListType, types.VarTupleType, types.SetType, types.FrozenSetType)
_Records = (types.StructType, types.DataclassType, types.TypedDictType)
_Text = (types.StrType, types.BytesType, types.DateTimeType, types.DateType, types.UUIDType)

Nested = Callable[[str], Any]
"""What a string holds, if it is JSON once more; the string itself, if not."""


def as_id(value: object) -> int | None:
    """The integer that `value` is or names ("12", "#12", "[12]", "turn 12"), or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if not isinstance(value, str) or len(value) > 400:
        return None
    text = value.strip()
    if text and _BRACKETS.get(text[0]) == text[-1]:
        text = text[1:-1].strip()
    match = _ID.fullmatch(text)
    return int(match[1] or match[2]) if match else None


def fit(value: Any, wanted: types.Type, nested: Nested) -> Any:
    """`value`, with every part of it bent to the type `wanted` as far as that is plain."""
    while isinstance(wanted, types.Metadata):
        wanted = wanted.type
    match wanted:
        case types.UnionType():
            return _fit_union(value, wanted, nested)
        case types.IntType():
            number = as_id(value)
            return value if number is None else number
        case types.FloatType() if isinstance(value, str) and _DECIMAL.fullmatch(value.strip()):
            return float(value)
        case types.BoolType() if isinstance(value, str):
            return _BOOLS.get(value.strip().casefold(), value)
        case types.BoolType() if value in (0, 1):
            return bool(value)
        case types.EnumType():
            return _fit_name(value, [one.value for one in wanted.cls])
        case types.LiteralType():
            return _fit_name(value, wanted.values)
        case types.DictType():
            value = _opened(value, nested, dict)
            if isinstance(value, dict):
                return {key: fit(one, wanted.value_type, nested) for key, one in value.items()}
        case types.TupleType():
            value = _opened(value, nested, list)
            if isinstance(value, list) and len(value) == len(wanted.item_types):
                return [fit(*pair, nested) for pair in zip(value, wanted.item_types, strict=True)]
        case _ if isinstance(wanted, _Lists):
            if value is None:
                return []
            value = _opened(value, nested, list)
            if isinstance(value, list):
                return [fit(one, wanted.item_type, nested) for one in value]
            if _is_integer(wanted.item_type) and as_id(value) is not None:
                return [as_id(value)]
        case _ if isinstance(wanted, _Records):
            value = _opened(value, nested, dict)
            if isinstance(value, dict):
                return _fit_record(value, wanted, nested)
    return value


def fits_shape(value: Any, wanted: types.Type) -> bool:
    """Whether `value` looks like what is wanted, rather than like something around or beside it."""
    while isinstance(wanted, types.Metadata):
        wanted = wanted.type
    if isinstance(wanted, types.UnionType):
        return any(fits_shape(value, one) for one in wanted.types)
    if isinstance(wanted, _Records):
        if not isinstance(value, dict):
            return False
        names = _loose_names(wanted)
        known = {field.encode_name for field in wanted.fields} | {getattr(wanted, "tag_field", None)}
        return any(key in known or _plain(key) in names for key in value)
    if isinstance(wanted, types.DictType):
        return isinstance(value, dict)
    if isinstance(wanted, (*_Lists, types.TupleType)):
        return isinstance(value, list)
    return isinstance(wanted, types.AnyType) or not isinstance(value, (dict, list))


def unwrap(value: Any, wanted: types.Type, nested: Nested) -> Any:
    """What of `value` is wanted, where a model put something around it or left something out.

    An object around an object (``{"result": …}``, a tool call), a list with one object in it, a list where
    an object with one list was wanted, and an object with one list where a list was wanted.
    """
    while isinstance(wanted, types.Metadata):
        wanted = wanted.type
    if isinstance(value, list) and isinstance(wanted, _Records):
        if len(value) == 1 and fits_shape(value[0], wanted):
            return value[0]
        lists = [field for field in wanted.fields if _is_list(field.type)]
        return {lists[0].encode_name: value} if len(lists) == 1 else value
    if isinstance(value, dict):
        inner = [value[key] for key in _CALLS if "name" in value and key in value]
        inner = inner or (list(value.values()) if len(value) == 1 else [])
        if not inner and isinstance(wanted, _Lists):
            inner = [one for one in value.values() if isinstance(one, list)]
        if len(inner) == 1:
            opened = nested(inner[0]) if isinstance(inner[0], str) else inner[0]
            for one in (inner[0], opened):
                if fits_shape(one, wanted):
                    return one
    return value


def _fit_record(value: dict[str, Any], wanted: Any, nested: Nested) -> dict[str, Any]:
    """The fields that are wanted, by name; a null where there is a default but no null is left out."""
    fitted: dict[str, Any] = {}
    tag = getattr(wanted, "tag_field", None)
    if tag is not None and tag in value:
        fitted[tag] = value[tag]
    fields = {field.encode_name: field for field in wanted.fields}
    exact = [(name, name) for name in fields if name in value]
    names = _loose_names(wanted)
    others = [(names.get(_plain(key)), key) for key in value if key not in fields]
    for name, key in exact + others:
        if name is None or name in fitted:
            continue
        field = fields[name]
        if value[key] is None and not field.required and not _takes_nothing(field.type):
            continue
        fitted[name] = fit(value[key], field.type, nested)
    return fitted


def _fit_union(value: Any, wanted: types.UnionType, nested: Nested) -> Any:
    if value is None:
        return value if _takes_nothing(wanted) else fit(value, wanted.types[0], nested)
    members = [one for one in wanted.types if not isinstance(one, types.NoneType)]
    if isinstance(value, dict):
        for one in members:
            tag = getattr(one, "tag_field", None)
            if tag is not None and value.get(tag) == one.tag:  # type: ignore[attr-defined]
                return fit(value, one, nested)
    plain = [one for one in members if _accepts(one, value)]
    if plain:
        return fit(value, plain[0], nested) if len(plain) == 1 else value
    for one in members:
        fitted = fit(value, one, nested)
        if _accepts(one, fitted):
            return fitted
    nothing = isinstance(value, str) and value.strip().casefold() in _NOTHING
    return None if nothing and _takes_nothing(wanted) else value


def _accepts(wanted: types.Type, value: Any) -> bool:
    """Whether a value of this Python type can be what is wanted at all."""
    while isinstance(wanted, types.Metadata):
        wanted = wanted.type
    match wanted:
        case types.BoolType():
            return isinstance(value, bool)
        case types.IntType() | types.FloatType():
            number = int if isinstance(wanted, types.IntType) else (int, float)
            return isinstance(value, number) and not isinstance(value, bool)
        case types.EnumType():
            return any(value == one.value and type(value) is type(one.value) for one in wanted.cls)
        case types.LiteralType():
            return any(value == one and type(value) is type(one) for one in wanted.values)
        case types.DictType():
            return isinstance(value, dict)
        case types.TupleType():
            return isinstance(value, list)
        case _ if isinstance(wanted, _Lists):
            return isinstance(value, list)
        case _ if isinstance(wanted, _Records):
            return isinstance(value, dict)
        case _ if isinstance(wanted, _Text):
            return isinstance(value, str)
    return True


def _fit_name(value: Any, names: Iterable[Any]) -> Any:
    """The one of `names` that `value` is but for case, spaces, hyphens and underscores."""
    known = list(names)
    if not isinstance(value, str) or value in known:
        return value
    alike = [one for one in known if isinstance(one, str) and _plain(one) == _plain(value)]
    return alike[0] if len(alike) == 1 else value


def _loose_names(wanted: Any) -> dict[str, str]:
    """Field names by what is left of them without case, spaces, hyphens and underscores."""
    names: dict[str, str] = {}
    for field in wanted.fields:
        plain = _plain(field.encode_name)
        names[plain] = "" if plain in names else field.encode_name
    return {plain: name for plain, name in names.items() if name}


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()


def _opened(value: Any, nested: Nested, kind: type) -> Any:
    """What a string holds, if that is JSON of the right kind."""
    if isinstance(value, str) and isinstance(inner := nested(value), kind):
        return inner
    return value


def _is_list(wanted: types.Type) -> bool:
    while isinstance(wanted, types.Metadata):
        wanted = wanted.type
    if isinstance(wanted, types.UnionType):
        return any(_is_list(one) for one in wanted.types)
    return isinstance(wanted, _Lists)


def _is_integer(wanted: types.Type) -> bool:
    while isinstance(wanted, types.Metadata):
        wanted = wanted.type
    return isinstance(wanted, types.IntType)


def _takes_nothing(wanted: types.Type) -> bool:
    while isinstance(wanted, types.Metadata):
        wanted = wanted.type
    if isinstance(wanted, types.UnionType):
        return any(_takes_nothing(one) for one in wanted.types)
    return isinstance(wanted, (types.NoneType, types.AnyType))
