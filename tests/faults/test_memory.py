"""A memory under kills, forks, and several processes at once."""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path

import pytest

import hmem_core as hmem
from tests.faults.harness import Nursery
from tests.faults.memory_tasks import (
    add_and_tell,
    forget_and_hang,
    remember_beside,
    remember_on,
    remember_the_same,
    texts_seen,
)
from tests.helpers import files_holding, open_memory


def test_a_killed_writer_loses_no_acknowledged_turn(tmp_path: Path) -> None:
    path = tmp_path / "m"
    rng = random.Random(3)
    acknowledged: dict[int, str] = {}
    with Nursery(remember_on) as nursery:
        for round_ in range(100):
            child = nursery.start(remember_on, str(path), round_)
            if rng.random() < 0.5:  # while it adds, else perhaps while it opens
                child.hear()
            time.sleep(rng.uniform(0.0, 0.05))
            child.kill()
            for ids in child.said():
                acknowledged |= {turn: f"turn {turn}" for turn in ids}
            if round_ % 10 == 9:
                check(path, acknowledged)
    assert len(acknowledged) > 100  # the writers got somewhere


def check(path: Path, acknowledged: dict[int, str]) -> None:
    with open_memory(path) as memory:
        turns = memory.turns()
        assert [turn.id for turn in turns] == list(range(len(turns)))
        assert [turn.text for turn in turns] == [f"turn {number}" for number in range(len(turns))]
        assert acknowledged.items() <= {turn.id: turn.text for turn in turns}.items()


def test_two_processes_end_in_one_consistent_order(tmp_path: Path) -> None:
    path = str(tmp_path / "m")
    with Nursery(remember_beside) as one, Nursery(remember_beside) as other:
        children = [
            nursery.start(remember_beside, path, name, 1000) for nursery, name in ((one, "a"), (other, "b"))
        ]
        assert [child.said() for child in children] == [[1000], [1000]]
        assert [child.status for child in children] == [0, 0]
    with open_memory(tmp_path / "m") as memory:
        turns = memory.turns()
        assert sorted(turn.id for turn in turns) == list(range(2000))
        for name in "ab":
            mine = sorted((turn.id, turn.text) for turn in turns if turn.session == name)
            assert [text for _, text in mine] == [f"{name} {number}" for number in range(1000)]


def test_two_processes_with_the_same_keys_store_each_once(tmp_path: Path) -> None:
    path = str(tmp_path / "m")
    with Nursery(remember_the_same) as one, Nursery(remember_the_same) as other:
        children = [one.start(remember_the_same, path, 150), other.start(remember_the_same, path, 150)]
        first, second = (child.said() for child in children)
    assert first == second
    with open_memory(tmp_path / "m") as memory:
        assert len(memory.turns()) == 150


def test_a_search_sees_what_another_process_added_before(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m") as memory, Nursery(add_and_tell, texts_seen) as nursery:
        for number in range(5):
            nursery.run(add_and_tell, str(tmp_path / "m"), [f"from the other side {number}"])
            assert memory.search(f"from the other side {number}", k=1)[0].text.endswith(str(number))
            memory.add(f"from here {number}")
            (seen,) = nursery.run(texts_seen, str(tmp_path / "m"))
            assert seen[-1] == f"from here {number}"


def test_a_forget_killed_at_any_point_is_whole_or_not_at_all(tmp_path: Path) -> None:
    rng = random.Random(5)
    with Nursery(forget_and_hang) as nursery:
        for number in range(12):
            path = tmp_path / f"m{number}"
            with open_memory(path) as memory:
                memory.add([f"remark {i}" for i in range(300)])
                memory.add("the secret is kumquat")
                memory.checkpoint()
            child = nursery.start(forget_and_hang, str(path), 300)
            if number % 2:  # "begun" has been said, else it may still be opening
                child.hear()
            time.sleep(rng.uniform(0.0, 0.04))
            child.kill()
            child.said()
            with open_memory(path) as memory:
                gone = len(memory.turns()) == 300
                assert bool(files_holding(path, "kumquat")) != gone
                if not gone:
                    assert memory.forget(300).ids == (300,)
                    assert files_holding(path, "kumquat") == []


def test_a_memory_works_on_in_a_forked_child(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m") as memory:
        memory.add("before the fork")
        memory.search("before")
        child = os.fork()
        if child == 0:
            try:
                memory.add("in the child")
                good = memory.search("in the child", k=1)[0].text == "in the child"
            except BaseException:
                good = False
            os._exit(0 if good else 1)
        memory.add("in the parent")
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert {turn.text for turn in memory.turns()} == {"before the fork", "in the child", "in the parent"}


def test_threads_add_search_and_forget_at_once(tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def work(memory: hmem.Memory, number: int) -> None:
        try:
            for i in range(40):
                turn = memory.add(f"thread {number} turn {i}", session=f"t{number}").ids[0]
                assert any(one.id == turn for one in memory.turns(session=f"t{number}"))
                memory.search(f"thread {number}", k=3, where={"session": f"t{number}"})
                if i % 10 == 9:
                    memory.forget(turn)
        except BaseException as error:
            errors.append(error)

    with open_memory(tmp_path / "m") as memory:
        threads = [threading.Thread(target=work, args=(memory, number)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert memory.stats().turns == 4 * 36
        assert memory.stats().forgotten == 4 * 4


@pytest.mark.parametrize("name", ["checkpoints", "journal.sqlite"])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    if name == "checkpoints":
        with open_memory(tmp_path / "m") as memory:
            memory.add("kept")
            (tmp_path / "m" / name).write_text("in the way")
            with pytest.raises(hmem.StorageError, match="no checkpoint could be written"):
                memory.checkpoint()
            assert memory.search("kept")[0].text == "kept"
    else:
        (tmp_path / "m" / name).mkdir(parents=True)
        with pytest.raises(hmem.StorageError, match=r"journal\.sqlite"):
            open_memory(tmp_path / "m")
