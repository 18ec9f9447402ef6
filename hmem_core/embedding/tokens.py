"""From text to token ids, in chunks that fit the window of a model.

Whatever a text contains is content: ``[SEP]`` or ``<|endoftext|>`` in a message is the characters it is made
of and never the token of that name.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hmem_core.errors import EncoderError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["CHARS_PER_TOKEN", "MAX_CHUNKS", "IdArray", "TokenizerFile", "Vocabulary"]

IdArray = npt.NDArray[np.int32]

MAX_CHUNKS = 16
"""A text is read in at most this many chunks, evenly spread from its beginning to its end; with a window of
256 that is some 4,000 tokens. Longer messages are pastes and logs; a sample says what they are about."""

CHARS_PER_TOKEN = 8
"""More than any language needs on average: a slice of this many characters a token fills its chunk."""

_SLICE = 1 << 16
"""Characters given to the tokenizer at once when a text is only counted; it holds about 100 bytes a token."""

_SURROGATES = re.compile("[\ud800-\udfff]")
_UNKNOWN = {"[UNK]", "<unk>"}


@dataclass(frozen=True)
class TokenizerFile:
    """A ``tokenizer.json``, or the ``vocab.txt`` of a BERT model and how its text is normalised.

    The three switches are for ``vocab.txt`` alone; a ``tokenizer.json`` states its own normalisation.
    """

    path: Path
    lower_case: bool = True
    strip_accents: bool | None = None
    """None: accents are stripped where text is lower-cased, as BERT does it."""
    chinese_chars: bool = True


class Vocabulary:
    """A loaded tokenizer. Safe to use from several threads; not after a fork.

    Texts are encoded one at a time: the batch functions of `tokenizers` start a thread pool of their own,
    which ignores limits, breaks after a fork, and saves less than a hundredth of the time a model takes.

    Raises:
        EncoderError: the file cannot be read as a tokenizer.
    """

    def __init__(self, file: TokenizerFile) -> None:
        try:
            tokenizer = _load(file)
            self._pad = _pad_id(tokenizer)
            tokenizer.no_padding()
            tokenizer.no_truncation()
            tokenizer.encode_special_tokens = True  # as the characters they are made of
            template = tokenizer.encode("a")
        except Exception as error:  # the library raises bare Exception
            raise EncoderError(f"{file.path} cannot be read as a tokenizer: {error}") from error
        self._tokenizer = tokenizer
        content = [i for i, special in enumerate(template.special_tokens_mask) if not special]
        first, last = (content[0], content[-1] + 1) if content else (len(template.ids), len(template.ids))
        self.prefix: tuple[int, ...] = tuple(template.ids[:first])
        """Ids that precede every chunk, such as [CLS]."""
        self.suffix: tuple[int, ...] = tuple(template.ids[last:])
        """Ids that follow every chunk, such as [SEP]."""
        special = {i for i, t in tokenizer.get_added_tokens_decoder().items() if t.special}
        special |= {*self.prefix, *self.suffix}
        special -= {i for i in map(tokenizer.token_to_id, _UNKNOWN) if i is not None}
        self._special = np.array(sorted(special), dtype=np.int32)
        self.text_of = functools.lru_cache(maxsize=1 << 17)(self._text_of)
        """The characters of one token, by its id."""

    @property
    def frame_size(self) -> int:
        """How many ids frame a chunk."""
        return len(self.prefix) + len(self.suffix)

    def frame(self, chunks: Sequence[IdArray]) -> npt.NDArray[np.int64]:
        """Chunks as a model reads them: framed, padded on the right; int64 of shape (chunks, longest)."""
        width = max(map(len, chunks)) + self.frame_size
        ids = np.full((len(chunks), width), self._pad, dtype=np.int64)
        for row, chunk in zip(ids, chunks, strict=True):
            row[: len(chunk) + self.frame_size] = [*self.prefix, *chunk, *self.suffix]
        return ids

    def ids(self, text: str) -> IdArray:
        """Content ids of a text: int32 of any length, without prefix and suffix."""
        encoded = self._tokenizer.encode(_clean(text), add_special_tokens=False)
        ids: IdArray = np.array(encoded.ids, dtype=np.int32)
        # A tokenizer whose vocabulary is searched as a whole (Unigram) finds "</s>" in a text all the same.
        special = np.isin(ids, self._special)
        return ids[~special] if special.any() else ids

    def chunks(self, text: str, size: int) -> list[IdArray]:
        """A text in consecutive chunks of at most `size` content ids, none for a text without content.

        Beyond `MAX_CHUNKS` they are evenly spread over the text. Texts that are far longer are not even
        tokenised in full: chunks are then taken from evenly spread slices of its characters.
        """
        sample = size * CHARS_PER_TOKEN
        if len(text) > 2 * MAX_CHUNKS * sample:
            starts = _spread(len(text) - sample, MAX_CHUNKS)
            pieces = (self.ids(text[start : start + sample])[:size] for start in starts)
            return [piece for piece in pieces if len(piece)]
        ids = self.ids(text)
        starts = list(range(0, len(ids), size))
        if len(starts) > MAX_CHUNKS:
            starts = [starts[i] for i in _spread(len(starts) - 1, MAX_CHUNKS)]
        return [ids[start : start + size] for start in starts]

    def _text_of(self, token: int) -> str:
        text: str = self._tokenizer.decode([token], skip_special_tokens=False)
        return text

    def count(self, text: str) -> int:
        """Content tokens of a text, in bounded memory.

        Exact up to 65,536 characters. Longer texts are counted in slices that end at white space; one without
        any there may count a token more for each slice.
        """
        return sum(len(self.ids(piece)) for piece in _slices(text))


def _load(file: TokenizerFile) -> Tokenizer:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    if file.path.suffix == ".json":
        return Tokenizer.from_file(str(file.path))
    tokenizer = Tokenizer(models.WordPiece.from_file(str(file.path), unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=file.chinese_chars,
        strip_accents=file.strip_accents,
        lowercase=file.lower_case,
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ids: dict[str, Any] = {token: tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]", "[UNK]")}
    if missing := [token for token, i in ids.items() if i is None]:
        raise ValueError(f"it has no {' and no '.join(missing)}")
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    return tokenizer


def _pad_id(tokenizer: Tokenizer) -> int:
    """Padding is masked, so that any id in range would do, but some models derive positions from it."""
    if tokenizer.padding:
        return int(tokenizer.padding["pad_id"])
    found = [tokenizer.token_to_id(token) for token in ("[PAD]", "<pad>")]
    return next((i for i in found if i is not None), 0)


def _clean(text: str) -> str:
    """Pairs of surrogates become the character they stand for; lone ones, which UTF-8 cannot hold, U+FFFD."""
    if text.isascii() or not _SURROGATES.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _spread(last: int, count: int) -> list[int]:
    """`count` whole numbers from 0 to `last`, both included, at equal distances."""
    return [round(i * last / (count - 1)) for i in range(count)]


def _slices(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _SLICE:
        end = start + _SLICE
        gap = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
        end = gap if gap > start else end
        yield text[start:end]
        start = end
    yield text[start:]
