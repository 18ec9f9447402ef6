"""The README's Python really runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.llm.scripted import ChatRequest, ScriptedServer

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


def answer(request: ChatRequest) -> Any:
    turns = [json.loads(one)["id"] for one in request.messages[1]["content"].splitlines() if '"id"' in one]
    if '"keywords"' in request.messages[0]["content"]:
        analyses = [{"id": turn, "context": "Ann speaks of the flat."} for turn in turns]
        return {"turns": analyses, "summary": "Ann has a flat in Porto."}
    if '"events"' in request.messages[0]["content"]:
        return {"turns": [{"id": turn, "events": ["new1"]} for turn in turns]}
    if "summary" in request.messages[0]["content"]:
        return {"summary": "Ann's flat in Porto"}
    return {"height": None}


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block_runs(number: int, tmp_path: Path) -> None:
    with ScriptedServer(answer) as server:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", BLOCKS[number]],
            cwd=tmp_path,
            env=os.environ | {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "test"},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert bool(server.asks) == ("LLM(" in BLOCKS[number])
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    if number == 0:
        assert done.stdout.splitlines()[0].endswith("We moved to Porto last week.")


def test_the_readme_opens_with_the_two_commands_and_fifteen_lines() -> None:
    head = README.read_text()
    assert head.index("make demo") < head.index("make test") < head.index("```python")
    assert len(BLOCKS[0].splitlines()) <= 15
