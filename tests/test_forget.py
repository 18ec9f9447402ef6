"""Forgetting is complete: no read returns it, no file holds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hmem_core as hmem
from hmem_core.retrieval import reading
from tests.helpers import files_holding, open_memory

SECRET = "the vault code is kumquat-7731"


def filled(path: Path) -> hmem.Memory:
    memory = open_memory(path)
    memory.add([f"ordinary remark number {i}" for i in range(40)], session="plain")
    memory.add(
        SECRET,
        session="secret-session",
        speaker="Secretspeaker",
        key="secret-key",
        metadata={"note": "secretnote"},
    )
    memory.add([f"later remark number {i}" for i in range(40)], session="plain")
    return memory


@pytest.mark.parametrize("checkpointed", [False, True])
def test_no_file_holds_what_was_forgotten(tmp_path: Path, checkpointed: bool) -> None:
    memory = filled(tmp_path / "m")
    if checkpointed:
        memory.checkpoint()
        memory.close()
        memory = open_memory(tmp_path / "m")
    assert files_holding(tmp_path, SECRET)
    assert memory.forget(40).ids == (40,)
    for word in (SECRET, "kumquat", "secret-session", "Secretspeaker", "secret-key", "secretnote"):
        assert files_holding(tmp_path, word) == []
    memory.checkpoint()
    memory.close()
    for word in ("kumquat", "secret-session", "Secretspeaker", "secret-key", "secretnote"):
        assert files_holding(tmp_path, word) == []
    with open_memory(tmp_path / "m") as memory:
        assert len(memory.turns()) == 80


def test_no_read_returns_it_and_others_keep_ids_and_scores(tmp_path: Path) -> None:
    with filled(tmp_path / "m") as memory, open_memory(tmp_path / "m") as other:
        before = {hit.turns: hit.score for hit in memory.search(SECRET, k=100, view="dense")}
        assert other.search(SECRET, k=1)[0].turns == (40,)
        memory.forget(key="secret-key")
        for reader in (memory, other):
            after = {hit.turns: hit.score for hit in reader.search(SECRET, k=100, view="dense")}
            assert after == {turns: score for turns, score in before.items() if turns != (40,)}
            assert SECRET not in reader.context(SECRET, 5000).text
            assert all(turn.id != 40 for turn in reader.turns())
            assert reader.turns(session="secret-session") == []
            assert reader.search("x", where={"note": "secretnote"}) == []
            assert reader.search("x", where={"note": {"$exists": True}}) == []
            with pytest.raises(hmem.TurnForgotten):
                reader.get(40)
            with pytest.raises(hmem.TurnNotFound):
                reader.get(key="secret-key")
        assert memory.add("something new").ids == (81,)


def test_a_turn_that_is_forgotten_while_it_is_read_is_not_half_there(tmp_path: Path) -> None:
    with filled(tmp_path / "m") as memory:
        view = memory._store.view()

        class Forgetting:
            def __init__(self, column: Any) -> None:
                self.column = column

            def __getitem__(self, row: int) -> Any:
                value = self.column[row]
                memory.forget(40)
                return value

        for name in ("text", "key", "metadata"):
            disturbed = view._replace(**{name: Forgetting(getattr(view, name))})
            assert reading.turn(disturbed, 40) is None


def test_a_second_delete_says_so(tmp_path: Path) -> None:
    with filled(tmp_path / "m") as memory:
        memory.forget([3, 4])
        again = memory.forget([4, 5])
        assert again.ids == (5,)
        assert again.already == (4,)
        nothing = memory.forget(4)
        assert nothing.ids == ()
        assert nothing.already == (4,)
        with pytest.raises(hmem.TurnNotFound, match="forgotten already"):
            memory.forget(key="no such key")


def test_by_session_and_by_time_and_by_both(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m") as memory:
        for day in range(1, 7):
            memory.add(f"day {day}", session="odd" if day % 2 else "even", at=f"2026-01-0{day}")
        assert memory.forget(session="odd", before="2026-01-03").ids == (0,)
        assert memory.forget(session="nobody").ids == ()
        assert memory.forget(before="2026-01-04").ids == (1, 2)
        assert memory.forget(session="odd").ids == (4,)
        assert [turn.id for turn in memory.turns()] == [3, 5]


def test_bulk_deletes_have_no_limit(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m") as memory:
        memory.add([f"turn {i}" for i in range(3000)], session="s")
        memory.add("kept")
        assert len(memory.forget(session="s").ids) == 3000
        assert [turn.text for turn in memory.turns()] == ["kept"]


def test_an_unknown_id_forgets_nothing(tmp_path: Path) -> None:
    with filled(tmp_path / "m") as memory:
        with pytest.raises(hmem.TurnNotFound, match="9999"):
            memory.forget([1, 9999])
        assert memory.get(1).id == 1
        for ids in ("1", [True], [1.0]):
            with pytest.raises(hmem.InvalidInput):
                memory.forget(ids)  # type: ignore[arg-type]
        with pytest.raises(hmem.InvalidInput, match="say what to forget"):
            memory.forget()


def test_sizes_do_not_grow_with_forgetting(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m") as memory:
        for _ in range(3):
            memory.add(["x" * 2000 for _ in range(200)], session="s")
            memory.forget(session="s")
        assert memory.stats().disk_bytes < 200_000


def test_forgetting_interrupted_before_the_files_were_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = filled(tmp_path / "m")
    memory.checkpoint()
    monkeypatch.setattr(memory._store, "_erase", lambda: None)  # as if killed right after the append
    memory.forget(40)
    memory._store.journal.close()
    with open_memory(tmp_path / "m") as again:
        assert again.get(39).text == "ordinary remark number 39"
        with pytest.raises(hmem.TurnForgotten):
            again.get(40)
        assert files_holding(tmp_path, "kumquat") == []


@pytest.mark.parametrize("view", ["dense", "lexical", "fused"])
@pytest.mark.parametrize("query", [SECRET, "later remark number 7", "ordinary"])
def test_scores_are_those_of_a_memory_that_never_saw_it(tmp_path: Path, view: str, query: str) -> None:
    # But for what is inherited from the tree: turns keep the places that were decided when it was there.
    reading = hmem.ReadingOptions(tree=0.0)
    with filled(tmp_path / "m") as memory, open_memory(tmp_path / "clean") as clean:
        memory.forget(session="secret-session")
        clean.add([f"ordinary remark number {i}" for i in range(40)], session="plain")
        clean.add([f"later remark number {i}" for i in range(40)], session="plain")
        found, expected = (
            {hit.text: hit.score for hit in one.search(query, k=100, view=view, reading=reading)}
            for one in (memory, clean)
        )
        assert found == pytest.approx(expected, abs=1e-5)


def test_a_forgotten_turn_weighs_nothing_in_the_segments_around_it(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m", segments=hmem.SegmentOptions(tau=-1.0)) as memory:
        memory.add(["apples and pears", "a secret of kumquats", "apples and plums"])
        memory.forget(1)
        tree = memory._store.view(tree=True).tree
        kept = memory._store.view().vectors[0][[0, 2]].sum(axis=0)
        assert tree.norm[(tree.start == 0) & (tree.end == 2)] == pytest.approx(
            float((kept**2).sum() ** 0.5), abs=1e-4
        )
        for hit in memory.search("kumquats", k=3, view="time"):
            assert 1 not in hit.turns
            assert "secret" not in hit.text
