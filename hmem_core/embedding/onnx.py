"""Sentence embeddings by a local transformer in ONNX form. No network, no torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hmem_core.cpus import available_cpus
from hmem_core.effects import Embedded, States
from hmem_core.embedding.base import FloatArray
from hmem_core.embedding.checks import as_texts, unit_rows
from hmem_core.embedding.files import ModelFiles, stamp
from hmem_core.embedding.model import Model
from hmem_core.embedding.native import shared
from hmem_core.embedding.tokens import IdArray, Vocabulary
from hmem_core.errors import EncoderError, InvalidInput
from hmem_core.records import EncoderIdentity

__all__ = ["OnnxEncoder", "TokenStates", "batches_of"]

BATCH_TOKENS = 1024
"""Tokens of a batch, padding included: twice as many are no faster on a few cores, and cost 30 MB more."""
BATCH_ROWS = 64


@dataclass(frozen=True, eq=False)
class TokenStates:
    """What a model made of every token of some texts, for late interaction."""

    vectors: FloatArray
    """float32 of shape (tokens of all texts, dimension); every row has length 1."""
    offsets: npt.NDArray[np.int64]
    """int64 of shape (texts + 1,): the rows of text i are ``vectors[offsets[i]:offsets[i + 1]]``."""
    ids: IdArray
    """int32 of shape (tokens of all texts,): the token each row belongs to."""


class OnnxEncoder:
    """Turns texts into unit vectors with a transformer run by onnxruntime.

    A text beyond the model's window is read in consecutive chunks that do not overlap, and its vector is the
    mean of theirs weighted by their tokens; with mean pooling that is the exact mean over all tokens. Of very
    long texts a sample of chunks is read (`tokens.MAX_CHUNKS`). A text without tokens (empty, blank, control
    characters) gets a row of zeros.

    The model is loaded by the first call that needs it and shared by all encoders of the process. Safe to use
    from several threads and in forked children, which load their own.

    Args:
        files: the model, from `files.in_package` or `files.in_directory`.
        threads: threads of one call; as many as there are processors for the process unless given.

    Raises:
        InvalidInput: fewer than one thread.
    """

    def __init__(self, files: ModelFiles, *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise InvalidInput(f"an encoder needs at least 1 thread, not {threads}")
        self._files = files
        self._threads = threads
        self._identity: EncoderIdentity | None = None

    def __repr__(self) -> str:
        return f"OnnxEncoder({self._files.name!r})"

    @property
    def identity(self) -> EncoderIdentity:
        """Known without loading the model, unless nothing but the model says how wide its vectors are."""
        if self._identity is None:
            dimension = self._files.dimension or self._measure_dimension()
            self._identity = EncoderIdentity(self._files.name, dimension, self._files.weights())
        return self._identity

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Unit vectors of texts: float32 of shape (len(texts), dimension).

        What else is in the call changes a vector by no more than float noise.

        Raises:
            InvalidInput: `texts` is not a list of strings.
            EncoderError: the model failed, or gave NaN, infinite or wrongly shaped numbers.
        """
        return self._run(self._chunks(texts), states=False)[0]

    def token_states(self, texts: Sequence[str], *, max_tokens: int | None = None) -> TokenStates:
        """States of the tokens of texts, without those that only frame a text ([CLS], [SEP]).

        Args:
            texts: any number of texts; about 1.5 kB a token come back.
            max_tokens: keep the first this many of each text; they have seen all of their chunk.

        Raises:
            InvalidInput: `texts` is not a list of strings.
            EncoderError: as for `embed`, or the model has no token states.
        """
        return self.embed_with_states(texts, max_tokens=max_tokens)[1]

    def embed_with_states(
        self, texts: Sequence[str], *, max_tokens: int | None = None
    ) -> tuple[FloatArray, TokenStates]:
        """What `embed` and `token_states` give, for the price of one of them."""
        chunks = self._chunks(texts)
        vectors, rows = self._run(chunks, states=True)
        counts = np.array([sum(map(len, of_text)) for of_text in chunks], dtype=np.int64)
        ids = np.concatenate([np.empty(0, np.int32), *(chunk for of_text in chunks for chunk in of_text)])
        if max_tokens is not None:
            first = np.cumsum(counts) - counts
            kept = np.arange(len(ids)) - np.repeat(first, counts) < max_tokens
            rows, ids, counts = rows[kept], ids[kept], np.minimum(counts, max_tokens)
        return vectors, TokenStates(rows, np.concatenate([[0], np.cumsum(counts)]), ids)

    def embed_states(self, texts: Sequence[str]) -> Embedded:
        """What `embed` gives, and the states of the texts' tokens; None in their place if the model gives
        sentence vectors alone. See `embedding.base.StateEncoder`.

        Raises:
            as `embed`.
        """
        if not self._model().gives_states:
            return Embedded(self.embed(texts), None)
        vectors, states = self.embed_with_states(texts)
        text_of = self._vocabulary().text_of
        parts = zip(states.offsets[:-1].tolist(), states.offsets[1:].tolist(), strict=True)
        found = (
            States(states.vectors[first:last], tuple(map(text_of, states.ids[first:last].tolist())))
            for first, last in parts
        )
        return Embedded(vectors, tuple(found))

    def count_tokens(self, texts: Sequence[str]) -> npt.NDArray[np.int64]:
        """Tokens of each text, without those that frame it: int64 of shape (len(texts),). Never a sample."""
        vocabulary = self._vocabulary()
        return np.array([vocabulary.count(text) for text in as_texts(texts)], dtype=np.int64)

    def _vocabulary(self) -> Vocabulary:
        file = self._files.tokenizer
        return shared((file, stamp(file.path)), lambda: Vocabulary(file))

    def _model(self) -> Model:
        files, threads = self._files, self._threads or available_cpus()
        return shared((files, stamp(files.model), threads), lambda: Model(files, threads))

    def _measure_dimension(self) -> int:
        model = self._model()
        if model.dimension is None:
            vocabulary = self._vocabulary()
            ids = vocabulary.frame([vocabulary.ids("a")])
            return int(model.run(ids, np.array([ids.shape[1]]))[0].shape[1])
        return model.dimension

    def _chunks(self, texts: Sequence[str]) -> list[list[IdArray]]:
        vocabulary = self._vocabulary()
        size = self._files.window - vocabulary.frame_size
        if size < 1:
            raise EncoderError(
                f"{self._files.name} has a window of {self._files.window} tokens, too few for text"
            )
        return [vocabulary.chunks(text, size) for text in as_texts(texts)]

    def _run(self, chunks: list[list[IdArray]], *, states: bool) -> tuple[FloatArray, FloatArray]:
        """Unit vectors of the texts whose chunks are given and, if `states`, of all their tokens."""
        width = self.identity.dimension
        sums = np.zeros((len(chunks), width), dtype=np.float32)
        tokens = np.zeros((0, width), dtype=np.float32)
        flat = [chunk for of_text in chunks for chunk in of_text]
        if not flat:
            return sums, tokens
        owners = np.repeat(np.arange(len(chunks)), [len(of_text) for of_text in chunks])
        sizes = np.array([len(chunk) for chunk in flat], dtype=np.int64)
        ends = np.cumsum(sizes)
        model, vocabulary = self._model(), self._vocabulary()
        for batch in batches_of(sizes + vocabulary.frame_size):
            ids = vocabulary.frame([flat[i] for i in batch])
            lengths = sizes[batch] + vocabulary.frame_size
            vectors, found = model.run(ids, lengths, states=states)
            if vectors.shape[1] != width:
                raise EncoderError(
                    f"{self._files.name} should give {width} numbers a text, not {vectors.shape[1]}"
                )
            np.add.at(sums, owners[batch], vectors * lengths[:, None].astype(np.float32))
            if found is None:
                continue
            if not len(tokens):
                tokens = np.zeros((ends[-1], found.shape[2]), dtype=np.float32)
            head = len(vocabulary.prefix)
            for row, i in zip(found, batch, strict=True):
                tokens[ends[i] - sizes[i] : ends[i]] = row[head : head + sizes[i]]
        return unit_rows(sums, self._files.name), unit_rows(tokens, self._files.name)


def batches_of(lengths: npt.NDArray[np.int64], most: int = BATCH_ROWS) -> Iterator[npt.NDArray[np.int64]]:
    """Positions of rows, cut into batches of rows of like length so that little is padded.

    A batch holds at most `most` rows and `BATCH_TOKENS` tokens with padding, and at least one row.
    """
    order = np.argsort(lengths, kind="stable")
    start = 0
    for end in range(1, len(order) + 1):
        rows = end - start + 1
        full = end == len(order) or rows > most or lengths[order[end]] * rows > BATCH_TOKENS
        if full:
            yield order[start:end]
            start = end
