"""The command that scores the reading of times, on phrases of our own and on the real file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.quality import time_phrases

NOW = "2024-05-15T10:30:00"


def day(first: str, last: str) -> list[str]:
    return [f"{first}T00:00:00", f"{last}T23:59:59.999999"]


PHRASES: dict[str, Any] = {
    "we rowed yesterday": day("2024-05-14", "2024-05-14"),
    "die Regatta letzte Woche": day("2024-05-06", "2024-05-12"),
    "a boat": None,
    "the lake": day("2024-05-01", "2024-05-02"),  # nothing says so
    "the boat of yesterday": None,  # wrong on purpose
    "last week": day("2024-05-05", "2024-05-11"),  # weeks from Sunday: six days of eight overlap
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "phrases.json"
    path.write_text(json.dumps({f"{NOW}\x1f{text}": gold for text, gold in PHRASES.items()}))
    return path


def test_figures_are_as_worked_out_by_hand(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_phrases, "half", lambda text: "dev")
    report = time_phrases.measure(time_phrases.load(file), ("dev",), ("ours",))
    rows = {row["language"]: row for row in report["rows"]}
    whole = rows["all"]
    assert whole["phrases"] == 6
    assert whole["exact"] == pytest.approx(3 / 6)
    assert whole["exact, dated"] == pytest.approx(2 / 4)
    assert whole["overlap"] == pytest.approx((1 + 1 + 0 + 6 / 8) / 4)
    assert whole["touching"] == pytest.approx(3 / 4)
    assert whole["null"] == pytest.approx(1 / 2)
    assert (rows["de"]["phrases"], rows["de"]["exact"]) == (1, 1.0)


def test_the_command_prints_tables(file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    time_phrases.main([str(file), "--json", str(tmp_path / "out.json")])
    shown = capsys.readouterr().out
    assert "| ours" in shown
    assert "dateparser alone" in shown
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert {row["split"] for row in rows} == {time_phrases.half(text) for text in PHRASES}


def test_halves_do_not_depend_on_the_moment() -> None:
    assert {time_phrases.half(f"phrase {number}") for number in range(50)} == {"dev", "test"}
    assert time_phrases.half("last week") == time_phrases.half("last week")


def test_a_file_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.json"
    path.write_text("[1, 2]")
    for one in (path, tmp_path / "absent.json"):
        with pytest.raises(SystemExit):
            time_phrases.main([str(one)])
    assert "not in the format" in capsys.readouterr().err


@pytest.mark.data
def test_most_phrases_are_understood(data_dir: Path) -> None:
    path = data_dir / "time_phrases" / "query_analyzer_golden.json"
    report = time_phrases.measure(time_phrases.load(path), ("dev",), ("ours",))
    assert report["rows"][0]["exact"] > 0.9
