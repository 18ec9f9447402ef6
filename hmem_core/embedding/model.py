"""A loaded ONNX model: which of its inputs and outputs mean what, and one run of it.

Which output is which is decided by name first, then by rank:

- *sentence vectors*: ``sentence_embedding``; else, if there are no token states, the first output of rank 2;
- *token states*: ``last_hidden_state``, then ``token_embeddings``, else the first output of rank 3.

A model needs one of the two. Where it gives no sentence vectors they are pooled from the token states.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hmem_core.embedding.base import FloatArray
from hmem_core.embedding.files import ModelFiles
from hmem_core.errors import EncoderError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

__all__ = ["INTEGERS", "Model", "load"]

INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


class Model:
    """An onnxruntime session for one model. Safe to run from several threads; not after a fork.

    Args:
        files: the model, and how its token states are pooled.
        threads: threads that one run spreads over.

    Raises:
        EncoderError: the file is not the one expected, or not a model from token ids to states or vectors.
    """

    def __init__(self, files: ModelFiles, threads: int) -> None:
        files.verify()
        self._path = files.model
        self._pooling = files.pooling
        self._session = load(files.model, threads)
        self._inputs = {node.name: INTEGERS.get(node.type) for node in self._session.get_inputs()}
        if "input_ids" not in self._inputs or not self._inputs.keys() <= _INPUTS:
            raise EncoderError(
                f"{self._path} takes {', '.join(sorted(self._inputs))}; an encoder takes input_ids and, if "
                "need be, attention_mask and token_type_ids"
            )
        outputs = {node.name: node.shape for node in self._session.get_outputs()}
        self._states = _choose(outputs, 3, "last_hidden_state", "token_embeddings")
        self._sentence = "sentence_embedding" if "sentence_embedding" in outputs else None
        if self._states is None and self._sentence is None:
            self._sentence = _choose(outputs, 2)
        chosen = self._sentence or self._states
        if chosen is None:
            shapes = ", ".join(f"{name} {shape}" for name, shape in outputs.items())
            raise EncoderError(f"{self._path} has no token states (rank 3) and no vectors (rank 2): {shapes}")
        if files.whole and self._sentence is None:
            raise EncoderError(
                f"{files.name} has a layer after its pooling that {self._path} does not contain; export it "
                "with the output sentence_embedding"
            )
        width = outputs[chosen][-1:]
        self.dimension: int | None = width[0] if width and isinstance(width[0], int) else None
        """Width of the sentence vectors, or None if the model leaves it open."""
        self.gives_states = self._states is not None
        """Whether `run` can give token states."""

    def run(
        self, ids: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], *, states: bool = False
    ) -> tuple[FloatArray, FloatArray | None]:
        """Run the model on one batch.

        Args:
            ids: token ids of shape (batch, tokens), padded on the right.
            lengths: int64 of shape (batch,), the tokens of each row that are not padding.
            states: whether token states are wanted.

        Returns:
            Sentence vectors, float32 of shape (batch, dimension), not normalised; and token states, float32
            of shape (batch, tokens, dimension), or None if not wanted. States of padding mean nothing.

        Raises:
            EncoderError: onnxruntime failed, the shapes are others, or the model has no token states.
        """
        if states and self._states is None:
            raise EncoderError(f"{self._path} gives sentence vectors only, no states of tokens")
        names = [self._sentence] if self._sentence else []
        if self._states and (states or not self._sentence):
            names.append(self._states)
        found = dict(zip(names, self._run(names, ids, lengths), strict=True))
        tokens = found.get(self._states) if self._states else None
        if tokens is not None and (tokens.ndim != 3 or tokens.shape[:2] != ids.shape):
            raise EncoderError(f"{self._path} gave states of shape {tokens.shape} for a batch of {ids.shape}")
        vectors = found[self._sentence] if self._sentence else self._pool(tokens, lengths)
        if vectors.ndim != 2 or len(vectors) != len(ids):
            raise EncoderError(
                f"{self._path} gave vectors of shape {vectors.shape} for a batch of {ids.shape}"
            )
        return vectors, tokens if states else None

    def _run(
        self, names: list[str], ids: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
    ) -> list[FloatArray]:
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        known = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        feed = {name: known[name].astype(kind or np.int64, copy=False) for name, kind in self._inputs.items()}
        try:
            found = self._session.run(names, feed)
        except Exception as error:  # every kind of failure has a class of its own, none of them documented
            raise EncoderError(f"{self._path} failed on a batch of {ids.shape}: {error}") from error
        return [np.asarray(array, dtype=np.float32) for array in found]

    def _pool(self, tokens: Any, lengths: npt.NDArray[np.int64]) -> FloatArray:
        if self._pooling == "cls":
            return np.asarray(tokens[:, 0])
        # Row by row, so that padding has no part in it at all: 0 x NaN would be NaN.
        return np.stack([row[:length].mean(axis=0) for row, length in zip(tokens, lengths, strict=True)])


def load(model: Path, threads: int) -> InferenceSession:
    """A session for the model in a file, whose runs spread over so many threads.

    Raises:
        EncoderError: onnxruntime cannot read it.
    """
    # From 1.29 on, importing onnxruntime starts a thread that reports usage to its maker, writes a device id
    # below the home directory, and makes every forked child hang when it exits. An offline library does none
    # of that unless its user has set the variable otherwise.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # Spinning would gain 5 to 10 % where nothing else runs, and take a core from whatever else does.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3  # errors only: a library does not write to its caller's terminal
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise EncoderError(f"{model} cannot be loaded: {error}") from error


def _choose(outputs: dict[str, Any], rank: int, *names: str) -> str | None:
    """The first of the names that is there, else the first output of that rank."""
    named = (name for name in names if name in outputs)
    ranked = (name for name, shape in outputs.items() if len(shape) == rank)
    return next(named, None) or next(ranked, None)
