"""The commands that a language model takes part in."""

from __future__ import annotations

import json
from typing import Any

from tests.interfaces.conftest import Run
from tests.llm.scripted import ChatRequest, ScriptedServer


def answer(request: ChatRequest) -> Any:
    if "summary" in request.messages[0]["content"]:
        return {"summary": "bread and cheese"}
    return {"height": 1}


def lines(count: int) -> str:
    return "".join(json.dumps({"content": f"bread number {i}"}) + "\n" for i in range(count))


def test_import_settle_stats_and_tree(run: Run) -> None:
    with ScriptedServer(answer) as server:
        model = ("--llm-model", "scripted", "--llm-base-url", server.url)
        assert run("import", "-", *model, "--compatibility", "batch", input=lines(9)).exit_code == 0
        assert run("stats", *model).exit_code == 0
        settled = run("settle", *model, "--json")
        assert settled.exit_code == 0
        assert json.loads(settled.stdout)["waiting"] == 0
        assert server.asks
    tree = run("tree", "--json")
    assert "bread and cheese" in tree.stdout


def test_a_model_that_is_missing_or_refuses_is_an_error_of_its_own(run: Run) -> None:
    assert run("import", "-", input=lines(9)).exit_code == 0
    missing = run("settle")
    assert missing.exit_code == 6
    with ScriptedServer(answer, api_key="another") as server:
        refused = run("settle", "--llm-model", "scripted", "--llm-base-url", server.url)
    assert refused.exit_code == 6
    assert "Traceback" not in refused.stderr


def test_a_mode_that_asks_a_model_needs_one(run: Run) -> None:
    refused = run("add", "text", "--compatibility", "batch")
    assert refused.exit_code == 2
    assert "--llm-model" in refused.stderr
