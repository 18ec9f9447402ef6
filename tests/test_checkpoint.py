"""Checkpoints make opening quick and never change an answer."""

from __future__ import annotations

import logging
import random
import shutil
from pathlib import Path

import pytest

import hmem_core as hmem
from hmem_core.state import State
from tests.helpers import open_memory
from tests.test_replay import assert_same, replayed

WORDS = ["apple", "bread", "cheese", "dates", "eggs", "figs", "grapes", "honey"]


def filled(path: Path, turns: int = 60) -> hmem.Memory:
    memory = open_memory(path)
    rng = random.Random(7)
    for start in range(0, turns, 20):
        memory.add(
            [{"content": " ".join(rng.choices(WORDS, k=5)), "metadata": {"n": i}} for i in range(20)],
            session=f"s{start}",
            key=f"k{start}",
        )
    return memory


def answers(memory: hmem.Memory) -> object:
    return [memory.search(word, k=5, explain=True) for word in WORDS], memory.turns()


def only_checkpoint(path: Path) -> Path:
    (found,) = (entry for entry in (path / "checkpoints").iterdir() if entry.name.isdigit())
    return found


def test_open_reads_the_checkpoint_and_the_tail_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled(tmp_path / "m") as memory:
        assert memory.checkpoint()
        assert not memory.checkpoint()  # nothing new
        seq = memory.stats().seq
        memory.add("the tail", key="tail")
        expected = answers(memory)
    applied: list[int] = []
    apply = State.apply
    monkeypatch.setattr(
        State, "apply", lambda self, seq, entry: (applied.append(seq), apply(self, seq, entry))[1]
    )
    with open_memory(tmp_path / "m") as memory:
        assert applied == [seq + 1, seq + 2]
        assert memory.stats().checkpoint == seq
        assert answers(memory) == expected
        assert_same(memory._store._state.arrays(), replayed(memory).arrays())
        assert memory.add("the tail", key="tail").new == ()
        assert memory.add(["x"] * 20, key="k20").new == ()
        assert memory.add("more", session="s0").new == (61,)


def test_close_writes_one_when_it_is_worth_it(tmp_path: Path) -> None:
    with filled(tmp_path / "few", 20):
        pass
    assert not (tmp_path / "few" / "checkpoints").exists()
    with filled(tmp_path / "many", 400) as memory:
        held = memory.stats()
        assert held.mapped_bytes == 0
    assert only_checkpoint(tmp_path / "many")
    with open_memory(tmp_path / "many") as memory:
        stats = memory.stats()
        assert stats.mapped_bytes > 400 * 4 * 32
        assert stats.memory_bytes < held.memory_bytes - 400 * 4 * 32


def test_only_changed_files_are_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = ("blocks", "notes", "postings", "states", "turns")
    for module in (*(f"columns.{name}" for name in modules), "state"):
        monkeypatch.setattr(f"hmem_core.{module}.BLOCK_ROWS", 16)
    with filled(tmp_path / "m") as memory:
        memory.checkpoint()
        before = {file.name: file.stat().st_ino for file in only_checkpoint(tmp_path / "m").iterdir()}
        memory.add("one more")
        memory.checkpoint()
        after = {file.name: file.stat().st_ino for file in only_checkpoint(tmp_path / "m").iterdir()}
        expected = answers(memory)
    kept = {name for name in before if before[name] == after[name]}
    kinds = ("turns", "vectors", "states", "terms", "postings")
    assert kept == {f"{kind}-{block:05d}.arrow" for kind in kinds for block in range(3)}
    with open_memory(tmp_path / "m") as memory:
        assert answers(memory) == expected


def damaged_copies(path: Path, copies: int) -> list[tuple[Path, int]]:
    rng = random.Random(11)
    files = sorted(only_checkpoint(path).iterdir())
    places = [(file, offset) for file in files for offset in range(file.stat().st_size)]
    return rng.sample(places, copies) if copies < len(places) else places


def check_damage(tmp_path: Path, copies: int, caplog: pytest.LogCaptureFixture) -> None:
    with filled(tmp_path / "m", 20) as memory:
        memory.checkpoint()
        expected = answers(memory)
    shutil.copytree(tmp_path / "m", tmp_path / "sound")
    for file, offset in damaged_copies(tmp_path / "m", copies):
        shutil.rmtree(tmp_path / "m")
        shutil.copytree(tmp_path / "sound", tmp_path / "m")
        content = bytearray(file.read_bytes())
        content[offset] ^= 0x41
        file.write_bytes(content)
        caplog.clear()
        with open_memory(tmp_path / "m") as memory:
            assert answers(memory) == expected
            assert memory.stats().checkpoint is None
        assert "rebuilding from the journal" in caplog.text, (file.name, offset)


def test_a_damaged_byte_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    check_damage(tmp_path, 80, caplog)


@pytest.mark.soak
def test_every_damaged_byte_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    check_damage(tmp_path, 10**9, caplog)


@pytest.mark.parametrize("harm", ["truncated", "missing file", "missing manifest", "empty", "other format"])
def test_a_broken_checkpoint_is_rebuilt(tmp_path: Path, harm: str, caplog: pytest.LogCaptureFixture) -> None:
    with filled(tmp_path / "m") as memory:
        memory.checkpoint()
        seq, expected = memory.stats().seq, answers(memory)
    directory = only_checkpoint(tmp_path / "m")
    victim = directory / "turns-00000.arrow"
    match harm:
        case "truncated":
            victim.write_bytes(victim.read_bytes()[:-9])
        case "missing file":
            victim.unlink()
        case "missing manifest":
            (directory / "manifest.json").unlink()
        case "empty":
            victim.write_bytes(b"")
        case "other format":
            (directory / "manifest.json").write_text('{"format": 99}')
    with caplog.at_level(logging.WARNING, "hmem"), open_memory(tmp_path / "m") as memory:
        assert answers(memory) == expected
        assert "rebuilding from the journal" in caplog.text
        assert not directory.exists()
        assert memory.checkpoint()
    with open_memory(tmp_path / "m") as memory:
        assert memory.stats().checkpoint == seq
        assert answers(memory) == expected


def test_a_checkpoint_of_another_memory_or_of_a_replaced_journal_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with filled(tmp_path / "m", 20) as memory:
        memory.checkpoint()
    shutil.copytree(tmp_path / "m", tmp_path / "backup")
    with open_memory(tmp_path / "m") as memory:
        memory.add("on one branch of history")
        memory.checkpoint()
    for file in tmp_path.glob("m/journal*"):
        file.unlink()
    for file in tmp_path.glob("backup/journal*"):
        shutil.copy(file, tmp_path / "m")
    with pytest.raises(hmem.Damaged, match="ends at entry 22, but a checkpoint was made at entry 24"):
        open_memory(tmp_path / "m")
    shutil.rmtree(tmp_path / "m" / "checkpoints")
    with open_memory(tmp_path / "m") as memory:
        assert len(memory.turns()) == 20
        memory.add("on another branch")
        memory.add("and on")
    with open_memory(tmp_path / "backup") as memory:
        memory.add("on one branch of history")
        memory.checkpoint()
    shutil.copytree(tmp_path / "backup" / "checkpoints", tmp_path / "m" / "checkpoints")
    with open_memory(tmp_path / "m") as memory:
        assert "the journal was replaced" in caplog.text
        assert memory.turns()[-1].text == "and on"
    with filled(tmp_path / "stranger", 20) as memory:
        memory.checkpoint()
    shutil.rmtree(tmp_path / "m" / "checkpoints", ignore_errors=True)
    shutil.copytree(tmp_path / "stranger" / "checkpoints", tmp_path / "m" / "checkpoints")
    with open_memory(tmp_path / "m") as memory:
        assert "another memory" in caplog.text
        assert memory.turns()[-1].text == "and on"


def test_a_stale_checkpoint_that_holds_forgotten_text_is_deleted(tmp_path: Path) -> None:
    with filled(tmp_path / "m", 20) as memory:
        memory.checkpoint()
        shutil.copytree(only_checkpoint(tmp_path / "m"), tmp_path / "kept")
        memory.forget(3)
    shutil.copytree(tmp_path / "kept", tmp_path / "m" / "checkpoints" / f"{21:016d}")
    with open_memory(tmp_path / "m") as memory:
        assert len(memory.turns()) == 19
        assert not (tmp_path / "m" / "checkpoints" / f"{21:016d}").exists()


def test_leftovers_of_a_killed_writer_are_swept(tmp_path: Path) -> None:
    with filled(tmp_path / "m") as memory:
        leftover = tmp_path / "m" / "checkpoints" / ".tmp-0000000000000099"
        leftover.mkdir(parents=True)
        (leftover / "turns-00000.arrow").write_text("half")
        assert memory.checkpoint()
        assert not leftover.exists()


def test_a_full_disk_leaves_the_memory_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with filled(tmp_path / "m") as memory:
        memory.checkpoint()
        memory.add("more")
        with monkeypatch.context() as patch:
            patch.setattr("hmem_core.columns.checkpoint._write_manifest", full)
            with pytest.raises(hmem.StorageError, match="No space left"):
                memory.checkpoint()
        assert memory.search("more")[0].text == "more"
        assert memory.checkpoint()
        seq = memory.stats().seq
        assert [entry.name for entry in (tmp_path / "m" / "checkpoints").iterdir() if entry.is_dir()] == [
            f"{seq:016d}"
        ]


def test_in_the_background_when_many_entries_have_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hmem_core.store.CHECKPOINT_EVERY", 50)
    with filled(tmp_path / "m", 200) as memory:
        assert memory._store._pending is not None
        memory._store._pending.result(timeout=60)
        assert memory.stats().checkpoint is not None
        expected = answers(memory)
    with open_memory(tmp_path / "m") as memory:
        assert answers(memory) == expected


@pytest.mark.parametrize("harm", ["gone", "empty"])
def test_a_journal_that_is_gone_is_not_replaced_by_a_new_one(tmp_path: Path, harm: str) -> None:
    with filled(tmp_path / "m", 20) as memory:
        memory.checkpoint()
    journal = tmp_path / "m" / "journal.sqlite"
    if harm == "gone":
        journal.unlink()
    else:
        journal.write_bytes(b"")
    with pytest.raises(hmem.Damaged, match="journal"):
        open_memory(tmp_path / "m")
