"""The turns that stand for a segment."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import hmem_core as hmem
from hmem_core.columns import blocks
from hmem_core.segments import annotation
from hmem_core.segments.annotation import representatives, shortened
from tests.helpers import open_memory

ROWS = hnp.arrays(np.float32, st.tuples(st.integers(1, 30), st.just(4)), elements=st.integers(-3, 3))


def plainly(vectors: np.ndarray, lengths: np.ndarray, rows: list[int], count: int) -> list[int]:
    """MMR to the letter."""
    centroid = vectors[rows].sum(axis=0)
    centroid = centroid / max(np.linalg.norm(centroid), 1e-9)
    near = {i: vectors[i] @ centroid * lengths[i] / (lengths[i] + annotation.HALF) for i in rows}
    chosen: list[int] = []
    while len(chosen) < min(count, len(rows)):
        worth = {
            i: annotation.BALANCE * near[i]
            - (1 - annotation.BALANCE) * max((vectors[i] @ vectors[j] for j in chosen), default=0.0)
            for i in rows
            if i not in chosen
        }
        best = max(worth.values())
        chosen.append(min(i for i in worth if worth[i] >= best - 1e-5))
    return sorted(chosen)


@given(vectors=ROWS, count=st.integers(0, 5), data=st.data())
def test_it_is_maximal_marginal_relevance(vectors: np.ndarray, count: int, data: st.DataObject) -> None:
    # Equal but for rounding is a tie for the oracle, so numbers are set apart.
    vectors = vectors + np.linspace(0, 0.3, vectors.size, dtype=np.float32).reshape(vectors.shape) ** 2
    lengths = np.arange(1, len(vectors) + 1, dtype=np.float32)
    rows = sorted(data.draw(st.sets(st.integers(0, len(vectors) - 1), min_size=1)))
    found = representatives([vectors], lengths, np.array(rows), count)
    assert found.tolist() == plainly(vectors, lengths, rows, count)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    lengths, rows = np.full(50, 7, np.float32), np.arange(3, 47, 2)
    expected = representatives([vectors], lengths, rows, 4).tolist()
    assert blocks.BLOCK_ROWS > 50
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 16)
    cut = [vectors[i : i + 16] for i in range(0, 50, 16)]
    assert representatives(cut, lengths, rows, 4).tolist() == expected
    assert representatives(cut, lengths, rows[:2], 4).tolist() == rows[:2].tolist()


def test_the_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotation, "SAMPLE", 10)
    looked: list[int] = []
    gathered = annotation.rows_of

    def counted(vectors: list[np.ndarray], rows: np.ndarray) -> np.ndarray:
        looked.append(len(rows))
        return gathered(vectors, rows)

    monkeypatch.setattr(annotation, "rows_of", counted)
    vectors, lengths = np.ones((1000, 3), np.float32), np.ones(1000, np.float32)
    for size in (5, 10, 11, 19, 21, 1000):
        representatives([vectors], lengths, np.arange(size), 3)
    assert max(looked) <= 10
    assert min(looked[3:]) > 5


def test_vectors_of_nothing_and_turns_without_words_do_no_harm() -> None:
    zeros = np.zeros((6, 3), np.float32)
    assert representatives([zeros], np.zeros(6, np.float32), np.arange(6), 2).tolist() == [0, 1]
    assert representatives([zeros], np.zeros(6, np.float32), np.arange(6), 0).tolist() == []


def test_a_text_quotes_turns_in_the_order_of_their_times() -> None:
    with open_memory(segments=hmem.SegmentOptions(tau=-1.0)) as memory:
        memory.add("kettle later", speaker="Ann", at="2026-02-02")
        memory.add("kettle\n\tearlier", at="2026-01-01", role="assistant")
        (root,) = memory.segments.walk()
        assert root.text == "assistant: kettle earlier\nAnn: kettle later"
        assert memory.segments.text(root.id) == root.text
        assert memory.segments.text(root.id, turns=0) == ""
        assert memory.segments.text(root.id, turns=1) in root.text.splitlines()
        memory.forget(0)
        assert memory.segments.get(root.id).text == "assistant: kettle earlier"


def test_a_text_is_of_what_most_turns_are_about_and_does_not_repeat_itself() -> None:
    with open_memory(segments=hmem.SegmentOptions(tau=-1.0)) as memory:
        memory.add(
            ["ok", "the harbour ferry leaves at seven", "ferry tickets for the harbour ferry are cheap"]
        )
        memory.add(["the harbour ferry leaves at seven today", "yes", "a violin"])
        text = memory.segments.text(memory.segments.by_span(0, 5).id, 2)
        assert "ferry tickets" in text
        assert text.count("leaves at seven") <= 1


def test_shortened_ends_between_words() -> None:
    assert shortened("a  b\nc", 10) == "a b c"
    assert shortened("the kettle, whistles", 13) == "the kettle…"
    assert shortened("x" * 50, 10) == "x" * 9 + "…"
    assert shortened("one " + "x" * 50, 10) == "one xxxxx…"
    assert all(len(shortened("漢字 " * 30, n)) <= n for n in range(2, 60))
