"""The demo: its data, and its one screen."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

from hmem_core.interfaces.demo import conversation, questions
from tests.interfaces.conftest import Run

KINDS = {"single", "multi", "temporal", "update", "conflict", "conditional", "dependent", "speaker", "absent"}


def test_the_conversation_is_in_order_and_complete() -> None:
    messages = [item.message for item in conversation().items]
    assert len(messages) > 300
    for message in messages:
        assert list(message) == ["key", "session", "at", "role", "speaker", "content"]
        assert message["content"] == message["content"].strip() != ""
        assert (message["role"] == "assistant") == (message["speaker"] == "Assistant")
    places: Counter[str] = Counter()
    for message in messages:
        places[message["session"]] += 1
        assert message["key"] == f"{message['session']}-{places[message['session']]:03d}"
    times = [dt.datetime.fromisoformat(message["at"]) for message in messages]
    assert all(time.tzinfo is not None for time in times)
    assert all(earlier <= later for earlier, later in pairwise(times))
    assert times[-1] - times[0] > dt.timedelta(days=180)


def test_questions_name_turns_that_exist() -> None:
    keys = {item.message["key"] for item in conversation().items}
    asked = questions()
    assert len({question.question for question in asked}) == len(asked)
    assert {question.kind for question in asked} == KINDS
    assert sum(question.demo for question in asked) == 6
    for question in asked:
        assert set(question.evidence) <= keys
        assert list(question.evidence) == sorted(set(question.evidence))
        assert (question.kind == "absent") == (question.evidence == ())


def test_the_demo_fits_on_a_screen_and_leaves_nothing(run: Run, place: Path) -> None:
    result = run("demo")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) <= 53
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("Imported 357 turns")
    assert any(line.startswith("[0-356] 357 turns  2025-09-03 to 2026-04-28") for line in lines)
    for question in questions():
        assert (f"? {question.question}" in lines) == question.demo
    assert not place.exists(), "the demo never touches the memory that HMEM_MEMORY names"
    assert list(Path.cwd().iterdir()) == []


def test_the_demo_can_be_kept_and_run_again(run: Run, tmp_path: Path) -> None:
    run("demo", "-m", tmp_path / "kept")
    again = run("demo", "-m", tmp_path / "kept")
    assert again.stdout.startswith("Knew all 357 turns already")
    shown = json.loads(run("demo", "-m", tmp_path / "kept", "--json").stdout)
    assert shown["added"] == 0
    assert shown["location"] == str(tmp_path / "kept")
    assert len(shown["answered"]) == 6
    for answered in shown["answered"]:
        assert answered.keys() == {"question", "known_answer", "hits", "right", "milliseconds"}
        assert len(answered["hits"]) == 8
    assert shown["outline"][0]["span"] == [0, 356]
    assert shown["context"]["tokens"] <= shown["max_tokens"]
