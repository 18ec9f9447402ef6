"""`hmem import` into a memory for each conversation, and over a batch API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import hmem_core as hmem
from tests.helpers import hashing_encoder
from tests.interfaces.conftest import Run
from tests.interfaces.test_model import answer, lines
from tests.llm.scripted import ScriptedServer, unavailable


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(answer) as server:
        yield server


def offline(server: ScriptedServer, record: Path) -> tuple[str, ...]:
    model = ("--llm-model", "scripted", "--llm-base-url", server.url)
    return ("--offline", str(record), "--poll", "0.01", *model)


def locomo(*samples: str) -> str:
    turns = [{"speaker": "Ann", "dia_id": f"D1:{n}", "text": f"bread number {n}"} for n in range(5)]
    conversation = {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns}
    return json.dumps([{"sample_id": sample, "conversation": conversation} for sample in samples])


def texts(place: Path) -> list[str]:
    with hmem.open(place, create=False, encoder=hashing_encoder()) as memory:
        return [turn.text for turn in memory.turns()]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    (tmp_path / "a.jsonl").write_text(lines(6))
    (tmp_path / "b.json").write_text(json.dumps(["one", "two"]))
    (tmp_path / "c.json").write_text(locomo("conv 1", "conv 2"))
    return [tmp_path / name for name in ("a.jsonl", "b.json", "c.json")]


def test_each_conversation_gets_a_memory(run: Run, place: Path, files: list[Path]) -> None:
    done = run("import", "--each", *files)
    assert done.exit_code == 0
    assert [line.split(": ")[1] for line in done.stdout.splitlines()] == [
        f"{n} added, 0 known already, 0 skipped" for n in (6, 2, 5, 5)
    ]
    assert f"{files[2]}, conv 2: " in done.stdout
    assert {path.name for path in place.iterdir()} == {"a", "b", "conv 1", "conv 2"}
    assert texts(place / "b") == ["one", "two"]
    assert texts(place / "conv 2") == [f"bread number {n}" for n in range(5)]


def test_each_needs_names_that_differ_and_can_be_directories(run: Run, place: Path, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    for path in (tmp_path / "a.json", tmp_path / "x" / "a.json"):
        path.write_text("[]")
    twice = run("import", "--each", tmp_path / "a.json", tmp_path / "x" / "a.json")
    assert twice.exit_code == 2
    assert "rename one" in twice.stderr
    assert run("import", "--each", "-", input="").exit_code == 2
    for name in ("../up", "..", "a/b"):
        (tmp_path / "c.json").write_text(locomo(name, "fine"))
        refused = run("import", "--each", tmp_path / "c.json")
        assert refused.exit_code == 2
        assert "cannot name a directory" in refused.stderr
    assert not place.exists()


def test_a_file_that_is_missing_stops_before_a_memory_is_made(
    run: Run, place: Path, files: list[Path], tmp_path: Path
) -> None:
    assert run("import", files[0], tmp_path / "missing").exit_code == 2
    assert not place.exists()


@pytest.mark.parametrize("each", [True, False])
def test_offline(
    run: Run, place: Path, files: list[Path], tmp_path: Path, server: ScriptedServer, each: bool
) -> None:
    given = ["--each", *files] if each else files[:2]
    record = tmp_path / "record"
    server.faults.add(unavailable(), on="batches", times=9)
    down = run("import", *given, *offline(server, record))
    assert (down.exit_code, "goes on" in down.stderr) == (6, True)
    server.faults.clear()
    done = run("import", *given, *offline(server, record), "--json")
    assert done.exit_code == 0
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["known"] for one in said] == ([6, 2, 5, 5] if each else [8])
    assert [one["waiting"] for one in said] == [0] * len(said)
    assert sum(one["summarised"] for one in said) > 0
    assert all(arrived.batch for arrived in server.asks)
    assert (
        f"{place / 'a' if each else place}: 0 added" in run("import", *given, *offline(server, record)).stdout
    )
    assert server.files == {}


def test_offline_says_what_went_wrong_and_goes_on(
    run: Run, place: Path, files: list[Path], tmp_path: Path, server: ScriptedServer
) -> None:
    files[1].write_text(json.dumps(["one", 7]))
    done = run("import", "--each", *files, *offline(server, tmp_path / "record"))
    assert done.exit_code == 2
    assert "message 2" in done.stderr
    assert done.stdout.count("0 wait") == 3
    server.answer = lambda request: "no JSON"
    (tmp_path / "d.jsonl").write_text(lines(7))
    troubled = run("import", "--each", tmp_path / "d.jsonl", *offline(server, tmp_path / "record"))
    assert troubled.exit_code == 6
    assert "7 added" in troubled.stdout
    assert len(texts(place / "d")) == 7


def test_offline_needs_a_model(run: Run, place: Path, files: list[Path]) -> None:
    refused = run("import", *files, "--offline", "record")
    assert refused.exit_code == 2
    assert "--llm-model" in refused.stderr
    assert not place.exists()
