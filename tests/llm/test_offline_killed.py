"""Offline runs that are killed: what is recorded, what goes on, and what is left on the server."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hmem_core.errors import Damaged, LLMRefused, StorageError
from hmem_core.llm.batches import BatchApi
from hmem_core.llm.offline import OfflineDriver
from tests.faults.harness import ROOT
from tests.llm.offline_bench import Bench, Programs, says, texts
from tests.llm.offline_run import CONVERSATIONS, ROUNDS, conversations
from tests.llm.programs import asking, at_once, echo, in_turn, model
from tests.llm.scripted import (
    Arrived,
    Progress,
    ScriptedServer,
    dropped,
    malformed,
    rate_limited,
    slow,
    unauthorized,
    unavailable,
)


@pytest.fixture
def server(scripted_server: ScriptedServer) -> ScriptedServer:
    scripted_server.answer = echo
    return scripted_server


@pytest.fixture
def bench(server: ScriptedServer, tmp_path: Path) -> Bench:
    return Bench(server, tmp_path)


class Killed(BaseException):
    """Stands for the end of the process."""


# -- killed ------------------------------------------------------------------------------------------


def test_200_conversations_killed_twice_send_each_ask_once(server: ScriptedServer, tmp_path: Path) -> None:
    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.llm.offline_run", server.url, str(tmp_path / "offline")]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)

    def kill(process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL

    # The first dies while its first batch is under way, the second when a batch has just been created, of
    # which it has not heard.
    server.faults.add(slow(10), on="batches", when=lambda one: one.method == "GET", times=1)
    first = start()
    server.wait(lambda: any(one.method == "GET" for one in server.requests("batches")))
    kill(first)
    server.faults.clear()
    server.faults.add(slow(10), on="batches", when=lambda one: one.method == "POST", times=1)
    second = start()
    server.wait(lambda: sum(one.method == "POST" for one in server.requests("batches")) == 2)
    kill(second)
    server.wait(lambda: len(server.batches) == 2)
    third = start()
    out, _ = third.communicate(timeout=60)
    assert third.returncode == 0
    said = {name: [f"{name}.{n}" for n in range(ROUNDS)] for name in conversations()}
    assert json.loads(out) == said
    assert server.paid == len(set(texts(server))) == CONVERSATIONS * ROUNDS
    assert {arrived.attempt for arrived in server.asks} == {0}
    assert len(server.batches) == ROUNDS


def test_killed_at_any_call_nothing_is_paid_twice(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs: Programs = {name: partial(in_turn, name, 2) for name in "ab"}
    expected = {name: [f"{name}.0", f"{name}.1"] for name in "ab"}
    left = -1

    def step() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed

    def deadly(method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(self: BatchApi, *arguments: Any) -> Any:
            step()
            reply = await method(self, *arguments)
            step()
            return reply

        return call

    for name in ("upload", "create", "retrieve", "results", "find", "uploads", "delete"):
        monkeypatch.setattr(BatchApi, name, deadly(getattr(BatchApi, name)))
    for number in range(1, 100):
        bench = Bench(server, tmp_path / str(number))
        before, left = server.paid, number
        try:
            assert bench.run(programs) == expected
        except Killed:
            left = -1
            assert bench.run(programs) == expected
            assert server.paid == before + 4
            assert (bench.total.calls, bench.total.saved) == (4, 0)
            assert server.files == {}
        else:
            assert number > 24
            return
    raise AssertionError("it never ends")


# -- files on the server -----------------------------------------------------------------------------


def deleting(arrived: Arrived) -> bool:
    return arrived.method == "DELETE"


def test_files_are_deleted_once_their_replies_are_recorded(bench: Bench) -> None:
    bench.server.faults.add(rate_limited(), when=says("p.1"), times=1)  # there is a file of errors too
    assert bench.once(at_once("p", 3)) == ["p.0", "p.1", "p.2"]
    assert bench.server.files == {}
    assert sum(map(deleting, bench.server.requests("files"))) == 3 + 2


def test_the_file_of_a_batch_that_was_refused_is_deleted(bench: Bench) -> None:
    bench.server.progress = Progress(("validating", "failed"), failure=("invalid_model", "no such model"))
    assert isinstance(bench.once(asking("x")), LLMRefused)
    assert bench.server.files == {}


@pytest.mark.parametrize("fault", [unavailable(), unauthorized(), malformed()])
def test_a_file_that_cannot_be_deleted_is_later(
    bench: Bench, fault: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bench.server.faults.add(fault, on="files", when=deleting)
    assert bench.once(asking("x")) == "x"
    assert "stay on the server" in caplog.text
    assert sum(map(deleting, bench.server.requests("files"))) == 2
    bench.server.faults.clear()
    bench.run({})
    assert bench.server.files == {}


def test_a_file_that_somebody_else_has_deleted(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.server.faults.add(unavailable(), on="files", when=deleting)
    assert bench.once(asking("x")) == "x"
    bench.server.faults.clear()
    bench.server.files.clear()
    caplog.clear()
    for _ in range(2):
        bench.run({})
    assert caplog.text == ""
    assert sum(map(deleting, bench.server.requests("files"))) == 4


def test_an_upload_whose_answer_is_lost_is_not_made_twice(bench: Bench) -> None:
    post = {"on": "files", "when": lambda one: one.method == "POST", "times": 1}
    bench.server.faults.add(dropped(done=True), **post)
    assert bench.once(asking("x")) == "x"
    assert sum(one.method == "POST" for one in bench.server.requests("files")) == 1
    assert bench.server.files == {}


def test_files_of_others_stay(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def dies(*arguments: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(BatchApi, "create", dies)
        for name in ("offline", "another"):
            bench.state = bench.state.with_name(name)
            with pytest.raises(Killed):
                bench.once(asking("x"))
    assert len(bench.server.files) == 2
    assert bench.once(asking("x")) == "x"
    assert len(bench.server.files) == 1


# -- one record, one run -----------------------------------------------------------------------------


def test_a_second_run_asks_nothing(bench: Bench) -> None:
    programs: Programs = {"a": partial(in_turn, "a", 2), "b": partial(at_once, "b", 3)}
    first = bench.run(programs)
    spent = bench.total
    assert bench.run(programs) == first
    assert bench.total == spent
    assert bench.server.paid == 5


def test_one_process_at_a_time(bench: Bench) -> None:
    holder = OfflineDriver(model(bench.server), bench.encoder.embed, bench.state)
    with pytest.raises(StorageError, match="another process"):
        bench.run({})
    asyncio.run(holder.close())
    assert bench.run({}) == {}


def test_another_file_is_not_touched(bench: Bench) -> None:
    bench.state.write_bytes(b"no database, but a text of some length" * 50)
    before = bench.state.read_bytes()
    with pytest.raises(Damaged, match="no record"):
        bench.run({})
    assert bench.state.read_bytes() == before


def test_another_database_is_not_touched(bench: Bench) -> None:
    with closing(sqlite3.connect(bench.state)) as db:
        db.execute("CREATE TABLE run (mine)")
    before = bench.state.read_bytes()
    with pytest.raises(StorageError, match="something else"):
        bench.run({})
    assert bench.state.read_bytes() == before
