"""The command as a process: pipes, signals, what it imports, and a real memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HMEM = [sys.executable, "-c", "from hmem_core.interfaces.cli import main; main()"]
HEAVY = ("numpy", "numba", "pyarrow", "onnxruntime", "tokenizers", "hmem_kernels")


def hmem(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [*HMEM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload,no-any-return]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom hmem_core.interfaces.cli import main\n"
        "try:\n main()\nexcept SystemExit:\n pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    for arguments in (["--help"], ["search", "--help"], ["--version"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60
        )
        assert done.stdout.endswith("[]\n"), done


def test_a_memory_lives_on_between_processes_and_pipes(tmp_path: Path) -> None:
    environment = {**os.environ, "HMEM_MEMORY": str(tmp_path / "m"), "LC_ALL": "C"}
    said = {"content": "Die Fähre legt um sieben ab ⛴", "speaker": "Jörg"}
    filler = [{"content": f"Nothing much on day {number}."} for number in range(40)]
    lines = "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in [said, *filler])
    imported = hmem("import", "-", "--json", env=environment, input=lines, encoding="utf-8")
    assert json.loads(imported.stdout)["added"] == 41
    assert imported.stderr == ""

    found = hmem("search", "Wann legt die Fähre ab?", "-k", "1", "--json", env=environment, encoding="utf-8")
    assert json.loads(found.stdout)["text"] == said["content"]

    shell = f"'{HMEM[0]}' -c '{HMEM[2]}' turns | head -n 1; echo ${{PIPESTATUS[*]}}"
    headed = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, timeout=60, env=environment
    )
    assert headed.stderr == ""
    assert headed.stdout.count("\n") == 2


def test_forget_asks_whom_it_can_ask(tmp_path: Path) -> None:
    environment = {**os.environ, "HMEM_MEMORY": str(tmp_path / "m")}
    hmem("import", "-", env=environment, input='"one"\n"two"\n')
    for answer, code, ids in ((b"n\n", 1, ""), (b"y\n", 0, "0\tforgotten\n1\tforgotten\n")):
        ours, theirs = os.openpty()
        os.write(ours, answer)
        done = hmem("forget", "--before", "2999-01-01", env=environment, stdin=theirs)
        os.close(theirs)
        os.close(ours)
        assert (done.returncode, done.stdout) == (code, ids)
        assert "Forget 2 turns" in done.stderr


def test_an_old_terminal_is_shown_what_it_can(tmp_path: Path) -> None:
    environment = {**os.environ, "HMEM_MEMORY": str(tmp_path / "m"), "PYTHONIOENCODING": "ascii"}
    assert hmem("add", "-", env=environment, input="sieben ⛴", encoding="utf-8").returncode == 0
    listed = hmem("turns", env=environment)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.endswith("sieben \\u26f4\n")


def test_a_reader_who_leaves_early_is_no_fault(tmp_path: Path) -> None:
    code = (
        "import sys, hmem_core\nfrom tests.helpers import hashing_encoder\n"
        "from hmem_core.embedding import registry\nregistry.resolve = lambda _: hashing_encoder()\n"
        "from hmem_core.interfaces.cli import main\nmain()"
    )
    environment = {**os.environ, "HMEM_MEMORY": str(tmp_path / "m")}
    command = [sys.executable, "-c", code]
    lines = "".join(json.dumps({"content": f"{number} " + "x" * 2000}) + "\n" for number in range(500))
    root = Path(__file__).parent.parent.parent
    subprocess.run(
        [*command, "import", "-"], input=lines, text=True, env=environment, cwd=root, check=True, timeout=60,
        capture_output=True,
    )  # fmt: skip
    with subprocess.Popen(
        [*command, "turns"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=root
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 141


def test_ctrl_c_ends_quietly_with_130(tmp_path: Path) -> None:
    environment = {**os.environ, "HMEM_MEMORY": str(tmp_path / "m")}
    with subprocess.Popen(
        [*HMEM, "import", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write('"one"\n')
        process.stdin.flush()
        _wait_for(tmp_path / "m" / "journal.sqlite")
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        assert process.returncode == 130
        assert process.stderr.read() == "hmem: interrupted\n"


def _wait_for(path: Path) -> None:
    import time

    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.data
def test_a_locomo_conversation_answers_plain_questions_in_new_processes(
    data_dir: Path, tmp_path: Path
) -> None:
    file = data_dir / "locomo" / "locomo10.json"
    environment = {**os.environ, "HMEM_MEMORY": str(tmp_path / "m")}
    several = hmem("import", file, env=environment)
    assert several.returncode == 2
    assert "conv-26" in several.stderr
    for added, known in ((419, 0), (0, 419)):
        done = hmem("import", file, "--sample", "conv-26", "--json", env=environment)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert (report["added"], report["known"]) == (added, known)
    for question, turn in [
        ("When did Caroline go to the LGBTQ support group?", "D1:3"),
        ("When is Melanie's daughter's birthday?", "D11:1"),
        ("When did Melanie go to the pottery workshop?", "D8:2"),
    ]:
        found = hmem("search", question, "-k", "5", "--json", env=environment)
        keys = [json.loads(line)["key"] for line in found.stdout.splitlines()]
        assert f"conv-26:{turn}" in keys, question
