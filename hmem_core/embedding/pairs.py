"""From a query and texts to token ids of pairs, as a cross-encoder reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.embedding.tokens import CHARS_PER_TOKEN, IdArray, TokenizerFile, Vocabulary
from hmem_core.errors import EncoderError

__all__ = ["Pair", "PairVocabulary"]


class Pair(NamedTuple):
    """A query and a text, framed."""

    ids: IdArray
    """int32 of shape (tokens,)."""
    types: IdArray
    """int32 of shape (tokens,): which of the two each token belongs to, as the tokenizer says."""


class PairVocabulary(Vocabulary):
    """A loaded tokenizer, and how it frames pairs. As safe as `Vocabulary`.

    Raises:
        EncoderError: the file cannot be read as a tokenizer, or it makes nothing usable of a pair.
    """

    def __init__(self, file: TokenizerFile) -> None:
        super().__init__(file)
        try:
            template = self._tokenizer.encode("a", "a")
        except Exception as error:  # the library raises bare Exception
            raise EncoderError(f"{file.path} cannot encode a pair of texts: {error}") from error
        sides = template.sequence_ids
        first, second = ([i for i, side in enumerate(sides) if side == which] for which in (0, 1))
        if not first or not second or first[-1] > second[0]:
            raise EncoderError(
                f"{file.path} puts no pair of texts in a row; give the tokenizer of a cross-encoder"
            )
        cuts = ((0, first[0]), (first[-1] + 1, second[0]), (second[-1] + 1, len(sides)))
        ids, types = np.array(template.ids, np.int32), np.array(template.type_ids, np.int32)
        self._frame = [(ids[start:end], types[start:end]) for start, end in cuts]
        self._types = int(types[first[0]]), int(types[second[0]])

    @property
    def pair_frame_size(self) -> int:
        """How many ids frame a pair."""
        return sum(len(ids) for ids, _ in self._frame)

    def pairs(self, query: str, texts: Sequence[str], window: int) -> list[Pair]:
        """The query with each text, in at most `window` ids.

        The text is cut where both do not fit; the query only beyond half of the window, and no further than
        the text needs. Of texts far too long only the beginning is tokenised.
        """
        room = window - self.pair_frame_size
        asked = self.ids(query[: room * CHARS_PER_TOKEN])
        return [self._pair(asked, self.ids(text[: room * CHARS_PER_TOKEN]), room) for text in texts]

    def _pair(self, query: IdArray, text: IdArray, room: int) -> Pair:
        query = query[: max(-(-room // 2), room - len(text))]
        text = text[: room - len(query)]
        (before, between, after), (first, second) = self._frame, self._types
        ids = np.concatenate([before[0], query, between[0], text, after[0]])
        kinds = (np.full(len(query), first, np.int32), np.full(len(text), second, np.int32))
        return Pair(ids, np.concatenate([before[1], kinds[0], between[1], kinds[1], after[1]]))

    def padded(self, pairs: Sequence[Pair]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Ids and types of pairs, padded on the right: int64 of shape (pairs, longest) each."""
        shape = len(pairs), max(len(pair.ids) for pair in pairs)
        ids, types = np.full(shape, self._pad, np.int64), np.zeros(shape, np.int64)
        for row, pair in enumerate(pairs):
            ids[row, : len(pair.ids)] = pair.ids
            types[row, : len(pair.ids)] = pair.types
        return ids, types
