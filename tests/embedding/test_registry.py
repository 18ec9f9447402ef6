"""What may be named as an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hmem_core.embedding import registry
from hmem_core.embedding.base import FloatArray
from hmem_core.embedding.files import DEFAULT
from hmem_core.embedding.function import FunctionEncoder
from hmem_core.embedding.onnx import OnnxEncoder
from hmem_core.embedding.registry import resolve
from hmem_core.errors import EncoderMissing, InvalidInput
from hmem_core.records import EncoderIdentity
from tests.embedding import tiny


class Own:
    @property
    def identity(self) -> EncoderIdentity:
        raise AssertionError("resolving asks for no identity: that may load a model")

    def embed(self, texts: Sequence[str]) -> FloatArray:
        return np.zeros((len(texts), 1), dtype=np.float32)


def test_none_is_the_default() -> None:
    encoder = resolve(None)
    assert isinstance(encoder, OnnxEncoder)
    assert encoder.identity.name == DEFAULT.name


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_is_a_model_directory(tmp_path: Path, kind: type) -> None:
    encoder = resolve(kind(tiny.write_directory(tmp_path / "small")))
    assert isinstance(encoder, OnnxEncoder)
    assert encoder.identity.name == "small"


def test_a_path_that_is_not_there_is_missing(tmp_path: Path) -> None:
    with pytest.raises(EncoderMissing):
        resolve(tmp_path / "nowhere")


def test_a_function_becomes_an_encoder() -> None:
    encoder = resolve(lambda texts: np.ones((len(texts), 2)))
    assert isinstance(encoder, FunctionEncoder)
    assert encoder.embed(["a"]).shape == (1, 2)


def test_an_encoder_stays_what_it_is() -> None:
    own = Own()
    assert resolve(own) is own


class NoIdentity:
    embed = Own.embed


@pytest.mark.parametrize("wrong", [3, NoIdentity(), object(), b"bytes"])
def test_anything_else_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="is not an encoder"):
        resolve(wrong)  # type: ignore[arg-type]


def test_everything_public_is_listed() -> None:
    assert registry.__all__ == ["resolve"]
