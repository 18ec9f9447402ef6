"""Encoders read from a directory: files, settings, inputs, outputs, pooling, identity."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from hmem_core.embedding.files import MAX_WINDOW, in_directory
from hmem_core.embedding.onnx import OnnxEncoder
from hmem_core.embedding.tokens import MAX_CHUNKS
from hmem_core.errors import EncoderError, EncoderMissing, InvalidInput
from tests.embedding import tiny

TEXTS = ["the cat sat on a mat", "dog", "a dog ran far and the cat ran far"]


def encoder(directory: Path) -> OnnxEncoder:
    return OnnxEncoder(in_directory(directory), threads=1)


def expected(texts: list[str] = TEXTS) -> np.ndarray:
    return np.stack([tiny.framed_mean(text) for text in texts])


@pytest.mark.parametrize("inputs", [tiny.ALL_INPUTS, tiny.ALL_INPUTS[:2], tiny.ALL_INPUTS[:1]])
@pytest.mark.parametrize("integer", [TensorProto.INT64, TensorProto.INT32])
def test_inputs_are_taken_from_the_model(tmp_path: Path, inputs: tuple[str, ...], integer: int) -> None:
    tiny.write_directory(tmp_path, inputs=inputs, integer=integer)
    np.testing.assert_allclose(encoder(tmp_path).embed(TEXTS), expected(), atol=1e-6)


def test_unknown_inputs_are_named(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path, inputs=("input_ids", "pixel_values"))
    with pytest.raises(EncoderError, match="pixel_values"):
        encoder(tmp_path).embed(TEXTS)


def test_model_and_tokenizer_may_lie_in_onnx(tmp_path: Path) -> None:
    tiny.write_model(tmp_path / "onnx" / "model.onnx")
    tiny.write_vocabulary(tmp_path / "onnx" / "vocab.txt")
    np.testing.assert_allclose(encoder(tmp_path).embed(TEXTS), expected(), atol=1e-6)


def test_case_of_a_vocabulary_follows_its_settings(tmp_path: Path) -> None:
    tiny.write_model(tmp_path / "model.onnx")
    tiny.write_vocabulary(tmp_path / "vocab.txt")
    lowered = encoder(tmp_path)
    assert lowered.token_states(["The Cat"]).ids.tolist() == tiny.ids("the cat")
    tiny.write_json(tmp_path / "tokenizer_config.json", {"do_lower_case": False})
    cased = encoder(tmp_path)
    assert cased.token_states(["The cat"]).ids.tolist() == tiny.ids("[UNK] cat")
    assert cased.identity != lowered.identity


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named_with_both_remedies(tmp_path: Path, missing: str) -> None:
    tiny.write_directory(tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(EncoderMissing, match=rf"{missing}.*give a directory.*pip install"):
        in_directory(tmp_path)


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(EncoderMissing, match="nowhere is not a directory"):
        in_directory(tmp_path / "nowhere")


def test_a_model_that_vanishes_before_its_first_use_is_missing(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path)
    lost = encoder(tmp_path)
    (tmp_path / "model.onnx").unlink()
    with pytest.raises(EncoderMissing, match=r"model\.onnx cannot be read"):
        lost.embed(TEXTS)


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_rubbish_in_a_file_is_an_encoder_error(tmp_path: Path, file: str) -> None:
    tiny.write_directory(tmp_path)
    (tmp_path / file).write_bytes(b"\x00rubbish")
    with pytest.raises(EncoderError, match=file):
        encoder(tmp_path).embed(TEXTS)


def test_a_vocabulary_without_special_tokens_is_an_encoder_error(tmp_path: Path) -> None:
    tiny.write_model(tmp_path / "model.onnx")
    (tmp_path / "vocab.txt").write_text("the\ncat\n")
    with pytest.raises(EncoderError, match=r"no \[CLS\]"):
        encoder(tmp_path).embed(TEXTS)


def test_settings_that_are_not_json_are_named(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(EncoderError, match=r"config\.json is not JSON"):
        in_directory(tmp_path)


@pytest.mark.parametrize(
    ("file", "content"),
    [("config.json", []), ("tokenizer_config.json", 3), ("modules.json", {}), ("1_Pooling/config.json", "x")],
)
def test_settings_of_the_wrong_kind_are_named(tmp_path: Path, file: str, content: object) -> None:
    tiny.write_directory(tmp_path)
    tiny.write_json(tmp_path / file, content)
    with pytest.raises(EncoderError, match=f"{file} holds"):
        in_directory(tmp_path)


@pytest.mark.parametrize("settings", [{"pooling_mode_cls_token": True}, {"pooling_mode": "cls"}])
def test_cls_pooling(tmp_path: Path, settings: dict[str, object]) -> None:
    tiny.write_directory(tmp_path)
    tiny.write_json(tmp_path / "1_Pooling" / "config.json", settings)
    cls = tiny.table()[2]
    np.testing.assert_allclose(encoder(tmp_path).embed(["dog"])[0], cls / np.linalg.norm(cls), atol=1e-6)


def test_the_pooling_module_is_found_by_name(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path)
    package = "sentence_transformers.models"
    modules = [
        {"path": "", "type": f"{package}.Transformer"},
        {"path": "2_Mine", "type": f"{package}.Pooling"},
        {"path": "3_Normalize", "type": f"{package}.Normalize"},
    ]
    tiny.write_json(tmp_path / "modules.json", modules)
    tiny.write_json(tmp_path / "2_Mine" / "config.json", {"pooling_mode_cls_token": True})
    assert in_directory(tmp_path).pooling == "cls"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"pooling_mode_max_tokens": True}, "pooling_mode_max_tokens"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, r"cls\+mean"),
        ({"pooling_mode": "lasttoken"}, "lasttoken"),
    ],
)
def test_unknown_pooling_is_refused(tmp_path: Path, settings: dict[str, object], named: str) -> None:
    tiny.write_directory(tmp_path)
    tiny.write_json(tmp_path / "1_Pooling" / "config.json", settings)
    with pytest.raises(EncoderError, match=named):
        in_directory(tmp_path)


def test_a_layer_after_pooling_needs_a_sentence_output(tmp_path: Path) -> None:
    modules = [{"path": "", "type": "x.Transformer"}, {"path": "2_Dense", "type": "x.Dense"}]
    for name, outputs in {"without": ("last_hidden_state",), "with": ("sentence_embedding",)}.items():
        tiny.write_directory(tmp_path / name, outputs=outputs)
        tiny.write_json(tmp_path / name / "modules.json", modules)
    with pytest.raises(EncoderError, match="layer after its pooling"):
        encoder(tmp_path / "without").embed(TEXTS)
    assert encoder(tmp_path / "with").embed(TEXTS).shape == (3, tiny.DIMENSION)


def test_a_sentence_output_wins_over_pooling(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path, outputs=("token_embeddings", "sentence_embedding"))
    tiny.write_json(tmp_path / "1_Pooling" / "config.json", {"pooling_mode_cls_token": True})
    np.testing.assert_allclose(encoder(tmp_path).embed(TEXTS[:1]), expected(TEXTS[:1]), atol=1e-6)


def test_token_states_win_over_a_nameless_output_of_rank_2(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path, outputs=("pooler_output", "hidden"))
    tiny.write_json(tmp_path / "1_Pooling" / "config.json", {"pooling_mode_cls_token": True})
    cls = tiny.table()[2]
    np.testing.assert_allclose(encoder(tmp_path).embed(["dog"])[0], cls / np.linalg.norm(cls), atol=1e-6)


def test_a_model_of_sentence_vectors_alone_has_no_token_states(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path, outputs=("pooler_output",))
    only_vectors = encoder(tmp_path)
    np.testing.assert_allclose(only_vectors.embed(TEXTS[:1]), expected(TEXTS[:1]), atol=1e-6)
    with pytest.raises(EncoderError, match="no states of tokens"):
        only_vectors.token_states(TEXTS)


@pytest.mark.parametrize("outputs", [("last_hidden_state",), ("sentence_embedding",)])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(tmp_path: Path, outputs: tuple[str], bad: float) -> None:
    weights = tiny.table()
    weights[tiny.ids("dog")] = bad
    tiny.write_directory(tmp_path, weights=weights, outputs=outputs)
    broken = encoder(tmp_path)
    with pytest.raises(EncoderError, match="NaN or infinite numbers, first in row 1 of 3"):
        broken.embed(TEXTS)
    assert np.isfinite(broken.embed(TEXTS[:1])).all()


def test_nan_in_the_states_of_padding_does_no_harm(tmp_path: Path) -> None:
    weights = tiny.table()
    weights[0] = np.nan
    tiny.write_directory(tmp_path, weights=weights)
    np.testing.assert_allclose(encoder(tmp_path).embed(TEXTS), expected(), atol=1e-6)


def test_the_width_is_what_the_settings_say(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path)
    tiny.write_json(tmp_path / "config.json", {"hidden_size": 5})
    liar = encoder(tmp_path)
    assert liar.identity.dimension == 5
    with pytest.raises(EncoderError, match="should give 5 numbers a text, not 4"):
        liar.embed(TEXTS)


@pytest.mark.parametrize("open_width", [False, True])
def test_without_settings_the_width_is_measured(tmp_path: Path, open_width: bool) -> None:
    tiny.write_directory(tmp_path, open_width=open_width)
    assert encoder(tmp_path).identity.dimension == tiny.DIMENSION


@pytest.mark.parametrize(
    ("files", "window"),
    [
        ({}, MAX_WINDOW),
        ({"tokenizer_config.json": {"model_max_length": 128}}, 128),
        ({"tokenizer_config.json": {"model_max_length": 1e30}}, MAX_WINDOW),
        ({"sentence_bert_config.json": {"max_seq_length": 64}}, 64),
        ({"sentence_bert_config.json": {"max_seq_length": None}}, MAX_WINDOW),
        ({"sentence_bert_config.json": {"max_seq_length": 9}, "config.json": {"hidden_size": 4}}, 9),
        ({"config.json": {"max_position_embeddings": 40}}, 40),
        (
            {
                "sentence_bert_config.json": {"max_seq_length": 64},
                "tokenizer_config.json": {"model_max_length": 32},
            },
            64,
        ),
    ],
)
def test_the_window_is_the_one_the_model_was_tuned_for(
    tmp_path: Path, files: dict[str, object], window: int
) -> None:
    tiny.write_directory(tmp_path)
    for name, content in files.items():
        tiny.write_json(tmp_path / name, content)
    assert in_directory(tmp_path).window == window


def test_a_window_without_room_for_text_is_refused(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path)
    tiny.write_json(tmp_path / "sentence_bert_config.json", {"max_seq_length": 2})
    with pytest.raises(EncoderError, match="window of 2 tokens"):
        encoder(tmp_path).embed(TEXTS)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_text_beyond_the_window_is_the_weighted_mean_of_its_chunks(tmp_path: Path, pooling: str) -> None:
    tiny.write_directory(tmp_path)
    tiny.write_json(tmp_path / "sentence_bert_config.json", {"max_seq_length": 5})
    if pooling == "cls":
        tiny.write_json(tmp_path / "1_Pooling" / "config.json", {"pooling_mode_cls_token": True})
    text = tiny.ids("the cat sat on a mat and dog")
    weights = tiny.table()
    chunks = [weights[[2, *text[i : i + 3], 3]] for i in range(0, len(text), 3)]
    vectors = [chunk[0] if pooling == "cls" else chunk.mean(axis=0) for chunk in chunks]
    total = sum(len(chunk) * vector for chunk, vector in zip(chunks, vectors, strict=True))
    found = encoder(tmp_path).embed(["the cat sat on a mat and dog"])[0]
    np.testing.assert_allclose(found, total / np.linalg.norm(total), atol=1e-6)


def test_a_message_of_megabytes_is_embedded_by_a_sample(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path)
    sentence = "the cat sat on a mat and dog ran far "
    found = encoder(tmp_path).embed([sentence * 150_000, sentence])
    assert found[0] @ found[1] > 0.9
    assert len(encoder(tmp_path).token_states([sentence * 150_000]).ids) == MAX_CHUNKS * (MAX_WINDOW - 2)


def test_token_states_are_unit_rows_without_the_frame(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path)
    tiny.write_json(tmp_path / "sentence_bert_config.json", {"max_seq_length": 5})
    texts = [*TEXTS, "", "dog dog"]
    vectors, states = encoder(tmp_path).embed_with_states(texts)
    wanted = [i for text in texts for i in tiny.ids(text)]
    rows = tiny.table()[wanted]
    assert states.ids.dtype == np.int32
    assert states.offsets.dtype == np.int64
    assert states.ids.tolist() == wanted
    assert np.diff(states.offsets).tolist() == [6, 1, 9, 0, 2]
    np.testing.assert_allclose(states.vectors, rows / np.linalg.norm(rows, axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_array_equal(vectors, encoder(tmp_path).embed(texts))


def test_max_tokens_keeps_the_first_of_each_text(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path)
    states = encoder(tmp_path).token_states([*TEXTS, ""], max_tokens=2)
    assert states.ids.tolist() == tiny.ids("the cat dog a dog")
    assert states.offsets.tolist() == [0, 2, 3, 5, 5]
    assert states.vectors.shape == (5, tiny.DIMENSION)


def test_nothing_at_all(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path)
    empty = encoder(tmp_path)
    assert empty.embed([]).shape == (0, tiny.DIMENSION)
    assert empty.embed([]).dtype == np.float32
    states = empty.token_states([])
    assert (states.vectors.shape, states.offsets.tolist(), len(states.ids)) == ((0, tiny.DIMENSION), [0], 0)
    assert empty.count_tokens([]).shape == (0,)


@pytest.mark.parametrize("texts", ["dog", ["dog", None], [b"dog"]])
def test_what_is_not_a_list_of_texts_is_refused(tmp_path: Path, texts: object) -> None:
    tiny.write_directory(tmp_path)
    with pytest.raises(InvalidInput, match=r"list of texts|is \w+, not str"):
        encoder(tmp_path).embed(texts)  # type: ignore[arg-type]


def test_fewer_than_one_thread_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="at least 1 thread"):
        OnnxEncoder(in_directory(tiny.write_directory(tmp_path)), threads=0)


def test_the_identity_is_the_directory_s_name_and_a_digest(tmp_path: Path) -> None:
    one = encoder(tiny.write_directory(tmp_path / "one")).identity
    same = encoder(tiny.write_directory(tmp_path / "copy" / "one")).identity
    assert one == same
    assert one.name == "one"
    assert len(one.weights) == 64


def test_all_that_decides_vectors_is_in_the_digest(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path)
    digests = [encoder(tmp_path).identity.weights]
    tiny.write_json(tmp_path / "1_Pooling" / "config.json", {"pooling_mode_cls_token": True})
    digests.append(encoder(tmp_path).identity.weights)
    tiny.write_json(tmp_path / "sentence_bert_config.json", {"max_seq_length": 5})
    digests.append(encoder(tmp_path).identity.weights)
    tiny.write_tokenizer(tmp_path / "tokenizer.json", kind="Unigram")
    digests.append(encoder(tmp_path).identity.weights)
    tiny.write_model(tmp_path / "model.onnx", weights=tiny.table() + 1)
    digests.append(encoder(tmp_path).identity.weights)
    assert len(set(digests)) == len(digests)


def test_external_weights_are_in_the_digest(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path, external=True)
    first = encoder(tmp_path)
    np.testing.assert_allclose(first.embed(TEXTS), expected(), atol=1e-6)
    data = tmp_path / "model.onnx_data"
    changed = bytearray(data.read_bytes())
    changed[0] ^= 1
    data.write_bytes(changed)
    os.utime(data, ns=(0, 0))
    assert encoder(tmp_path).identity.weights != first.identity.weights


def test_a_model_replaced_on_disk_is_loaded_anew(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path)
    before = encoder(tmp_path).embed(TEXTS)
    tiny.write_model(tmp_path / "model.onnx", weights=tiny.table()[::-1].copy())
    os.utime(tmp_path / "model.onnx", ns=(0, 0))
    assert not np.allclose(encoder(tmp_path).embed(TEXTS), before)
