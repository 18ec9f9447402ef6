"""LoCoMo read with a model or a judge in its place, on data small enough to work out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.quality import locomo
from bench.quality.guided import READINGS
from bench.quality.judges import Judge
from hmem_core.llm.prompts import short_answer, turn_filter
from hmem_core.llm.prompts.rendering import ShownTurn
from tests.bench.locomo import conversation
from tests.embedding import tiny
from tests.llm.helpers import MODEL
from tests.llm.scripted import ChatRequest, ScriptedServer
from tests.llm.test_prompts import AT


def question(text: str, answer: str, category: int, *evidence: str) -> dict[str, Any]:
    return {"question": text, "answer": answer, "category": category, "evidence": list(evidence)}


# The last conversation is the test half.
LOCOMO = [
    conversation(
        "conv-1",
        [
            question("Which boat has fog?", "fog, storm", 1, "D1:2", "D1:7"),
            question("What falls?", "rain", 4, "D1:8"),
            question("Where is the plane?", "in the hangar", 5, "D1:1"),
            question("Who knows?", "nobody", 4, "D"),
        ],
    ),
    *(conversation(f"conv-{number}", []) for number in range(2, 6)),
    conversation("conv-6", [question("What falls?", "rain", 2, "D1:8")]),
]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    tiny.write_directory(tmp_path / "model")
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO))

    def run(*arguments: str) -> tuple[dict[str, Any], str]:
        out = tmp_path / "out.json"
        places = {"--encoder": "model", "--cache": "cache", "--work": "work", "--json": "out.json"}
        named = [part for name, place in places.items() for part in (name, str(tmp_path / place))]
        locomo.main([str(tmp_path / "locomo.json"), *named, *arguments])
        return json.loads(out.read_text()), capsys.readouterr().out

    return run


def rows(report: dict[str, Any], **wanted: Any) -> list[dict[str, Any]]:
    return [row for row in report["rows"] if all(row[name] == value for name, value in wanted.items())]


# -- judges ------------------------------------------------------------------------------------------


def test_an_oracle_keeps_the_evidence_and_nothing_else(run: Any) -> None:
    report, printed = run("--judge", "oracle", "--readings", "guided; unguided")
    (last,) = rows(report, reading="guided", split="all", category="all", stage="shown, k=8")
    assert (last["recall"], last["precision"], last["questions"]) == (1, 1, 4)
    assert last["turns"] == pytest.approx((2 + 1 + 1 + 1) / 4)
    (first,) = rows(report, reading="guided", split="all", category="all", stage="vectors")
    assert first["turns"] == 8  # all there are
    assert first["precision"] == pytest.approx((2 + 1 + 1 + 1) / 8 / 4, abs=1e-4)
    (plain,) = rows(report, reading="unguided", split="all", category="all")
    assert (plain["stage"], plain["asks"], plain["recall"]) == ("shown, k=8", 0, 1)
    assert rows(report, reading="guided", split="test", category=2, stage="filter")[0]["questions"] == 1
    assert "| guided " in printed
    assert report["judge"] == {"miss": 0.0, "wrong": 0.0, "seed": 0}


def test_every_reading_can_be_measured(run: Any) -> None:
    report, printed = run("--judge", "noisy", "--miss", "0.5", "--split", "dev")
    for reading in READINGS:
        (row,) = rows(report, reading=reading, category="all", stage="shown, k=8")
        assert 0 < row["turns"] <= 8
        assert reading in printed
    again, _ = run("--judge", "noisy", "--miss", "0.5", "--split", "dev")
    assert again["rows"] == report["rows"]
    other, _ = run("--judge", "noisy", "--miss", "0.5", "--split", "dev", "--seed", "1", "--wrong", "0.5")
    assert other["rows"] != report["rows"]


def test_a_noisy_judge_errs_at_its_rates_and_the_same_way_each_time() -> None:
    judge = Judge(miss=0.3, wrong=0.1, seed=7)
    named: list[int] = []
    for start in range(0, 4000, 40):
        shown = [ShownTurn(number, AT, None, "x") for number in range(start, start + 40)]
        reply = judge.reply(turn_filter.ask("Which?", shown), "q", range(2000))
        turned = judge.reply(turn_filter.ask("Which?", shown[::-1]), "q", range(2000))
        assert reply.turns == turned.turns[::-1]
        named += reply.turns
    assert sum(turn < 2000 for turn in named) / 2000 == pytest.approx(0.7, abs=0.04)
    assert sum(turn >= 2000 for turn in named) / 2000 == pytest.approx(0.1, abs=0.03)
    with pytest.raises(ValueError, match="short_answer"):
        judge.reply(short_answer.ask("Which?", []), "q", [])


# -- a model -----------------------------------------------------------------------------------------


def shown(request: ChatRequest) -> list[dict[str, Any]]:
    lines = request.messages[1]["content"].split("\n")
    return [json.loads(line) for line in lines if line.startswith("{")]


def reply(request: ChatRequest) -> Any:
    """Reads what speaks of rain or fog; answers with the last word that it reads."""
    system, records = request.messages[0]["content"], shown(request)
    if "You grade" in system:
        return {"correct": records[0]["expected"] in (None, records[0]["given"])}
    turns = [one for one in records if "id" in one]
    if "You answer" in system:
        return {"answer": turns[-1]["text"].split()[-1] if turns else "Not mentioned"}
    plane = any("plane" in one.get("question", "") for one in records)
    return {"turns": [one["id"] for one in turns if not plane and {"rain"} & set(one["text"].split())]}


def arguments(server: ScriptedServer) -> list[str]:
    return ["--llm", "--model", MODEL, "--base-url", server.url, "--concurrency", "2", "--timeout", "5"]


def test_answers_are_scored_and_what_they_took_is_reported(run: Any) -> None:
    with ScriptedServer(reply) as server:
        report, printed = run(*arguments(server))
        (found,) = report["readings"]
        calls = server.answered
    (whole,) = rows(found, split="all", category="all")
    assert whole["questions"] == 5  # those without evidence are answered too
    single = rows(found, split="dev", category=4)[0]
    assert (single["questions"], single["recall"]) == (2, 1)
    # "rain" is right for the first, and not for "nobody".
    assert (single["f1"], single["set f1"], single["bleu-1"], single["judge"]) == (0.5, 0.5, 0.5, 0.5)
    # Nothing speaks of a plane, so the best turns were read, and the last word of one is no abstention.
    (adversarial,) = rows(found, split="dev", category=5)
    assert (adversarial["f1"], adversarial["judge"], adversarial["turns"]) == (0, 1, 8)
    (multi,) = rows(found, split="dev", category=1)
    assert (multi["recall"], multi["precision"]) == (0, 0)
    purposes = {row["purpose"]: row for row in found["spent"]}
    # All turns are among the best ten, so no event could add any.
    assert set(purposes) == {"all stages", "turn_filter", "short_answer", "answer_verdict"}
    assert purposes["all stages"]["calls"] == calls
    assert purposes["short_answer"]["asks a question"] == 1
    assert purposes["turn_filter"]["tokens read"] > 0
    assert found["answered"] == {"now": 5, "before": 0}
    assert "set f1" in printed
    assert "short_answer" in printed


def test_a_run_that_was_stopped_goes_on_and_pays_for_nothing_twice(run: Any, tmp_path: Path) -> None:
    with ScriptedServer(reply) as server:
        whole, _ = run(*arguments(server), "--work", str(tmp_path / "elsewhere"))
        needed = server.answered
    with ScriptedServer(reply) as server:
        with pytest.raises(SystemExit) as stopped:
            run(*arguments(server), "--calls", "4")
        assert stopped.value.code == 1
        begun = server.answered
        assert 0 < begun <= 4
        with (tmp_path / "work" / "answers.jsonl").open("ab") as file:
            file.write(b'{"key": "cut in the mid')
        report, _ = run(*arguments(server))
        assert server.answered == needed
        assert report["readings"][0]["rows"] == whole["readings"][0]["rows"]
        again, _ = run(*arguments(server))
        assert server.answered == needed
        assert again["readings"][0]["answered"] == {"now": 0, "before": 5}
        assert again["readings"][0]["rows"] == whole["readings"][0]["rows"]
        run(*arguments(server), "--readings", "unguided", "--questions", "1", "--no-grades")
        assert server.answered > needed  # read otherwise, so answered anew


def test_a_server_that_is_down_stops_the_run_instead_of_spoiling_it(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedServer(reply) as server:
        server.down()
        with pytest.raises(SystemExit) as stopped:
            run(*arguments(server), "--timeout", "1")
    assert stopped.value.code == 1
    assert "measuring stopped" in capsys.readouterr().err
    assert (tmp_path / "work" / "answers.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["--llm"], "--model"),
        (["--llm", "--model", "m", "--judge", "oracle"], "leave out one"),
        (["--judge", "oracle", "--readings", "sideways"], "'sideways' is not one of"),
        (["--judge", "noisy", "--miss", "2"], "not a rate"),
    ],
)
def test_what_does_not_go_together_is_said(
    given: list[str], complaint: str, run: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(*given)
    assert stopped.value.code == 2
    assert complaint in capsys.readouterr().err
