"""From what a user names as an encoder to the encoder.

Importing this module loads neither onnxruntime nor tokenizers; the first text to embed does.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from hmem_core.embedding.base import Encoder
from hmem_core.embedding.files import in_directory, in_package
from hmem_core.embedding.function import FunctionEncoder
from hmem_core.embedding.onnx import OnnxEncoder
from hmem_core.errors import InvalidInput

__all__ = ["resolve"]


def resolve(encoder: str | os.PathLike[str] | Callable[[list[str]], Any] | Encoder | None) -> Encoder:
    """The encoder that is meant.

    Args:
        encoder: None for the default model; the path of a directory with ``model.onnx`` and a tokenizer; a
            function from a list of texts to an array; or an encoder, which is returned as it is.

    Raises:
        EncoderMissing: the default's package is not installed, or the directory lacks a file; the message
            says which, and what to do.
        EncoderError: the settings files of the directory cannot be used.
        InvalidInput: it is none of these things.
    """
    if encoder is None:
        return OnnxEncoder(in_package())
    if isinstance(encoder, (str, os.PathLike)):
        return OnnxEncoder(in_directory(Path(encoder)))
    # `isinstance(encoder, Encoder)` would ask for the identity, which may mean loading a model.
    if not isinstance(encoder, type) and callable(getattr(encoder, "embed", None)):
        if inspect.getattr_static(encoder, "identity", None) is not None:
            return cast(Encoder, encoder)
    elif callable(encoder):
        return FunctionEncoder(encoder)
    raise InvalidInput(
        f"{encoder!r} is not an encoder: give the path of a model, a function from a list of texts to "
        "vectors, or an object with `identity` and `embed`"
    )
