"""Metadata by field: a cache that makes filters columnar."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from hmem_core.columns.blocks import Strings
from hmem_core.columns.growable import Growable

__all__ = ["Field", "FieldCache"]


class Field:
    """One metadata field over all rows: the distinct values, and a code a row (-1: the row lacks it)."""

    __slots__ = ("_places", "codes", "values")

    def __init__(self) -> None:
        self.codes = Growable(np.int32)
        self.values: list[Any] = []
        self._places: dict[bytes, int] = {}

    def append(self, present: bool, value: Any) -> None:
        if not present:
            self.codes.append(-1)
            return
        place = msgspec.msgpack.encode(value)  # tells 1, 1.0, True and "1" apart
        code = self._places.get(place)
        if code is None:
            code = self._places[place] = len(self.values)
            self.values.append(value)
        self.codes.append(code)


class FieldCache:
    """Fields, each read from the metadata column when a filter first names it, and then kept up with it.

    Not part of the state: it is built from the column and can be dropped at any time. It must be dropped
    when a turn is forgotten, since it holds values.
    """

    __slots__ = ("_fields",)

    def __init__(self) -> None:
        self._fields: dict[str, Field] = {}

    def field(self, name: str, metadata: Strings, rows: int) -> tuple[npt.NDArray[np.int32], list[Any]]:
        """Codes of the first `rows` rows, int32 of shape (rows,), and the values they stand for."""
        field = self._fields.setdefault(name, Field())
        for row in range(len(field.codes), rows):
            encoded = metadata[row]
            value = msgspec.msgpack.decode(encoded) if encoded else {}
            field.append(name in value, value.get(name))
        return field.codes.view()[:rows], field.values
