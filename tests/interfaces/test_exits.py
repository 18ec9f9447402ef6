"""How commands end: exit codes, and what stands on stderr."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import hmem_core as hmem
from hmem_core.interfaces import cli
from hmem_core.interfaces.exits import Exit
from tests.helpers import hashing_encoder
from tests.interfaces.conftest import Run

READING = [
    ["search", "a"],
    ["context", "a"],
    ["turns"],
    ["get", "0"],
    ["tree"],
    ["stats"],
    ["verify"],
    ["forget", "--id", "0", "--yes"],
]


@pytest.mark.parametrize("arguments", READING, ids=lambda arguments: arguments[0])
def test_reading_never_makes_a_memory(run: Run, place: Path, arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == Exit.NO_MEMORY == 3
    assert result.stdout == ""
    assert result.stderr.startswith("hmem: there is no memory at ")
    assert result.stderr.count("\n") == 1
    assert not place.exists()


@pytest.mark.parametrize("arguments", READING, ids=lambda arguments: arguments[0])
def test_errors_are_json_where_json_is_asked(run: Run, arguments: list[str]) -> None:
    result = run(*arguments, "--json")
    report = json.loads(result.stderr)
    assert report.keys() == {"error", "message", "exit"}
    assert (report["error"], report["exit"]) == ("MemoryNotFound", 3)
    assert result.stdout == ""


def test_the_encoder_has_a_code_of_its_own(run: Run, place: Path, tmp_path: Path) -> None:
    run("add", "one")
    missing = run("search", "a", "--encoder", tmp_path / "none")
    assert missing.exit_code == Exit.ENCODER == 5
    with hmem.open(tmp_path / "other", encoder=hashing_encoder(16)) as memory:
        memory.add("one")
    mismatch = run("search", "a", "-m", tmp_path / "other")
    assert mismatch.exit_code == 5
    assert "hashed-16" in mismatch.stderr
    assert "hashed-32" in mismatch.stderr


def test_a_place_that_cannot_be_used_is_a_storage_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert run("add", "a", "-m", tmp_path / "file").exit_code == Exit.STORAGE == 4


@pytest.mark.parametrize("arguments", [["search", "a", "--no-such"], ["nonsense"], ["import"], ["get", "x"]])
def test_a_command_line_that_cannot_be_read_is_2(run: Run, arguments: list[str]) -> None:
    assert run(*arguments).exit_code == Exit.USAGE == 2


def test_without_arguments_there_is_help(run: Run) -> None:
    assert "demo" in run().output


def test_ctrl_c_is_130_and_says_how_far_it_came(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    add = hmem.Memory.add
    calls = []

    def interrupted(*args: object, **options: object) -> hmem.Added:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return add(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(hmem.Memory, "add", interrupted)
    file = tmp_path / "chat.jsonl"
    file.write_text("".join(f'"turn {number}"\n' for number in range(100)))
    result = run("import", file)
    assert result.exit_code == Exit.INTERRUPTED == 130
    assert result.stderr.startswith("hmem: interrupted; 64 messages")


def test_debug_lets_errors_through(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HMEM_DEBUG", "1")
    with pytest.raises(hmem.MemoryNotFound):
        run("search", "a")


def test_a_fault_is_one_line(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("impossible")

    monkeypatch.setattr(hmem, "open", broken)
    monkeypatch.setattr(sys, "argv", ["hmem", "stats"])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == Exit.BUG == 70
    err = capsys.readouterr().err
    assert "RuntimeError: impossible" in err
    assert err.count("\n") == 1
    monkeypatch.setenv("HMEM_DEBUG", "1")
    with pytest.raises(RuntimeError):
        cli.main()


def test_the_codes_are_in_the_help(run: Run) -> None:
    text = " ".join(run("--help").output.split())
    for code in (Exit.OK, Exit.NOTHING, Exit.USAGE, Exit.NO_MEMORY, Exit.STORAGE, Exit.ENCODER):
        assert f" {code.value} " in text[text.index("Exit codes") :]
