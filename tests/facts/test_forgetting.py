"""What is forgotten of facts is gone, and so is what rested on it alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hmem_core as hmem
from hmem_core.state import pack_vector
from tests.helpers import files_holding, hashing_encoder, open_memory
from tests.test_replay import assert_same, replayed

SECRETS = ("Quixotina", "hoards", "kumquats", "fruitlore", "in-the-vault")


def filled(path: Path) -> hmem.Memory:
    memory = open_memory(path)
    memory.add(["the secret turn", "another turn"])
    facts = memory.facts
    slots = {"category": "fruitlore", "context": "in-the-vault"}
    facts.add("Quixotina", "hoards", "kumquats", **slots, source=0, key="k-e-y")
    facts.add("Ann", "lives in", "Porto", source=[0, 1])
    facts.add("Ann", "worries about", "storage", because=[0])
    facts.add("Ann", "worries about", "storage", because=[1])
    facts.add("Ann", "rents", "a barn", because=[0])
    return memory


def gone(path: Path) -> None:
    for word in SECRETS:
        assert files_holding(path, word) == []
    vectors = hashing_encoder().embed(list(SECRETS))
    for vector in vectors:
        for form in (pack_vector(vector), vector.astype("<f4").tobytes()):
            assert not any(form in file.read_bytes() for file in path.rglob("*") if file.is_file())


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_forgotten_turn_takes_the_facts_that_only_it_told(tmp_path: Path, checkpointed: bool) -> None:
    memory = filled(tmp_path / "m")
    if checkpointed:
        memory.checkpoint()
        memory.close()
        memory = open_memory(tmp_path / "m")
    assert files_holding(tmp_path, "kumquats")
    assert files_holding(tmp_path, "k-e-y")
    memory.forget(0)
    gone(tmp_path)
    assert files_holding(tmp_path, "k-e-y") == []
    with pytest.raises(hmem.UnitForgotten):
        memory.facts.get(0)
    assert memory.facts.find("Quixotina", include="all") == []
    assert memory.facts.get(1).sources == (1,)
    assert memory.facts.get(2).status == "active", "it is supported otherwise"
    barn = memory.facts.get(3)
    assert (barn.status, memory.facts.history(3)[-1].why) == ("outdated", "its support fell")
    assert memory.facts.why(3).because == ((),)
    assert_same(memory._store._state.arrays(), replayed(memory).arrays())
    memory.checkpoint()
    memory.close()
    with open_memory(tmp_path / "m") as memory:
        assert_same(memory._store._state.arrays(), replayed(memory).arrays())
    gone(tmp_path)


def test_a_forgotten_value_frees_the_one_it_superseded_and_leaves_no_date(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m") as memory:
        memory.add("We move on the second of March.")
        memory.facts.add("Ann", "lives in", "Porto")
        told = memory.facts.add("Ann", "lives in", "Faro", valid_from="2026-03-02", source=0)
        memory.forget(0)
        unit = memory.facts.get(0)
        assert (unit.status, unit.valid_to, unit.by) == ("active", None, None)
        assert all(version.valid_to is None for version in memory.facts.history(0))
        assert memory.facts.find(as_of=told.seq) == []
        start = int(np.datetime64("2026-03-02", "us").astype(np.int64))
        facts = memory._store._state.facts
        for table in (facts.units, facts.tellings, facts.changes):
            assert not any(start in table[name] for name in ("valid_from", "valid_to"))


def test_facts_are_forgotten_by_themselves(tmp_path: Path) -> None:
    with filled(tmp_path / "m") as memory:
        forgotten = memory.facts.forget([0])
        assert forgotten.ids == (0,)
        gone(tmp_path)
        assert len(memory.turns()) == 2
        assert memory.facts.get(3).status == "outdated"
        with pytest.raises(hmem.UnitForgotten):
            memory.facts.forget(0)
        with pytest.raises(hmem.UnitNotFound, match="unit 77"):
            memory.facts.forget([1, 77])
        assert memory.facts.get(1).status == "active"
        again = memory.facts.add("Quixotina", "hoards", "kumquats")
        assert again.added == (4,)
    with open_memory(tmp_path / "m") as memory:
        assert memory.facts.get(4).subject == "Quixotina"


def test_what_was_retracted_is_forgotten_with_its_turn_and_the_reason_too(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m") as memory:
        memory.add("a joke about kumquats")
        memory.facts.add("Ann", "hoards", "kumquats", source=0)
        memory.facts.retract(0, "the kumquats were a joke")
        memory.forget(0)
        assert files_holding(tmp_path, "kumquats") == []


def test_names_that_others_use_stay_and_so_do_their_aliases(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m") as memory:
        memory.add(["one", "two"])
        memory.facts.add("Quixotina", "hoards", "kumquats", source=0)
        memory.facts.add("Quixotina", "eats", "plums", source=1)
        memory.facts.alias("Tina", "Quixotina")
        memory.facts.policy("hoards", "many")
        memory.forget(0)
        assert memory.facts.find("tina")[0].subject == "Quixotina"
        assert files_holding(tmp_path, "hoards") == []
        memory.forget(1)
        for word in ("Quixotina", "Tina", "plums"):
            assert files_holding(tmp_path, word) == []
        assert memory.facts.add("Tina", "eats", "plums").added == (2,)
        assert memory.facts.find("Quixotina") == []


def test_an_undo_of_what_is_forgotten_says_so(tmp_path: Path) -> None:
    with filled(tmp_path / "m") as memory:
        seq = memory.facts.history(0)[0].seq
        memory.forget(0)
        with pytest.raises(hmem.RewriteNotFound, match="forgotten"):
            memory.facts.undo(seq)
