"""From text to ids: everything in a text is content, and every text has a defined outcome."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmem_core.embedding import tokens
from hmem_core.embedding.files import VOCABULARY
from hmem_core.embedding.tokens import MAX_CHUNKS, TokenizerFile, Vocabulary
from tests.embedding import tiny

BERT = Vocabulary(TokenizerFile(VOCABULARY))
CLS, SEP, MASK, PAD = 101, 102, 103, 0


def test_chunks_are_framed_and_padded_on_the_right() -> None:
    assert (BERT.prefix, BERT.suffix, BERT.frame_size) == ((CLS,), (SEP,), 2)
    ids = BERT.frame([BERT.ids("hello"), BERT.ids("hello world")])
    assert ids.tolist() == [[CLS, 7592, SEP, PAD], [CLS, 7592, 2088, SEP]]
    assert ids.dtype == np.int64


@pytest.mark.parametrize("token", ["[CLS]", "[SEP]", "[MASK]", "[PAD]", "<|endoftext|>", "</s>"])
def test_special_tokens_in_a_text_are_its_characters(token: str) -> None:
    ids = BERT.ids(f"a {token} b").tolist()
    assert not {CLS, SEP, MASK, PAD}.intersection(ids)
    assert len(ids) > 3


@pytest.mark.parametrize("kind", ["WordPiece", "Unigram"])
@pytest.mark.parametrize("token", ["[CLS]", "[SEP]", "[MASK]", "[PAD]"])
def test_special_tokens_of_a_tokenizer_file_too(tmp_path: Path, kind: str, token: str) -> None:
    path = tmp_path / "tokenizer.json"
    tiny.write_tokenizer(path, kind=kind)
    ids = Vocabulary(TokenizerFile(path)).ids(f"cat{token}dog").tolist()
    assert {tiny.WORDS.index("cat"), tiny.WORDS.index("dog")} <= set(ids)
    assert tiny.WORDS.index(token) not in ids


def test_truncation_and_padding_of_a_tokenizer_file_are_switched_off(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tiny.write_tokenizer(path)
    vocabulary = Vocabulary(TokenizerFile(path))
    assert vocabulary.frame_size == 2
    assert vocabulary.ids("dog " * 9).tolist() == [tiny.WORDS.index("dog")] * 9


@pytest.mark.parametrize(
    "text", ["", " ", "\n\t\r ", "\x00", "\x00\x01\x1b\x7f", "\ufeff", "\u200b\u200f", "\ud800"]
)
def test_texts_without_content_have_no_tokens(text: str) -> None:
    assert len(BERT.ids(text)) == 0
    assert BERT.chunks(text, 254) == []
    assert BERT.count(text) == 0


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("a\udc00\ud800", "a\ufffd\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("nul\x00byte", "nulbyte"),
        ("\ufeffhello", "hello"),
        ("Caf\u00e9", "cafe"),
        ("Cafe\u0301", "caf\u00e9"),
    ],
)
def test_broken_and_equivalent_characters(text: str, same_as: str) -> None:
    assert BERT.ids(text).tolist() == BERT.ids(same_as).tolist()


@pytest.mark.parametrize(
    "text",
    [
        "我们搬到了波尔图",
        "来週ポルトへ引っ越します",
        "เราย้ายไปปอร์โต",
        "Мы переехали",
        "انتقلنا إلى بورتو",
        "👩‍👩‍👧 🇵🇹",
        "हम पोर्टो चले गए",
    ],
)
def test_every_script_has_tokens(text: str) -> None:
    assert len(BERT.ids(text)) > 0


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_can_be_encoded(text: str) -> None:
    ids = BERT.ids(text)
    assert ids.dtype == np.int32
    assert not np.isin(ids, [CLS, SEP, MASK, PAD]).any()
    assert len(ids) == BERT.count(text)


@given(st.integers(0, 300), st.integers(3, 40))
def test_chunks_partition_a_text_until_there_are_too_many(words: int, size: int) -> None:
    ids = BERT.ids(" ".join(str(i % 10) for i in range(words)))
    chunks = BERT.chunks(" ".join(str(i % 10) for i in range(words)), size)
    whole = [ids[start : start + size].tolist() for start in range(0, len(ids), size)]
    if len(whole) <= MAX_CHUNKS:
        assert [chunk.tolist() for chunk in chunks] == whole
    else:
        assert len(chunks) == MAX_CHUNKS
        assert (chunks[0].tolist(), chunks[-1].tolist()) == (whole[0], whole[-1])


def test_of_a_huge_text_evenly_spread_slices_are_read() -> None:
    text = " ".join(f"n{i}" for i in range(1_000_000))
    chunks = BERT.chunks(text, 100)
    assert [len(chunk) for chunk in chunks] == [100] * MAX_CHUNKS
    assert chunks[0].tolist() == BERT.ids(text[:1000])[:100].tolist()
    assert len({chunk.tobytes() for chunk in chunks}) == MAX_CHUNKS


def test_blank_slices_of_a_huge_text_are_left_out() -> None:
    chunks = BERT.chunks("hello" + " " * 2_000_000, 100)
    assert [chunk.tolist() for chunk in chunks] == [BERT.ids("hello").tolist()]


def test_counting_in_slices_changes_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Counting, in slices\nthat end at white space. " * 50
    whole = len(BERT.ids(text))
    for size in (11, 64, 1000):
        monkeypatch.setattr(tokens, "_SLICE", size)
        assert BERT.count(text) == whole
    assert BERT.count("x" * 5000) >= 1
