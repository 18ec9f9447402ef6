"""A transformer that is nothing but its embedding table, written as a real ONNX model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*SPECIAL, "the", "cat", "sat", "on", "a", "mat", "and", "dog", "ran", "far"]
DIMENSION = 4
ALL_INPUTS = ("input_ids", "attention_mask", "token_type_ids")

FloatArray = npt.NDArray[np.float32]


def table(dimension: int = DIMENSION) -> FloatArray:
    """The state of each token: shape (words, dimension)."""
    return np.random.default_rng(7).normal(size=(len(WORDS), dimension)).astype(np.float32)


def write_model(
    path: Path,
    *,
    inputs: Sequence[str] = ALL_INPUTS,
    outputs: Sequence[str] = ("last_hidden_state",),
    integer: int = TensorProto.INT64,
    weights: FloatArray | None = None,
    open_width: bool = False,
    external: bool = False,
) -> None:
    """A model whose token states are rows of `weights`.

    An output named in `RANK_2` has the mean over all tokens (there is no mask), any other one the states.
    """
    weights = table() if weights is None else weights
    width = "width" if open_width else weights.shape[1]
    nodes = [helper.make_node("Gather", ["weights", "input_ids"], ["states"])]
    values = []
    for name in outputs:
        if name in RANK_2:
            nodes.append(helper.make_node("ReduceMean", ["states"], [name], axes=[1], keepdims=0))
            values.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width]))
        else:
            nodes.append(helper.make_node("Identity", ["states"], [name]))
            values.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "tokens", width]))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, integer, ["batch", "tokens"]) for name in inputs],
        values,
        [numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    if external:
        onnx.save_model(
            model, path, save_as_external_data=True, location=f"{path.name}_data", size_threshold=0
        )
    else:
        onnx.save_model(model, path)


RANK_2 = {"sentence_embedding", "pooler_output"}


def write_cross_encoder(
    directory: Path,
    *,
    inputs: Sequence[str] = ALL_INPUTS,
    output: str = "logits",
    classes: int = 1,
    factor: float = 1.0,
    integer: int = TensorProto.INT64,
    positions: int | None = None,
) -> Path:
    """A cross-encoder that scores `factor` times the number of pairs of equal words across query and text.

    Tokens are told apart by their types, or without these by where the first [SEP] is. Several classes: that
    score is of the last, and all others have 1.
    """
    make = helper.make_node
    one_hot = np.eye(len(WORDS), dtype=np.float32)
    one_hot[: len(SPECIAL)] = 0  # special tokens equal nothing
    separators = np.zeros((len(WORDS), 1), np.float32)
    separators[WORDS.index("[SEP]")] = 1
    constants = {
        "one_hot": one_hot,
        "separators": separators,
        "one": np.ones(1, np.float32),
        "axis": np.array([1], np.int64),
        "last": np.array([2], np.int64),
        "place": np.array(1, np.int64),
        "factor": np.array([factor], np.float32),
        "none": np.array([0], np.float32),
    }
    nodes = [make("Gather", ["one_hot", "input_ids"], ["words"])]
    if "token_type_ids" in inputs:
        nodes += [
            make("Cast", ["token_type_ids"], ["flat"], to=TensorProto.FLOAT),
            make("Unsqueeze", ["flat", "last"], ["second"]),
        ]
    else:
        nodes += [
            make("Gather", ["separators", "input_ids"], ["ends"]),
            make("CumSum", ["ends", "place"], ["ended"]),
            make("Min", ["ended", "one"], ["second"]),
        ]
    if "attention_mask" in inputs:
        nodes += [
            make("Cast", ["attention_mask"], ["kept"], to=TensorProto.FLOAT),
            make("Unsqueeze", ["kept", "last"], ["mask"]),
            make("Mul", ["words", "mask"], ["real"]),
        ]
    else:
        nodes.append(make("Identity", ["words"], ["real"]))
    nodes += [
        make("Sub", ["one", "second"], ["first"]),
        make("Mul", ["real", "first"], ["of_query"]),
        make("Mul", ["real", "second"], ["of_text"]),
        make("ReduceSum", ["of_query", "axis"], ["query"], keepdims=0),
        make("ReduceSum", ["of_text", "axis"], ["text"], keepdims=0),
        make("Mul", ["query", "text"], ["shared"]),
        make("ReduceSum", ["shared", "axis"], ["count"], keepdims=1),
        make("Mul", ["count", "factor"], ["score"]),
    ]
    if classes == 1:
        nodes.append(make("Identity", ["score"], [output]))
    else:
        nodes += [
            make("Mul", ["score", "none"], ["nothing"]),
            make("Add", ["nothing", "one"], ["other"]),
            make("Concat", [*["other"] * (classes - 1), "score"], [output], axis=1),
        ]
    graph = helper.make_graph(
        nodes,
        "cross",
        [helper.make_tensor_value_info(name, integer, ["batch", "tokens"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", classes])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    directory.mkdir(parents=True, exist_ok=True)
    onnx.save_model(model, directory / "model.onnx")
    write_tokenizer(directory / "tokenizer.json")
    if positions is not None:
        write_json(directory / "config.json", {"max_position_embeddings": positions})
    return directory


def write_vocabulary(path: Path) -> None:
    path.write_text("\n".join(WORDS) + "\n")


def write_tokenizer(path: Path, *, kind: str = "WordPiece") -> None:
    """A ``tokenizer.json`` for `WORDS`, with truncation and padding switched on as exporters leave it."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    if kind == "Unigram":
        # Unknown characters first, then every word and every character of one as a piece of its own.
        pieces = [(word, 0.0 if word.startswith("[") else -1.0) for word in WORDS]
        tokenizer = Tokenizer(models.Unigram(pieces, unk_id=1))
    else:
        tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.enable_truncation(6)
    tokenizer.enable_padding(length=6)
    tokenizer.save(str(path))


def write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def write_directory(directory: Path, **options: object) -> Path:
    """A directory that `in_directory` accepts: model and ``tokenizer.json``."""
    write_model(directory / "model.onnx", **options)  # type: ignore[arg-type]
    write_tokenizer(directory / "tokenizer.json")
    return directory


def ids(words: str) -> list[int]:
    return [WORDS.index(word) if word in WORDS else 1 for word in words.split()]


def framed_mean(words: str, weights: FloatArray | None = None) -> FloatArray:
    """The unit vector of a text that fits the window, done the obvious way."""
    rows = (table() if weights is None else weights)[[2, *ids(words), 3]]
    mean: FloatArray = rows.mean(axis=0)
    return mean / np.linalg.norm(mean)
