"""Filters: which turns a read may see at all. They apply before any ranking or cut."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hmem_core.errors import InvalidInput
from hmem_core.state import View
from hmem_core.times import TimeLike, interval, micros

__all__ = ["Where", "mask"]

Mask = npt.NDArray[np.uint8]
Test = Callable[[Any], bool]
Where = Mapping[str, Any]
"""Conditions on fields, all of which must hold: ``{"speaker": "Ann", "priority": {"$gte": 3}}``."""

_NAMED = ("session", "speaker", "role")


def mask(
    view: View,
    tz: dt.tzinfo,
    *,
    between: tuple[TimeLike | None, TimeLike | None] | None = None,
    where: Where | None = None,
    as_of: int | TimeLike | None = None,
) -> Mask:
    """uint8 array of shape (rows,): 1 for the rows that a read may see.

    Args:
        between: the turn's own time lies in [start, end); see `times.interval`.
        where: conditions on ``session``, ``speaker``, ``role``, ``key``, or on a metadata field by its name
            (``metadata.NAME`` where it has one of those four). A value must be equal; a list means any of its
            values; a dict holds operators: ``$eq $ne $in $nin $gt $gte $lt $lte $exists $contains``. A
            metadata field that is a list matches if one of its items does.
        as_of: what the memory knew at that entry of the journal (int) or at that time.

    Raises:
        InvalidInput: a filter that has no meaning, an unknown operator among them.
    """
    narrow = view.narrow
    allowed = narrow["live"]
    if between is not None:
        low, high = interval(between, tz)
        allowed = allowed & (narrow["at"] >= low) & (narrow["at"] < high)
    if as_of is not None:
        if isinstance(as_of, bool) or (isinstance(as_of, int) and as_of < 0):
            raise InvalidInput(f"as_of={as_of!r}: give a sequence number from 0 (see Added.seq) or a time")
        if isinstance(as_of, int):
            allowed = allowed & (narrow["seq"] <= as_of)
        else:
            allowed = allowed & (narrow["recorded"] <= micros(as_of, tz, "as_of"))
    if where is not None:
        if not isinstance(where, Mapping):
            raise InvalidInput(f"where={where!r} is not a dict of field names and conditions")
        for field, condition in where.items():
            allowed = allowed & _matches(view, field, _test(condition, f"where[{field!r}]"))
    return np.ascontiguousarray(allowed, dtype=np.uint8)


def _matches(view: View, field: str, test: Test) -> npt.NDArray[np.bool_]:
    """Rows whose field passes. The test runs once for each distinct value, not for each row."""
    codes: npt.NDArray[np.int32]
    if field in _NAMED:
        names = getattr(view, f"{field}s")
        codes = view.narrow[field]
        values = names.table()[0]
    elif field == "key":
        keys = [view.key[row] for row in range(view.rows)]
        return np.fromiter((test(key) for key in keys), dtype=np.bool_, count=view.rows)
    else:
        codes, values = view.fields.field(field.removeprefix("metadata."), view.metadata, view.rows)
    passes = np.fromiter((test(value) for value in [*values, None]), dtype=np.bool_, count=len(values) + 1)
    return passes[codes]  # the code -1, no value, picks the last


def _test(condition: Any, what: str) -> Test:
    if isinstance(condition, Mapping):
        if not condition:
            raise InvalidInput(f"{what} is an empty dict; give a value or an operator such as {{'$gte': 3}}")
        tests = [_operator(name, operand, what) for name, operand in condition.items()]
        return lambda value: all(test(value) for test in tests)
    if isinstance(condition, (list, tuple, set, frozenset)):
        return _operator("$in", condition, what)
    return _operator("$eq", condition, what)


def _any(test: Test) -> Test:
    """A test on one value made into one that also looks into lists."""
    return lambda value: any(map(test, value)) if isinstance(value, list) else test(value)


def _equal(value: Any, operand: Any) -> bool:
    # 1 == True in Python, but a filter for priority 1 does not mean "true".
    return isinstance(value, bool) == isinstance(operand, bool) and bool(value == operand)


def _ordered(compare: Callable[[Any, Any], bool], operand: Any) -> Test:
    number = isinstance(operand, (int, float)) and not isinstance(operand, bool)

    def test(value: Any) -> bool:
        if number:
            return isinstance(value, (int, float)) and not isinstance(value, bool) and compare(value, operand)
        return isinstance(value, str) and compare(value, operand)

    return test


_COMPARE = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
_OPERATORS = ("$eq", "$ne", "$in", "$nin", *_COMPARE, "$exists", "$contains")


def _operator(name: Any, operand: Any, what: str) -> Test:
    if name in ("$in", "$nin"):
        if isinstance(operand, (str, bytes)) or not isinstance(operand, (list, tuple, set, frozenset)):
            raise InvalidInput(f"{what}: {name} needs a list of values, not {operand!r}")
        options = list(operand)
        among = _any(lambda value: any(_equal(value, option) for option in options))
        return among if name == "$in" else lambda value: not among(value)
    if name in ("$eq", "$ne"):
        if isinstance(operand, list):
            return lambda value: _equal(value, operand) == (name == "$eq")
        equal = _any(lambda value: _equal(value, operand))
        return equal if name == "$eq" else lambda value: not equal(value)
    if name in _COMPARE:
        if isinstance(operand, bool) or not isinstance(operand, (int, float, str)):
            raise InvalidInput(f"{what}: {name} compares numbers or text, not {operand!r}")
        return _any(_ordered(_COMPARE[name], operand))
    if name == "$exists":
        if not isinstance(operand, bool):
            raise InvalidInput(f"{what}: $exists takes True or False, not {operand!r}")
        return lambda value: (value is not None) == operand
    if name == "$contains":
        if not isinstance(operand, str):
            raise InvalidInput(
                f"{what}: $contains looks for text, not {operand!r}; for list items use a plain value"
            )
        return _any(lambda value: isinstance(value, str) and operand in value)
    raise InvalidInput(f"{what}: unknown operator {name!r}; the operators are {', '.join(_OPERATORS)}")
