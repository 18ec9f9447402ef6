"""A plain function as an encoder."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from hmem_core.embedding.base import Encoder
from hmem_core.embedding.function import FunctionEncoder
from hmem_core.errors import EncoderError, InvalidInput
from hmem_core.records import EncoderIdentity


def lengths(texts: list[str]) -> list[list[float]]:
    return [[len(text), 1.0, 0.0] for text in texts]


def giving(rows: Any, dimension: int = 2) -> FunctionEncoder:
    return FunctionEncoder(lambda texts: rows, name="giving", dimension=dimension)


def test_it_keeps_the_contract() -> None:
    encoder = FunctionEncoder(lengths)
    assert isinstance(encoder, Encoder)
    assert encoder.identity == EncoderIdentity(f"{__name__}.lengths", 3, "")
    vectors = encoder.embed(["abc", "a"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [[3 / 10**0.5, 1 / 10**0.5, 0], [0.5**0.5, 0.5**0.5, 0]], rtol=1e-6)


def test_blank_texts_are_zero_rows_and_not_given_to_the_function() -> None:
    seen: list[list[str]] = []

    def watched(texts: list[str]) -> list[list[float]]:
        seen.append(texts)
        return lengths(texts)

    encoder = FunctionEncoder(watched, dimension=3)
    vectors = encoder.embed(["", "ab", " \n"])
    assert vectors.any(axis=1).tolist() == [False, True, False]
    assert encoder.embed([" "]).shape == (1, 3)
    assert encoder.embed([]).shape == (0, 3)
    assert seen == [["ab"]]


def test_the_dimension_is_probed_once() -> None:
    calls: list[list[str]] = []
    encoder = FunctionEncoder(lambda texts: calls.append(texts) or lengths(texts))
    assert calls == []
    assert encoder.identity.dimension == encoder.identity.dimension == 3
    assert len(calls) == 1


def test_zero_rows_stay_zero() -> None:
    assert giving([[0, 0], [3, 4]]).embed(["a", "b"]).tolist() == [[0, 0], pytest.approx([0.6, 0.8])]


@pytest.mark.parametrize("scale", [1e300, 1e-300, 5e-324])
def test_huge_and_tiny_float64_rows_are_normalised(scale: float) -> None:
    np.testing.assert_allclose(giving(np.array([[scale, scale]])).embed(["a"]), [[0.5**0.5] * 2], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint64])
def test_any_real_numbers_will_do(dtype: type) -> None:
    given = np.array([[3, 4]], dtype=dtype)
    np.testing.assert_allclose(giving(given).embed(["a"]), [[0.6, 0.8]], rtol=1e-3)
    assert given.tolist() == [[3, 4]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 0.0]], r"shape \(1, 2\) for 2 texts, not \(2, 2\)"),
        ([[1.0], [1.0]], r"shape \(2, 1\) for 2 texts, not \(2, 2\)"),
        ([1.0, 2.0], r"shape \(2,\) for 2 texts"),
        (None, "returned object"),
        ([["a", "b"]] * 2, "not real numbers"),
        ([[1j, 1]] * 2, "returned complex128"),
        ([[True, False]] * 2, "returned bool"),
        ([[1.0, 0.0], [np.nan, 0.0]], "NaN or infinite numbers, first in row 1 of 2"),
        ([[np.inf, 0.0], [1.0, 0.0]], "first in row 0 of 2"),
        ([[1.0, 0.0], [1.0]], "failed on 2 texts"),
    ],
)
def test_what_is_not_one_vector_a_text_is_refused(rows: Any, message: str) -> None:
    with pytest.raises(EncoderError, match=message):
        giving(rows).embed(["a", "b"])


def test_what_the_function_raises_is_the_cause() -> None:
    def broken(texts: list[str]) -> list[list[float]]:
        raise TimeoutError("no answer")

    with pytest.raises(EncoderError, match=r"broken failed on 1 texts: no answer") as caught:
        FunctionEncoder(broken, dimension=2).embed(["a"])
    assert isinstance(caught.value.__cause__, TimeoutError)


def test_what_cannot_be_an_encoder_is_refused_at_once() -> None:
    async def later(texts: list[str]) -> list[list[float]]:
        return lengths(texts)

    with pytest.raises(InvalidInput, match="coroutine"):
        FunctionEncoder(later)
    with pytest.raises(InvalidInput, match="at least 1 number"):
        FunctionEncoder(lengths, dimension=0)


def test_names() -> None:
    class Callable:
        def __call__(self, texts: list[str]) -> list[list[float]]:
            return lengths(texts)

    assert FunctionEncoder(Callable()).identity.name.endswith("Callable")
    assert FunctionEncoder(functools.partial(lengths)).identity.name == "functools.partial"
    assert FunctionEncoder(lengths, name="mine").identity.name == "mine"
