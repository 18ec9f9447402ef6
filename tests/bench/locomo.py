"""A conversation in LoCoMo's format, small enough to work out by hand."""

from __future__ import annotations

from typing import Any

FILLERS = ["fog", "sun", "wind", "snow", "hail", "storm", "cloud"]


def conversation(name: str, questions: list[dict[str, Any]]) -> dict[str, Any]:
    """Seven turns about boats, each longer than the one before and so of a lower BM25, and one about rain."""
    texts = [" ".join(["boat", *FILLERS[:number]]) for number in range(7)]
    return {
        "sample_id": name,
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bob",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": f"D1:{number}", "text": text}
                for number, text in enumerate([*texts, "rain"], 1)
            ],
        },
        "qa": questions,
    }


def question(category: int, *evidence: str) -> dict[str, Any]:
    """Of that category."""
    return {"question": "Where is the boat?", "answer": "?", "category": category, "evidence": list(evidence)}


LOCOMO = [
    conversation("conv-1", [question(4, "D1:6", "D1:8"), question(5, "D")]),
    *(conversation(f"conv-{number}", []) for number in range(2, 6)),
    conversation("conv-6", [question(1, "D1:1")]),
]
"""The sixth boat comes sixth, the rain is not found by words; the last conversation is the test half."""
