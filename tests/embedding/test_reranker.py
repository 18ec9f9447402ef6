"""Rerankers: cross-encoders read from a directory, and functions."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from hmem_core.embedding import reranker as module
from hmem_core.embedding.base import Reranker
from hmem_core.embedding.pairs import PairVocabulary
from hmem_core.embedding.reranker import FunctionReranker, OnnxReranker, resolve
from hmem_core.embedding.tokens import TokenizerFile
from hmem_core.errors import EncoderError, EncoderMissing, InvalidInput
from tests.embedding import tiny

QUERY = "the cat and the dog"
TEXTS = ["a dog ran far", "the cat sat on the mat", "far", "dog dog dog", "the", ""]


def shared_words(query: str, text: str) -> int:
    """What the tiny cross-encoder computes, done the obvious way."""
    mine, theirs = (Counter(word for word in one.split() if word in tiny.WORDS[5:]) for one in (query, text))
    return sum(mine[word] * theirs[word] for word in mine)


def expected(query: str = QUERY, texts: list[str] = TEXTS) -> list[float]:
    return [float(shared_words(query, text)) for text in texts]


@pytest.mark.parametrize("inputs", [tiny.ALL_INPUTS, tiny.ALL_INPUTS[:2], tiny.ALL_INPUTS[:1]])
@pytest.mark.parametrize("integer", [TensorProto.INT64, TensorProto.INT32])
def test_pairs_are_scored_as_the_model_says(tmp_path: Path, inputs: tuple[str, ...], integer: int) -> None:
    scores = OnnxReranker(
        tiny.write_cross_encoder(tmp_path, inputs=inputs, integer=integer), threads=1
    ).score(QUERY, TEXTS)
    assert scores.dtype == np.float32
    assert scores.tolist() == expected()


def test_of_two_classes_the_log_odds_of_the_last_count(tmp_path: Path) -> None:
    scores = OnnxReranker(tiny.write_cross_encoder(tmp_path, classes=2)).score(QUERY, TEXTS)
    assert scores.tolist() == [score - 1 for score in expected()]


def test_an_output_of_another_name(tmp_path: Path) -> None:
    assert OnnxReranker(tiny.write_cross_encoder(tmp_path, output="scores")).score(QUERY, TEXTS).tolist() == (
        expected()
    )


def test_batches_equal_one_by_one_and_hold_like_lengths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranker = OnnxReranker(tiny.write_cross_encoder(tmp_path), max_pairs=3)
    texts = [" ".join(tiny.WORDS[5 : 5 + length]) for length in (9, 1, 5, 2, 8, 3, 1)]
    alone = [float(reranker.score(QUERY, [text])[0]) for text in texts]
    shapes = []
    run = module._CrossEncoder.run

    def counted(self: Any, ids: np.ndarray, *rest: Any) -> Any:
        shapes.append(ids.shape)
        return run(self, ids, *rest)

    monkeypatch.setattr(module._CrossEncoder, "run", counted)
    assert reranker.score(QUERY, texts).tolist() == alone == expected(texts=texts)
    frame = 5 + 3  # the query, [CLS] and two [SEP]
    assert shapes == [(3, frame + 2), (3, frame + 8), (1, frame + 9)]


def test_no_texts_need_no_model(tmp_path: Path) -> None:
    tiny.write_cross_encoder(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"no model")
    assert OnnxReranker(tmp_path).score("cat", []).shape == (0,)


def test_special_tokens_in_texts_are_characters(tmp_path: Path) -> None:
    reranker = OnnxReranker(tiny.write_cross_encoder(tmp_path, inputs=("input_ids",)))
    # Were it a token, the query would end at it, and its "cat" be held against itself.
    assert reranker.score("dog [SEP] cat", ["dog"]).tolist() == [1.0]


@pytest.fixture
def vocabulary(tmp_path: Path) -> PairVocabulary:
    tiny.write_tokenizer(tmp_path / "tokenizer.json")
    return PairVocabulary(TokenizerFile(tmp_path / "tokenizer.json"))


def test_pairs_are_what_the_tokenizer_makes_of_them(tmp_path: Path, vocabulary: PairVocabulary) -> None:
    from tokenizers import Tokenizer

    plain = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    plain.no_truncation()
    plain.no_padding()
    for text in TEXTS:
        (pair,) = vocabulary.pairs(QUERY, [text], 64)
        whole = plain.encode(QUERY, text)
        assert (pair.ids.tolist(), pair.types.tolist()) == (whole.ids, whole.type_ids)


@pytest.mark.parametrize(
    ("query", "text", "kept"),
    [
        (2, 100, (2, 9)),
        (100, 2, (9, 2)),
        (100, 100, (6, 5)),
        (4, 7, (4, 7)),
        (7, 5, (6, 5)),
        (100, 0, (11, 0)),
    ],
)
def test_the_text_is_cut_and_the_query_keeps_half(
    vocabulary: PairVocabulary, query: int, text: int, kept: tuple[int, int]
) -> None:
    (pair,) = vocabulary.pairs("cat " * query, ["dog " * text], 14)  # 11 beside [CLS] and two [SEP]
    cat, dog = tiny.ids("cat dog")
    assert (pair.ids.tolist().count(cat), pair.ids.tolist().count(dog)) == kept
    assert len(pair.ids) == sum(kept) + 3
    assert pair.ids[-1] == tiny.WORDS.index("[SEP]")


def test_texts_of_any_length_fit_the_window(tmp_path: Path) -> None:
    reranker = OnnxReranker(tiny.write_cross_encoder(tmp_path, positions=16))
    scores = reranker.score("cat", ["cat " * 100_000, "dog " * 100_000 + "cat", "cat"])
    assert scores.tolist() == [16 - 3 - 1, 0, 1]
    assert reranker.score("cat " * 100_000, ["cat"]).tolist() == [12.0]


def test_a_window_too_small_is_named(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="4 tokens, too few for a pair"):
        OnnxReranker(tiny.write_cross_encoder(tmp_path, positions=4)).score("cat", ["dog"])


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named_with_the_remedy(tmp_path: Path, missing: str) -> None:
    (tiny.write_cross_encoder(tmp_path) / missing).unlink()
    with pytest.raises(EncoderMissing, match=rf"{tmp_path}.*{missing}.*cross-encoder.*reranker="):
        OnnxReranker(tmp_path)


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(EncoderMissing, match=r"nowhere is not a directory.*reranker="):
        OnnxReranker(tmp_path / "nowhere")


def test_files_that_are_something_else(tmp_path: Path) -> None:
    tiny.write_cross_encoder(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(EncoderError, match=r"model\.onnx cannot be loaded"):
        OnnxReranker(tmp_path).score("cat", ["dog"])
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(EncoderError, match=r"tokenizer\.json cannot be read as a tokenizer"):
        OnnxReranker(tmp_path).score("cat", ["dog"])


def test_a_model_that_is_no_cross_encoder(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path)
    with pytest.raises(EncoderError, match=r"last_hidden_state of shape \(1, 5, 4\) for 1 pairs"):
        OnnxReranker(tmp_path).score("cat", ["dog"])
    tiny.write_model(tmp_path / "model.onnx", inputs=("input_ids", "pixel_values"))
    with pytest.raises(EncoderError, match="takes input_ids, pixel_values"):
        OnnxReranker(tmp_path).score("cat", ["dog"])


def test_more_classes_than_two(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match=r"shape \(1, 3\)"):
        OnnxReranker(tiny.write_cross_encoder(tmp_path, classes=3)).score("cat", ["dog"])


@pytest.mark.parametrize("factor", [float("nan"), float("inf")])
def test_scores_that_are_no_numbers(tmp_path: Path, factor: float) -> None:
    with pytest.raises(EncoderError, match=r"model\.onnx gave NaN or infinite scores, first for text 0 of 1"):
        OnnxReranker(tiny.write_cross_encoder(tmp_path, factor=factor)).score("cat", ["cat"])


@pytest.mark.parametrize("options", [{"threads": 0}, {"max_pairs": 0}])
def test_numbers_below_one(tmp_path: Path, options: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        OnnxReranker(tiny.write_cross_encoder(tmp_path), **options)  # type: ignore[arg-type]


def test_texts_are_a_list_of_strings(tmp_path: Path) -> None:
    reranker = OnnxReranker(tiny.write_cross_encoder(tmp_path))
    for texts in ("cat", ["cat", None]):
        with pytest.raises(InvalidInput):
            reranker.score("cat", texts)  # type: ignore[arg-type]


# -- functions and objects ---------------------------------------------------------------------------


def test_functions_and_objects_are_rerankers(tmp_path: Path) -> None:
    class Lengths:
        def score(self, query: str, texts: list[str]) -> list[int]:
            return [len(text) for text in texts]

    for given in (Lengths(), Lengths().score):
        made = resolve(given)  # type: ignore[arg-type]
        assert isinstance(made, Reranker)
        assert made.score("q", ("a", "bcd")).tolist() == [1.0, 3.0]
        assert made.score("q", ()).shape == (0,)
    ready = OnnxReranker(tiny.write_cross_encoder(tmp_path))
    assert resolve(ready) is ready
    assert isinstance(resolve(tmp_path), OnnxReranker)


@pytest.mark.parametrize("given", [None, 7, OnnxReranker, object()])
def test_other_things_are_not(given: Any) -> None:
    with pytest.raises(InvalidInput, match="is not a reranker"):
        resolve(given)


def test_a_coroutine_function() -> None:
    async def later(query: str, texts: list[str]) -> list[float]:
        return [0.0] * len(texts)

    with pytest.raises(InvalidInput, match="coroutine"):
        resolve(later)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ([1.0], r"shape \(1,\) for 2 texts"),
        ([[1.0], [2.0]], r"shape \(2, 1\)"),
        (["a", "b"], "not real numbers"),
        ([1.0, float("nan")], "first for text 1 of 2"),
        ([1e300, 0.0], "first for text 0 of 2"),
    ],
)
def test_what_a_function_returns_is_checked(reply: Any, message: str) -> None:
    with pytest.raises(EncoderError, match=message):
        FunctionReranker(lambda query, texts: reply, name="mine").score("q", ["a", "b"])


def test_a_function_that_raises_is_named() -> None:
    def broken(query: str, texts: list[str]) -> list[float]:
        raise OSError("no route")

    with pytest.raises(EncoderError, match=r"broken failed on 1 texts: no route"):
        FunctionReranker(broken).score("q", ["a"])


def test_neither_model_nor_module_is_loaded_before_it_is_needed(tmp_path: Path) -> None:
    tiny.write_cross_encoder(tmp_path)
    code = f"""
import sys, hmem_core
late = ('hmem_core.embedding.reranker', 'onnxruntime', 'tokenizers')
loaded = lambda: [name for name in late if name in sys.modules]
encoder = lambda texts: [[1.0]] * len(texts)
hmem_core.open(encoder=encoder).close()
print(loaded())
hmem_core.open(encoder=encoder, reranker={str(tmp_path)!r}).close()
print(loaded())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["[]", "['hmem_core.embedding.reranker']"], done.stderr
