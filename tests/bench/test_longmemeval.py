"""LongMemEval's reader and command, on hand-written data of its schema."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench.quality import longmemeval, longmemeval_data
from tests.embedding import tiny


def said(role: str, content: str, **marks: bool) -> dict[str, Any]:
    return {"role": role, "content": content, **marks}


INSTANCE: dict[str, Any] = {
    "question_id": "q1",
    "question_type": "single-session-user",
    "question": "What colour has my boat?",
    "answer": "Red",
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_dates": ["2023/05/21 (Sun) 09:27", "2023/05/20 (Sat) 02:21"],
    "haystack_session_ids": ["answer_1", "other"],
    "haystack_sessions": [
        [said("user", "My boat is red.", has_answer=True), said("assistant", "Nice.", has_answer=False)],
        [said("user", "It rains."), said("assistant", "Take a coat."), said("user", " ")],
    ],
    "answer_session_ids": ["answer_1"],
}


def write(path: Path) -> Path:
    unanswered = INSTANCE | {"question_id": "q2_abs"}
    sessions_alone = INSTANCE | {
        "question_id": "q3",
        "question_type": "multi-session",
        "haystack_sessions": [[said("user", "My boat is red.")], [said("user", "It rains.")]],
    }
    path.write_text(json.dumps([INSTANCE, unanswered, sessions_alone]))
    return path


def test_instances(tmp_path: Path) -> None:
    first, second, third = longmemeval_data.load(write(tmp_path / "data.json"))
    assert [session.name for session in first.sessions] == ["other", "answer_1"]  # by time
    assert first.sessions[1].at == datetime(2023, 5, 21, 9, 27, tzinfo=UTC)
    assert first.at == datetime(2023, 5, 30, 23, 40, tzinfo=UTC)
    assert [turn.key for turn in first.sessions[0].turns] == ["0:0", "0:1"]  # nothing was said in the third
    assert first.evidence == {"1 answer_1"}
    assert first.turns == {"1:0"}
    assert (second.evidence, second.turns) == (frozenset(), frozenset())
    assert (third.evidence, third.turns) == ({"1 answer_1"}, frozenset())


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny.write_directory(tmp_path / "model")
    path = write(tmp_path / "data.json")
    out = tmp_path / "out.json"
    common = ["--encoder", str(tmp_path / "model"), "--cache", str(tmp_path / "cache"), "--json", str(out)]
    longmemeval.main([str(path), "--views", "lexical", "--baselines", "bm25", *common])
    rows = {(row["view"], row["category"]): row for row in json.loads(out.read_text())["rows"]}
    for view in ("lexical", "bm25"):
        assert rows[view, "all"]["questions"] == 2
        assert rows[view, "all"]["session_recall@5"] == rows[view, "all"]["recall@8"] == 1
        assert "recall@8" not in rows[view, "multi-session"]  # no turn is marked
    assert "| lexical |" in capsys.readouterr().out
    (tmp_path / "other.json").write_text('[{"a": 1}]')
    with pytest.raises(SystemExit, match="2"):
        longmemeval.main([str(tmp_path / "other.json"), *common])


@pytest.mark.data
def test_the_real_instance_is_read(data_dir: Path) -> None:
    (instance,) = longmemeval_data.load(data_dir / "longmemeval" / "longmemeval_single.json")
    assert len(instance.sessions) == 53
    assert sum(len(session.turns) for session in instance.sessions) == 550
    assert len(instance.evidence) == 1
    assert instance.turns
    assert [session.at for session in instance.sessions] == sorted(one.at for one in instance.sessions)
