"""The command for segmentations, on dialogues whose topics words tell apart."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

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


def test_words_that_change_are_a_boundary() -> None:
    dialogue = Dialogue((*BOATS, *BREAD), (3, 3), tuning=False)
    strengths = METHODS["TextTiling"](dialogue, np.zeros((6, 2), np.float32))
    assert int(np.argmax(strengths)) == 2
    assert dialogue.gold.tolist() == [False, False, True, False, False]
    vectors = np.array([[1, 0]] * 3 + [[0, 1]] * 3, np.float32)
    assert int(np.argmax(METHODS["gap"](dialogue, vectors))) == 2
    assert int(np.argmax(METHODS["tree"](dialogue, vectors))) == 2


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
    assert rows.keys() == {"tree", "gap", "TextTiling", "no cut"}
    assert all(row["dialogues"] == 1 and row["data"] == "some" for row in rows.values())
    assert rows["TextTiling"]["Pk"] < rows["no cut"]["Pk"] == 0.5
    assert rows["no cut"]["F1"] == 0
    assert "| some | TextTiling" in capsys.readouterr().out
    (tmp_path / "other.json").write_text('[{"a": 1}]')
    with pytest.raises(SystemExit, match="2"):
        segmentation.main([str(tmp_path / "other.json"), *common])
