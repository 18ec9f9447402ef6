"""The quality command, on a data set small enough to work out by hand, and on a part of the real one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.quality import locomo, locomo_data
from bench.quality.baselines import BASELINES
from bench.quality.finding import CUTS, VIEWS, Search, figures_of
from bench.quality.structure import structure
from bench.quality.vector_cache import CachedEncoder
from hmem_core.embedding.registry import resolve
from hmem_core.options import SegmentOptions
from hmem_core.records import EncoderIdentity, Evidence
from hmem_core.retrieval.tokens import estimate_tokens
from tests.bench.locomo import FILLERS, LOCOMO
from tests.embedding import tiny
from tests.helpers import HashingStates, hashing_encoder


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    tiny.write_directory(tmp_path / "model")
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO))

    def run(*arguments: str) -> tuple[dict[str, Any], str]:
        out = tmp_path / "out.json"
        places = [
            "--encoder",
            str(tmp_path / "model"),
            "--cache",
            str(tmp_path / "cache"),
            "--json",
            str(out),
        ]
        locomo.main([str(tmp_path / "locomo.json"), *places, *arguments])
        return json.loads(out.read_text()), capsys.readouterr().out

    return run


def row(report: dict[str, Any], view: str, split: str = "all", category: object = "all") -> dict[str, Any]:
    (found,) = [
        row
        for row in report["rows"]
        if (row["view"], row["split"], row["category"]) == (view, split, category)
    ]
    return found


def test_figures_are_those_worked_out_by_hand(run: Any) -> None:
    report, _ = run("--views", "lexical")
    lines = [f"[{turn}] 13:56 Ann: {' '.join(['boat', *FILLERS[:turn]])}" for turn in range(7)]
    tokens = estimate_tokens("\n".join(["Mon 2023-05-08, session_1", *lines]))
    precision = pytest.approx(1 / 7, abs=1e-4)
    assert row(report, "lexical", "dev") == {
        "view": "lexical",
        "split": "dev",
        "category": "all",
        "questions": 1,
        "recall@5": 0,
        "recall@8": 0.5,
        "recall@10": 0.5,
        "recall@20": 0.5,
        "precision@8": precision,
        "turns": 7,
        "tokens": tokens,
    }
    assert row(report, "lexical", "dev", 4) == row(report, "lexical", "dev") | {"category": 4}
    assert row(report, "lexical", "test")["recall@5"] == 1
    both = row(report, "lexical")
    assert (both["questions"], both["recall@5"], both["recall@8"]) == (2, 0.5, 0.75)
    # A question without evidence is not asked, so its category has no row.
    assert {row["category"] for row in report["rows"]} == {"all", 1, 4}
    assert {"rows", "tree", "encoder", "seconds"} == set(report)
    assert report["encoder"] == "model"


def test_every_view_is_measured_within_its_cuts(run: Any) -> None:
    report, printed = run()
    for view in VIEWS:
        figures = row(report, view)
        recalls = [figures[f"recall@{cut}"] for cut in CUTS]
        assert 0 < figures["turns"] <= 8
        assert all(0 <= recall <= 1 for recall in recalls)
        assert view in printed
    # There are eight turns, and these views leave none out.
    assert row(report, "dense")["recall@8"] == row(report, "fused")["recall@8"] == 1
    assert "fused: 100.0% of the evidence in 8.00 turns" in printed
    assert [tree["turns"] for tree in report["tree"]] == [8] * 6 + [48]


def test_baselines_stand_beside_views(run: Any) -> None:
    report, printed = run("--views", "dense", "--baselines", "all")
    assert {row["view"] for row in report["rows"]} == {"dense", *BASELINES}
    same = {"view": "plain-dense"}
    assert row(report, "plain-dense") == row(report, "dense") | same
    assert row(report, "bm25")["recall@8"] == 0.75
    full = row(report, "full-context")
    assert (full["recall@5"], full["recall@20"], full["turns"]) == (1, 1, 8)
    assert full["tokens"] > row(report, "bm25")["tokens"]
    assert "dense: 100.0% of the evidence" in printed  # the last word is about a view
    with pytest.raises(SystemExit, match="2"):
        run("--baselines", "guessing")


def test_a_view_that_selects_is_asked_anew_at_each_cut(tmp_path: Path) -> None:
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO))
    (one, *_) = locomo_data.load(tmp_path / "locomo.json")
    asked: list[int] = []

    def find(query: str, k: int) -> list[Evidence]:
        asked.append(k)
        return []

    for anew, cuts in ((True, [5, 8, 10, 20]), (False, [20])):
        assert figures_of(Search(find, anew), {}, one.questions[0])["recall@5"] == 0
        assert asked == cuts
        asked.clear()


def test_a_half_is_measured_alone(run: Any) -> None:
    whole, _ = run("--views", "dense,lexical")
    half, printed = run("--views", "lexical", "--split", "test")
    assert half["rows"] == [
        row for row in whole["rows"] if (row["view"], row["split"]) == ("lexical", "test")
    ]
    assert [tree["conversation"] for tree in half["tree"]] == ["conv-6"]
    assert "dev" not in printed


@pytest.mark.parametrize(
    ("content", "arguments", "complaint"),
    [
        (None, [], "cannot be read"),
        ("{", [], "not in LoCoMo's format"),
        ("[{}]", [], "not in LoCoMo's format"),
        ("[]", ["--views", "dense,sideways"], "'sideways' is not one of dense, lexical"),
        ("[]", ["--json", "nowhere/out.json"], "there is no directory nowhere"),
    ],
)
def test_what_cannot_be_measured_is_said(
    content: str | None, arguments: list[str], complaint: str, tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "locomo.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SystemExit) as stopped:
        locomo.main([str(path), "--cache", str(tmp_path / "cache"), *arguments])
    assert stopped.value.code == 2
    assert complaint in capsys.readouterr().err


def test_structure_by_hand() -> None:
    # The second turn makes a root; the third is compared with it in vain and makes another.
    found = structure(np.array([[1, 0], [1, 0], [0, 1]], np.float32), SegmentOptions(tau=0.5))
    assert (found.turns, found.nodes, found.height) == (3, 5, 2)
    assert found.children == 2
    assert found.depth == pytest.approx(5 / 3)
    assert found.compared == pytest.approx(1 / 3)
    assert found.logarithm == math.log2(3)
    nothing = structure(np.zeros((0, 2), np.float32), SegmentOptions())
    assert (nothing.turns, nothing.nodes, nothing.height, nothing.compared) == (0, 0, 0, 0)


class Counting:
    """Remembers what it was asked."""

    def __init__(self, name: str = "hashed") -> None:
        self._encoder = hashing_encoder(name=name)
        self.asked: list[str] = []

    @property
    def identity(self) -> EncoderIdentity:
        return self._encoder.identity

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        return self._encoder.embed(texts)


def test_vectors_are_remembered_by_encoder_and_text(tmp_path: Path) -> None:
    first, second, other = Counting(), Counting(), Counting("other")
    texts = ["a boat", "rain", "a boat", "船 \ud800"]
    with CachedEncoder(first, tmp_path / "cache") as cached:
        vectors = cached.embed(texts)
        assert first.asked == ["a boat", "rain", "船 \ud800"]
        assert np.array_equal(vectors, hashing_encoder().embed(texts))
        assert cached.embed([]).shape == (0, first.identity.dimension)
    with CachedEncoder(second, tmp_path / "cache") as cached:
        assert np.array_equal(cached.embed(["rain", "snow", "a boat"])[::2], vectors[1::-1])
        assert second.asked == ["snow"]
    with CachedEncoder(other, tmp_path / "cache") as cached:
        cached.embed(["rain"])
        assert other.asked == ["rain"]


def test_states_are_remembered_too(tmp_path: Path) -> None:
    first, second = HashingStates(), HashingStates()
    texts = ["a boat", "rain", "a boat", ""]
    expected = HashingStates().embed_states(texts)
    for encoder, runs in ((first, ["a boat", "rain", ""]), (second, [])):
        with CachedEncoder(encoder, tmp_path / "cache") as cached:
            found = cached.embed_states(texts)
            assert [text for text, _ in encoder.runs] == runs
            assert np.array_equal(found.vectors, expected.vectors)
            assert found.states is not None
            assert expected.states is not None
            for one, other in zip(found.states, expected.states, strict=True):
                assert one.tokens == other.tokens
                np.testing.assert_allclose(one.vectors.ravel(), other.vectors.ravel(), atol=1e-3)
            assert cached.embed_states([]).vectors.shape == (0, encoder.identity.dimension)
            assert np.array_equal(cached.embed(texts), expected.vectors)
            assert [text for text, _ in encoder.runs] == runs  # nothing is embedded a second time
    with CachedEncoder(hashing_encoder(), tmp_path / "cache") as cached:
        assert cached.embed_states(["rain"]).states is None


@pytest.mark.data
def test_the_tree_words_and_neighbours_find_what_embeddings_alone_do_not(
    data_dir: Path, tmp_path: Path
) -> None:
    conversations = locomo_data.load(data_dir / "locomo" / "locomo10.json")[:1]
    with CachedEncoder(resolve(None), tmp_path) as encoder:
        report = locomo.measure(conversations, encoder, ["dense", "fused"])
    dense, fused = row(report, "dense"), row(report, "fused")
    assert fused["recall@8"] > dense["recall@8"] + 0.2
    assert fused["recall@8"] > 0.7
    assert fused["turns"] == 8
    (tree,) = report["tree"]
    assert tree["compared"] < tree["log2 turns"]
