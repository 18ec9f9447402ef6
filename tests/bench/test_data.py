"""The data-set readers and what measures on them, on hand-written data of the same schema."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.quality import encoders, locomo_data, realmem_data
from tests.embedding import tiny

LOCOMO: list[dict[str, Any]] = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bob",
            "session_10_date_time": "12:05 am on 1 January, 2024",
            "session_10": [{"speaker": "Ann", "dia_id": "D10:1", "text": "Happy new year!"}],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [
                {"speaker": "Bob", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a photo of a boat"},
                {"speaker": "Ann", "dia_id": "D2:2", "text": "Nice."},
            ],
            "session_11_date_time": "1:00 pm on 2 January, 2024",
        },
        "qa": [
            {"question": "What?", "answer": 2022, "evidence": ["D2:1; D10:1", "D2:1"], "category": 1},
            {
                "question": "Who?",
                "adversarial_answer": "Bob",
                "evidence": ["D", "D:2:2", "D9:9"],
                "category": 5,
            },
        ],
    }
]


def test_locomo(tmp_path: Path) -> None:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(LOCOMO))
    (conversation,) = locomo_data.load(path)
    assert (conversation.name, conversation.speakers) == ("conv-1", ("Ann", "Bob"))
    assert [turn.dia_id for turn in conversation.turns] == ["D2:1", "D2:2", "D10:1"]
    assert [turn.session for turn in conversation.turns] == [2, 2, 10]
    assert conversation.turns[0].at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert conversation.turns[2].at == datetime(2024, 1, 1, 0, 5, tzinfo=UTC)
    assert conversation.turns[0].index_text == "Bob: [a photo of a boat] Look!"
    assert conversation.turns[1].index_text == "Ann: Nice."
    first, second = conversation.questions
    assert (first.text, first.answer, first.evidence) == ("What?", "2022", ("D2:1", "D10:1"))
    assert (second.answer, second.category, second.evidence) == ("Bob", 5, ())


REALMEM = {
    "dialogues": [
        {
            "session_uuid": "a",
            "current_time": "2025-12-20 (Saturday)",
            "dialogue_turns": [{"speaker": "User", "content": "I bought a red boat."}],
        },
        {"session_uuid": "b", "current_time": "2025-12-21 (Sunday)", "dialogue_turns": []},
        {
            "session_uuid": "c",
            "current_time": "2025-12-22 (Monday)",
            "dialogue_turns": [
                {"speaker": "User", "content": "Which boat?", "is_query": True},
                {
                    "speaker": "Assistant",
                    "content": "The red one.",
                    "memory_session_uuids": ["b", "a", "c", "gone"],
                },
            ],
        },
    ]
}


def test_realmem(tmp_path: Path) -> None:
    path = tmp_path / "person.json"
    path.write_text(json.dumps(REALMEM))
    sessions, queries = realmem_data.load(path)
    assert [session.id for session in sessions] == ["a", "b", "c"]
    assert sessions[0].at == datetime(2025, 12, 20, tzinfo=UTC)
    assert sessions[2].turns == (("User", "Which boat?"), ("Assistant", "The red one."))
    assert queries == [realmem_data.Query("Which boat?", 2, (0, 1))]


def test_the_comparison_of_encoders_runs(tmp_path: Path) -> None:
    tiny.write_directory(tmp_path / "small")
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO))
    (tmp_path / "person.json").write_text(json.dumps(REALMEM))
    figures = encoders.measure(str(tmp_path / "small"), tmp_path / "locomo.json", [tmp_path / "person.json"])
    assert figures["encoder"] == "small"
    # Three turns and two earlier sessions, so that every cut but the first finds all there is.
    assert figures["dense @8"] == figures["MaxSim @20"] == 1
    assert figures["RealMem sessions @1"] == 0.5
    assert figures["RealMem sessions @3"] == 1
    rows = encoders.table([figures, {"encoder": "other", "dense @8": 0.5}]).splitlines()
    assert rows[0] == "|  | small | other |"
    assert "| dense @8 | 1.0 | 0.500 |" in rows
    assert "| window, tokens | 512 | – |" in rows
