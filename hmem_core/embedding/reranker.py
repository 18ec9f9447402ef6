"""Rerankers: a local cross-encoder in ONNX form, and any function as one.

Importing this module loads neither onnxruntime nor tokenizers; the first pair to score does.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hmem_core.cpus import available_cpus
from hmem_core.embedding.base import FloatArray, Reranker
from hmem_core.embedding.checks import as_texts
from hmem_core.embedding.files import ModelFiles, cross_encoder, stamp
from hmem_core.embedding.model import INTEGERS, load
from hmem_core.embedding.native import shared
from hmem_core.embedding.onnx import BATCH_ROWS, batches_of
from hmem_core.embedding.pairs import PairVocabulary
from hmem_core.errors import EncoderError, InvalidInput

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

__all__ = ["FunctionReranker", "OnnxReranker", "resolve"]

_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


class OnnxReranker:
    """Scores pairs of a query and a text with a cross-encoder run by onnxruntime.

    The model takes ``input_ids`` and perhaps ``attention_mask`` and ``token_type_ids``, and gives ``logits``
    (or else its first output) of shape (pairs, 1), the score, or (pairs, 2), of which the score is the
    log-odds of the last class. A pair beyond the window is cut at the end of its text; the query keeps half
    of the window in any case.

    The model is loaded by the first call that needs it and shared by all rerankers of the process. Safe to
    use from several threads and in forked children, which load their own.

    Args:
        directory: with ``model.onnx`` and ``tokenizer.json`` (or ``vocab.txt``), perhaps in ``onnx/``.
            ``config.json`` and ``tokenizer_config.json`` say how large the window is, 512 tokens at most.
        threads: threads of one call; as many as there are processors for the process unless given.
        max_pairs: pairs that are run at once at most; fewer where they are long (`onnx.BATCH_TOKENS`).

    Raises:
        EncoderMissing: the directory or one of its files is not there.
        EncoderError: a settings file cannot be used.
        InvalidInput: fewer than one thread or pair.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        threads: int | None = None,
        max_pairs: int = BATCH_ROWS,
    ) -> None:
        for name, value in (("threads", 1 if threads is None else threads), ("max_pairs", max_pairs)):
            if value < 1:
                raise InvalidInput(f"{name}={value!r}: a reranker needs at least 1")
        self._files = cross_encoder(Path(directory))
        self._threads = threads
        self._max_pairs = max_pairs

    def __repr__(self) -> str:
        return f"OnnxReranker({self._files.name!r})"

    def score(self, query: str, texts: Sequence[str]) -> FloatArray:
        """How well each text answers the query: float32 of shape (len(texts),), as the model gives it.

        Raises:
            InvalidInput: `texts` is not a list of strings, or `query` is no string.
            EncoderMissing: a file has gone.
            EncoderError: the files are no cross-encoder, the model failed, or it gave NaN, infinite or
                wrongly shaped numbers.
        """
        (query,), checked = as_texts([query]), as_texts(texts)
        scores = np.zeros(len(checked), np.float32)
        if not checked:
            return scores
        vocabulary, model = self._vocabulary(), self._model()
        if self._files.window < vocabulary.pair_frame_size + 2:
            raise EncoderError(
                f"{self._files.name} has a window of {self._files.window} tokens, too few for a pair of texts"
            )
        pairs = vocabulary.pairs(query, checked, self._files.window)
        lengths = np.array([len(pair.ids) for pair in pairs], np.int64)
        for batch in batches_of(lengths, self._max_pairs):
            ids, types = vocabulary.padded([pairs[i] for i in batch])
            scores[batch] = model.run(ids, types, lengths[batch])
        return scores

    def _vocabulary(self) -> PairVocabulary:
        file = self._files.tokenizer
        return shared(("pairs", file, stamp(file.path)), lambda: PairVocabulary(file))

    def _model(self) -> _CrossEncoder:
        files, threads = self._files, self._threads or available_cpus()
        key = ("pairs", files, stamp(files.model), threads)
        return shared(key, lambda: _CrossEncoder(files, threads))


class _CrossEncoder:
    """An onnxruntime session for one cross-encoder. Safe to run from several threads; not after a fork."""

    def __init__(self, files: ModelFiles, threads: int) -> None:
        self._path = files.model
        self._session: InferenceSession = load(files.model, threads)
        self._inputs = {node.name: INTEGERS.get(node.type) for node in self._session.get_inputs()}
        if "input_ids" not in self._inputs or not self._inputs.keys() <= _INPUTS:
            raise EncoderError(
                f"{self._path} takes {', '.join(sorted(self._inputs))}; a cross-encoder takes input_ids and, "
                "if need be, attention_mask and token_type_ids"
            )
        outputs = [node.name for node in self._session.get_outputs()]
        self._output = "logits" if "logits" in outputs else outputs[0]

    def run(
        self, ids: npt.NDArray[np.int64], types: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
    ) -> FloatArray:
        """Scores of one batch: float32 of shape (batch,).

        Args:
            ids: token ids of shape (batch, tokens), padded on the right.
            types: of the same shape.
            lengths: tokens of each row that are not padding, of shape (batch,).
        """
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        known = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        feed = {name: known[name].astype(kind or np.int64, copy=False) for name, kind in self._inputs.items()}
        try:
            found = np.asarray(self._session.run([self._output], feed)[0])
        except Exception as error:  # every kind of failure has a class of its own, none of them documented
            raise EncoderError(f"{self._path} failed on a batch of {ids.shape}: {error}") from error
        if found.ndim != 2 or len(found) != len(ids) or found.shape[1] not in (1, 2):
            raise EncoderError(
                f"{self._path} gave {self._output} of shape {found.shape} for {len(ids)} pairs, not "
                f"({len(ids)}, 1) or ({len(ids)}, 2); give a cross-encoder that scores pairs"
            )
        logits = found.astype(np.float32)
        return _finite(logits[:, -1] - logits[:, 0] if logits.shape[1] == 2 else logits[:, 0], self._path)


class FunctionReranker:
    """Makes a reranker of a function from a query and a list of texts to a number for each.

    Args:
        fn: the function; it returns whatever `numpy.asarray` turns into finite real numbers of shape
            (len(texts),). It is called from whichever thread searches.
        name: how errors call it; the function's qualified name unless given.

    Raises:
        InvalidInput: `fn` is a coroutine function.
    """

    def __init__(self, fn: Callable[[str, list[str]], Any], *, name: str | None = None) -> None:
        if inspect.iscoroutinefunction(fn):
            raise InvalidInput("the reranker is a coroutine function; give one that returns its scores")
        named = fn if hasattr(fn, "__qualname__") else type(fn)
        self._fn = fn
        self._name = name or f"{named.__module__}.{named.__qualname__}"

    def __repr__(self) -> str:
        return f"FunctionReranker({self._name})"

    def score(self, query: str, texts: Sequence[str]) -> FloatArray:
        """Scores of texts: float32 of shape (len(texts),).

        Raises:
            InvalidInput: `texts` is not a list of strings, or `query` is no string.
            EncoderError: the function raised, or returned something else than finite numbers of that shape.
        """
        (query,), checked = as_texts([query]), as_texts(texts)
        if not checked:
            return np.zeros(0, np.float32)
        try:
            found = np.asarray(self._fn(query, checked))
        except EncoderError:
            raise
        except Exception as error:
            raise EncoderError(f"{self._name} failed on {len(checked)} texts: {error}") from error
        if found.dtype.kind not in "fiu" or found.shape != (len(checked),):
            raise EncoderError(
                f"{self._name} returned {found.dtype} of shape {found.shape} for {len(checked)} texts, not "
                f"real numbers of shape ({len(checked)},)"
            )
        return _finite(found, self._name)


def resolve(given: str | os.PathLike[str] | Callable[[str, list[str]], Any] | Reranker) -> Reranker:
    """The reranker that is meant; what an object or a function gives is checked.

    Args:
        given: the path of a directory with a cross-encoder, a function from a query and a list of texts to
            numbers, or a reranker.

    Raises:
        EncoderMissing: the directory lacks a file; the message says which, and what to do.
        EncoderError: the settings files of the directory cannot be used.
        InvalidInput: it is none of these things.
    """
    if isinstance(given, (str, os.PathLike)):
        return OnnxReranker(given)
    if isinstance(given, (OnnxReranker, FunctionReranker)):
        return given
    if not isinstance(given, type):
        if callable(method := getattr(given, "score", None)):
            return FunctionReranker(method)
        if callable(given):
            return FunctionReranker(given)
    raise InvalidInput(
        f"{given!r} is not a reranker: give the path of a cross-encoder, a function from a query and a list "
        "of texts to numbers, or an object with `score`"
    )


def _finite(scores: npt.NDArray[Any], source: object) -> FloatArray:
    """The scores as float32.

    Raises:
        EncoderError: one is NaN or infinite.
    """
    with np.errstate(over="ignore"):  # what float32 cannot hold is found below
        narrow = scores.astype(np.float32)
    if not np.isfinite(narrow).all():
        bad = int(np.flatnonzero(~np.isfinite(narrow))[0])
        raise EncoderError(f"{source} gave NaN or infinite scores, first for text {bad} of {len(narrow)}")
    return narrow
