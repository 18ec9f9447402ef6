"""The command for RealMem, on a person small enough to work out by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from bench.quality import realmem
from tests.embedding import tiny


def session(name: str, day: int, *turns: dict[str, Any]) -> dict[str, Any]:
    return {"session_uuid": name, "current_time": f"2025-12-{day:02} (Monday)", "dialogue_turns": list(turns)}


def said(speaker: str, content: str, *sessions: str) -> dict[str, Any]:
    return {"speaker": speaker, "content": content, "memory_session_uuids": list(sessions)}


PERSON = {
    "dialogues": [
        session("a", 1, said("User", "The boat is red."), said("Assistant", "A red boat, noted.")),
        session("b", 2, said("User", "It rains."), said("Assistant", "Take a coat.")),
        session("c", 3, said("User", "Which colour has the boat?"), said("Assistant", "Red.", "a")),
        session("d", 4, said("User", "The boat is blue now."), said("Assistant", "Blue, then.")),
    ]
}


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    tiny.write_directory(tmp_path / "model")
    paths = [tmp_path / f"{name}_dialogues.json" for name in ("Ann", "Bo", "Cy")]
    for path in paths:
        path.write_text(json.dumps(PERSON))
    return paths


def test_only_what_was_there_before_the_query_is_found(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "figures.json"
    common = ["--encoder", str(tmp_path / "model"), "--cache", str(tmp_path / "cache"), "--json", str(out)]
    realmem.main([*map(str, files), "--views", "lexical,fused", *common])
    rows = json.loads(out.read_text())["rows"]
    whole = [row for row in rows if row["split"] == "all"]
    assert [row["view"] for row in whole] == ["lexical", "fused"]
    # Of the sessions before the query, one speaks of the boat; the blue one came after it.
    assert all(row["questions"] == 3 and row["session_recall@5"] == row["ndcg@10"] == 1 for row in whole)
    assert {row["persona"] for row in rows if row["split"] == "dev"} == {"all", "Ann", "Bo"}
    assert {row["persona"] for row in rows if row["split"] == "test"} == {"all", "Cy"}
    assert "| lexical |   all |" in capsys.readouterr().out
    realmem.main([*map(str, files), "--views", "lexical", "--split", "test", *common])
    assert {row["split"] for row in json.loads(out.read_text())["rows"]} == {"test"}


def test_figures() -> None:
    found = realmem.figures_of([7, 1, 2, 3, 4, 5, 6], [1, 5, 9])
    assert found["session_recall@5"] == pytest.approx(1 / 3)
    assert found["session_recall@10"] == pytest.approx(2 / 3)
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert found["ndcg@10"] == pytest.approx((1 / math.log2(3) + 1 / math.log2(7)) / ideal)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(SystemExit, match="2"):
        realmem.main([str(tmp_path / "other.json")])
