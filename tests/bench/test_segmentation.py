"""The command for segmentations, on dialogues whose topics words tell apart."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.metrics.segmentation import pk, windowdiff

from bench.quality import segmentation
from bench.quality.segmentation import METHODS, Dialogue, figures_of
from tests.embedding import tiny

BOATS = ["the red boat", "a boat with sails", "sails of the boat"]
BREAD = ["bake the bread", "bread with rye flour", "rye bread"]


def test_figures() -> None:
    gold = np.array([0, 0, 1, 0, 0, 1, 0, 0], np.bool_)
    assert figures_of(gold, gold) == {"Pk": 0, "WindowDiff": 0, "F1": 1}
    one = np.array([0, 0, 1, 0, 0, 0, 0, 0], np.bool_)
    # The window is 9 / 3 / 2 = 2 gaps: of 7 windows, the two over the missed boundary differ.
    assert figures_of(gold, one)["Pk"] == figures_of(gold, one)["WindowDiff"] == pytest.approx(2 / 7)
    assert figures_of(gold, one)["F1"] == pytest.approx(2 / 3)
    none = np.zeros(8, np.bool_)
    assert figures_of(none, none)["F1"] == 1
    assert figures_of(gold, none)["F1"] == 0


@settings(max_examples=100)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_figures_are_those_of_nltk(gaps: list[tuple[bool, bool]]) -> None:
    gold, cut = (np.array(row, np.bool_) for row in zip(*gaps, strict=True))
    window = min(max(round((gold.size + 1) / (int(gold.sum()) + 1) / 2), 1), gold.size)
    texts = ["".join("01"[int(one)] for one in row) for row in (gold, cut)]
    found = figures_of(gold, cut)
    assert found["Pk"] == pytest.approx(pk(*texts, k=window))
    assert found["WindowDiff"] == pytest.approx(windowdiff(*texts, k=window))


def test_words_that_change_are_a_boundary() -> None:
    dialogue = Dialogue((*BOATS, *BREAD), (3, 3), tuning=False)
    vectors = np.array([[1, 0]] * 3 + [[0, 1]] * 3, np.float32)
    assert dialogue.gold.tolist() == [False, False, True, False, False]
    for name, method in METHODS.items():
        for variant, strengths in method(dialogue, vectors).items():
            if (name, variant[:1]) != ("TextTiling", "1"):  # one turn is too few for words
                assert int(np.argmax(strengths)) == 2, (name, variant)


def test_a_valley_is_one_boundary_however_wide_its_slopes() -> None:
    scores = np.array([0.5, 0.9, 0.6, 0.1, 0.4, 0.8, 0.7])
    assert segmentation._depths(scores) == pytest.approx([0.4, 0, 0, 1.5, 0, 0, 0.1])


def test_segments_that_meet() -> None:
    # Turns 0 and 1 are one segment, 2 and 3 another: across the second gap these two are compared whole.
    vectors = np.array([[1, 0, 0], [0.8, 0.6, 0], [0, 0, 1], [0, 0.6, 0.8]], np.float32)
    found = segmentation._meeting(vectors)
    sides = vectors[:2].sum(0), vectors[2:].sum(0)
    whole = sides[0] @ sides[1] / np.linalg.norm(sides[0]) / np.linalg.norm(sides[1])
    assert found == pytest.approx([0.8, whole, 0.8])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny.write_directory(tmp_path / "model")
    records = [
        {"dial_id": number, "utterances": turns, "segments": [3, 3], "set": kind}
        for number, (turns, kind) in enumerate([([*BOATS, *BREAD], "dev"), ([*BREAD, *BOATS], "test")])
    ]
    records.append({"dial_id": 9, "utterances": ["alone"], "segments": [1], "set": "test"})
    (tmp_path / "some.json").write_text(json.dumps(records))
    common = ["--encoder", str(tmp_path / "model"), "--cache", str(tmp_path / "cache")]
    segmentation.main([str(tmp_path / "some.json"), *common, "--json", str(tmp_path / "out.json")])
    rows = {row["method"]: row for row in json.loads((tmp_path / "out.json").read_text())["rows"]}
    assert rows.keys() == {*METHODS, "no cut"}
    assert all(row["dialogues"] == 1 and row["data"] == "some" for row in rows.values())
    assert rows["TextTiling"]["Pk"] < rows["no cut"]["Pk"] == 0.5
    assert rows["no cut"]["F1"] == 0
    printed = capsys.readouterr().out
    assert "| some | " in printed
    assert " TextTiling | " in printed
    (tmp_path / "other.json").write_text('[{"a": 1}]')
    with pytest.raises(SystemExit, match="2"):
        segmentation.main([str(tmp_path / "other.json"), *common])
