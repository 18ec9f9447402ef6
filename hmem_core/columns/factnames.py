"""The names in the fact graph: subjects, relations, objects, categories and contexts, in one table."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hmem_core.columns.blocks import BLOCK_ROWS, Strings, Vectors, block_count
from hmem_core.columns.growable import Growable
from hmem_core.columns.keys import KeyIndex, key_hash

__all__ = ["FactNames", "fold"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

_NARROW: dict[str, type[np.generic]] = {
    "hash": np.uint64,  # of the folded text; 0 once forgotten
    "alias": np.int32,  # the name that takes its place; its own code if none does
    "policy": np.uint8,  # as a relation: place in records.POLICIES
    "uses": np.int32,  # slots of units that hold it
    "seq": np.int64,  # the entry that brought it
}


def fold(text: str) -> str:
    """The form in which names are compared: NFKC, case folded, runs of white space as one space."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())


class _Folded:
    """A column of names, folded as they are read."""

    __slots__ = ("_text",)

    def __init__(self, text: Strings) -> None:
        self._text = text

    def __getitem__(self, row: int) -> str | None:
        text = self._text[row]
        return None if text is None else fold(text)


class FactNames:
    """Names by code. Two texts are the same name only if they fold to the same text, or if an alias says so;
    the first spelling is kept.

    Args:
        dimension: of the vectors, which are those of the texts.
    """

    __slots__ = ("_index", "_mark", "narrow", "stamps", "text", "vectors")

    def __init__(self, dimension: int) -> None:
        self.narrow = {name: Growable(dtype) for name, dtype in _NARROW.items()}
        self.text = Strings(pa.large_string())
        self.vectors = Vectors(dimension)
        self.stamps: list[int] = []
        """For each block of texts and vectors, the entry that changed it last."""
        self._index = KeyIndex(_Folded(self.text), self.narrow["hash"])
        self._mark: tuple[int, list[int]] | None = None

    def __len__(self) -> int:
        """Number of codes, those of forgotten names included."""
        return len(self.text)

    def find(self, text: str) -> int | None:
        """Code of a name, that of the name in whose place it stands, or None."""
        return self.find_folded(fold(text))

    def find_folded(self, folded: str) -> int | None:
        """As `find`, of a text that is folded already."""
        rows = self._index.rows(folded)
        return int(self.narrow["alias"][rows[0]]) if rows else None

    def among(self, folded: Sequence[str]) -> dict[str, int]:
        """As `find_folded`, of many texts at once; those that are no name are left out."""
        found = {text: self.find_folded(text) for text in self._index.likely(folded)}
        return {text: code for text, code in found.items() if code is not None}

    def gather(self, codes: IntArray) -> FloatArray:
        """The vectors of some names, float32 of shape (codes, dimension)."""
        found = np.zeros((codes.size, self.vectors.dimension), np.float32)
        blocks = codes // BLOCK_ROWS
        for number, block in enumerate(self.vectors.view()):
            here = np.flatnonzero(blocks == number)
            found[here] = block[codes[here] % BLOCK_ROWS]
        return found

    def __getitem__(self, code: int) -> str | None:
        """The name of a code, as it was spelled first; None for -1 and for a forgotten name."""
        if not 0 <= code < len(self):
            return None
        text: str | None = self.text[code]
        return text

    def append(self, seq: int, text: str | None, vector: FloatArray) -> None:
        """Enter the name that has the next code; None for one that is forgotten."""
        code = len(self)
        hashed = 0 if text is None else key_hash(fold(text))
        for name, value in (("hash", hashed), ("alias", code), ("policy", 0), ("uses", 0), ("seq", seq)):
            self.narrow[name].append(value)
        self.text.append(text)
        self.vectors.append(vector)
        self.stamps[code // BLOCK_ROWS :] = [seq]
        if hashed:
            self._index.added(code)

    def erase(self, code: int) -> None:
        """Forget a name; its code stays."""
        hashed = int(self.narrow["hash"][code])
        self.narrow["hash"][code] = 0
        self.narrow["alias"][code] = code
        self.narrow["policy"][code] = 0
        self.text.erase(code)
        self.vectors.erase(code)
        self._index.erased(code, hashed)

    def aliases(self, code: int) -> list[int]:
        """The other names in whose place the name of that code stands."""
        found = np.flatnonzero(self.narrow["alias"].view() == code)
        return [other for other in found.tolist() if other != code]

    def stamp_all(self, seq: int) -> None:
        """Say that entry number `seq` changed every block (see `TurnColumns.stamp_all`)."""
        self.stamps = [seq] * len(self.stamps)

    # -- trying out ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Remember this moment for `rollback`."""
        self._mark = len(self), list(self.stamps)

    def rollback(self) -> None:
        """Take back the names that came since `begin`; what changed of others the caller puts back."""
        assert self._mark is not None
        size, self.stamps = self._mark
        for code in range(size, len(self)):
            if hashed := int(self.narrow["hash"][code]):
                self._index.erased(code, hashed)
        for column in self.narrow.values():
            column.truncate(size)
        self.text.truncate(size)
        self.vectors.truncate(size)
        self._mark = None

    # -- checkpoints ---------------------------------------------------------------------------------

    def narrow_batch(self) -> pa.RecordBatch:
        """The fixed-width columns, copied."""
        return pa.RecordBatch.from_pydict(
            {name: pa.array(column.view().copy()) for name, column in self.narrow.items()}
        )

    def batch(self, block: int) -> pa.RecordBatch:
        """One block of texts and vectors."""
        vectors = self.vectors.batch(block).column("vector")
        return pa.RecordBatch.from_pydict({"text": self.text.arrow(block), "vector": vectors})

    @classmethod
    def restore(
        cls,
        dimension: int,
        narrow: pa.RecordBatch,
        batches: Sequence[pa.RecordBatch],
        stamps: Sequence[int],
    ) -> FactNames:
        """The names that the batches hold; texts and vectors stay mapped."""
        names = cls(dimension)
        for name, dtype in _NARROW.items():
            names.narrow[name] = Growable(dtype, narrow.column(name).to_numpy())
        names.text = Strings(pa.large_string(), [batch.column("text") for batch in batches])
        flat = [batch.column("vector").flatten().to_numpy(zero_copy_only=True) for batch in batches]
        names.vectors = Vectors(dimension, [block.reshape(-1, dimension) for block in flat])
        names.stamps = list(stamps)
        names._index = KeyIndex(_Folded(names.text), names.narrow["hash"])
        if not len(names.text) == len(names.vectors) == len(names.narrow["hash"]) or len(stamps) != (
            block_count(len(names))
        ):
            raise ValueError("the names of the checkpoint's facts are not whole")
        return names

    def arrays(self) -> dict[str, Any]:
        """Every value, in a form that compares bit for bit."""
        vectors = self.vectors.view()
        texts = [text for block in range(len(self.stamps)) for text in self.text.arrow(block).to_pylist()]
        return {
            **{f"fact name {name}": column.view() for name, column in self.narrow.items()},
            "fact name text": texts,
            "fact name vectors": np.concatenate(vectors) if vectors else np.empty((0, 0), np.float32),
            "fact name stamps": self.stamps,
        }

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes: (held, mapped)."""
        (texts, mapped_texts), (vectors, mapped_vectors) = self.text.nbytes, self.vectors.nbytes
        narrow = sum(column.nbytes for column in self.narrow.values())
        return narrow + texts + vectors, mapped_texts + mapped_vectors
