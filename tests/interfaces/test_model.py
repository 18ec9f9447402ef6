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


def choose(request: ChatRequest) -> Any:
    """Of what is shown, what speaks of number 3."""
    records = [one for one in request.messages[-1]["content"].splitlines() if one.startswith('{"id"')]
    return {"turns": [json.loads(one)["id"] for one in records if "number 3" in one]}


def test_guided_search_and_context(run: Run) -> None:
    assert run("import", "-", input=lines(9)).exit_code == 0
    with ScriptedServer(choose) as server:
        model = ("--guided", "--llm-model", "scripted", "--llm-base-url", server.url)
        found = run("search", "which bread", *model, "--explain")
        assert found.exit_code == 0
        (hit,) = found.stdout.splitlines()
        assert "bread number 3" in hit
        assert "stages=vectors,filter" in hit
        assert json.loads(run("search", "which bread", *model, "--json").stdout)["turns"] == [3]
        packed = run("context", "which bread", *model).stdout
        assert "number 3" in packed
        assert "number 4" not in packed
        asked = len(server.asks)
        assert "number 4" in run("context", "which bread", *model[1:]).stdout
        assert len(server.asks) == asked  # named, but not asked


def test_guided_search_needs_a_model(run: Run) -> None:
    assert run("import", "-", input=lines(2)).exit_code == 0
    for command in ("search", "context"):
        refused = run(command, "bread", "--guided")
        assert refused.exit_code == 2
        assert "--llm-model" in refused.stderr


def facts(request: ChatRequest) -> Any:
    """One fact a turn, to whoever asks for facts; a summary to others."""
    if "lasting facts" not in request.messages[0]["content"]:
        return answer(request)
    shown = [one for one in request.messages[-1]["content"].splitlines() if one.startswith('{"id"')]
    ids = [json.loads(one)["id"] for one in shown]
    return {
        "facts": [{"turn": one, "subject": "bread", "relation": "has", "object": str(one)} for one in ids]
    }


def test_settle_reads_facts_if_it_is_told_to(run: Run) -> None:
    assert run("import", "-", input=lines(3)).exit_code == 0
    with ScriptedServer(facts) as server:
        model = ("--llm-model", "scripted", "--llm-base-url", server.url)
        assert run("settle", *model).exit_code == 0
        assert run("facts", "find", "--subject", "bread").exit_code == 1, "nothing is read unless asked for"
        settled = run("settle", *model, "--facts", "--json")
        assert json.loads(settled.stdout)["waiting"] == 0
    found = run("facts", "find", "--subject", "bread", "--include", "all").stdout.splitlines()
    assert [row.split("\t")[4:7] for row in found] == [["bread", "has", str(i)] for i in range(3)]
