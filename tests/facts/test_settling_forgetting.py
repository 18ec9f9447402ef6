"""What is left of facts that a model read from turns, when some of these are forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hmem_core.effects import Ask
from hmem_core.llm.prompts.fact_extraction import Extracted, Extraction
from tests.events.judge import Driver, sections
from tests.facts.model import CONTRADICTING, Reader, by_status, told, with_reader
from tests.helpers import files_holding
from tests.settled import check
from tests.test_replay import assert_same, replayed

# -- forgetting --------------------------------------------------------------------------------------


class Gossip(Reader):
    """Puts the last word that was said before into every fact."""

    def fact_extraction(self, shown: dict[str, list[Any]]) -> Extraction:
        before = shown.get("Said before:", [{"text": "nothing"}])[-1]["text"].split()[-1]
        turns = shown["The turns to read:"]
        return Extraction([Extracted(one["id"], one["text"], "follows", before) for one in turns])


def test_forgetting_a_turn_that_was_shown_takes_what_it_may_have_given(tmp_path: Path) -> None:
    with with_reader(Driver(Gossip()), tmp_path / "m", batch=1, window=1) as memory:
        memory.add(["a kumquat", "Ann", "Bo", "Cleo"], session="s")
        assert "Ann follows kumquat" in told(memory)
        memory.checkpoint()
        memory.forget(0)
        assert files_holding(tmp_path, "kumquat") == []
        assert memory.stats().waiting == 1
        assert_same(memory._store._state.arrays(), replayed(memory).arrays())
        memory.settle()
        check(memory)
        assert told(memory) == {"Ann follows nothing", "Bo follows Ann", "Cleo follows Bo"}
    with with_reader(Driver(Gossip()), tmp_path / "m", batch=1, window=1) as memory:
        check(memory)


class Hearsay(Reader):
    """Puts the object of the first known fact into every fact."""

    def fact_extraction(self, shown: dict[str, list[Any]]) -> Extraction:
        known = shown.get("Known facts:", [{"object": "kumquat"}])[0]["object"]
        turns = shown["The turns to read:"]
        return Extraction([Extracted(one["id"], "Ann", f"eats {one['id']}", known) for one in turns])


def test_what_a_fact_holds_of_a_known_one_goes_with_it(tmp_path: Path) -> None:
    with with_reader(Driver(Hearsay()), tmp_path / "m", batch=1, window=0) as memory:
        memory.add(["Ann speaks of a kumquat", "Ann again", "Ann, and no more"])
        assert len(memory.facts.find("Ann")) == 3
        memory.checkpoint()
        memory.forget(0)
        assert memory.facts.find(include="all") == []
        assert files_holding(tmp_path, "kumquat") == []
        assert memory.stats().waiting == 2
        assert_same(memory._store._state.arrays(), replayed(memory).arrays())


def test_facts_that_hold_nothing_of_what_is_forgotten_stay() -> None:
    driver = Driver(Reader())
    with with_reader(driver, batch=1, window=0) as memory:
        memory.add("Ann | lives in | Porto")
        memory.add("Ann | likes | tea")
        memory.add("Bo | knows | Ann")
        assert dict(sections(driver.asked[1]))["Known facts:"]
        memory.forget(0)
        assert told(memory) == {"Ann likes tea", "Bo knows Ann"}
        check(memory)


def test_a_verdict_goes_with_the_facts_that_were_compared() -> None:
    with with_reader(Driver(Reader("replaces")), batch=1, window=0) as memory:
        memory.add(CONTRADICTING[0])
        memory.add(CONTRADICTING[1])
        assert by_status(memory) == {"Ann lives in Porto": "superseded", "Ann lives in Lisbon": "active"}
        (lisbon,) = memory.facts.find()
        assert lisbon.valid_from is not None
        memory.forget(0)
        check(memory)
        (lisbon,) = memory.facts.find(include="all")
        assert (str(lisbon), lisbon.status, lisbon.valid_from) == ("Ann lives in Lisbon", "active", None)


def test_forgetting_a_fact_does_not_bring_it_back() -> None:
    with with_reader(Driver(Reader()), batch=1) as memory:
        memory.add("Ann | lives in | Porto")
        memory.facts.forget(memory.facts.find())
        memory.settle()
        check(memory)
        assert memory.facts.find(include="all") == []


@pytest.mark.parametrize("purpose", ["fact_extraction", "fact_consistency"])
def test_a_turn_that_is_forgotten_while_the_model_reads_it_is_in_nothing(purpose: str) -> None:
    with with_reader(Driver(Reader()), batch=2) as memory:
        victims = [0]

        def meanwhile(ask: Ask) -> Any:
            if ask.purpose == purpose and victims:
                memory.forget(victims.pop())
            return Reader("replaces")(ask)

        memory._driver = Driver(meanwhile)  # type: ignore[assignment]
        memory.add(CONTRADICTING)
        memory.settle()
        assert not victims
        check(memory)
        assert by_status(memory) == {"Ann lives in Lisbon": "active"}
