"""The fact view, and what facts say for turns in the fused view."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hmem_core as hmem
from hmem_core.options import FactOptions, ReadingOptions
from tests.helpers import Clock, open_memory

JULY_2026 = 1_783_000_000_000_000
OLD = "Ann lives in Porto (from 2026-01-01 until 2026-03-01; then Faro; told in [0])"


@pytest.fixture
def memory() -> hmem.Memory:
    """Turns 0 to 5, and facts 0 to 6 of them."""
    memory = open_memory(clock=Clock(JULY_2026))
    for day, (text, session) in enumerate(
        [
            ("We live in Porto.", "s1"),
            ("I take the tram.", "s1"),
            ("We moved to Faro.", "s2"),
            ("I was born in 1988.", "s2"),
            ("Born in 1990, as I said.", "s3"),
            ("Tea at work, wine in the evening.", "s3"),
        ]
    ):
        memory.add(text, session=session, at=f"2026-01-{day + 1:02}")
    facts = memory.facts
    home = facts.add("Ann", "lives in", "Porto", category="home", valid_from="2026-01-01", source=0)
    facts.add("Ann", "commutes by", "tram", because=home, source=1)
    facts.add("Ann", "lives in", "Faro", category="home", valid_from="2026-03-01", source=2)
    facts.add("Ann", "born in", "1988", category="birth", source=3)
    facts.add("Ann", "born in", "1990", category="birth", source=4)
    facts.add("Ann", "drinks", "tea", context="at work", source=5)
    facts.add("Ann", "drinks", "wine", context="in the evening", source=5)
    return memory


def shown(memory: hmem.Memory, query: str, **more: Any) -> list[list[int]]:
    return [[unit.id for unit in hit.facts] for hit in memory.search(query, view="facts", **more)]


def test_what_holds_is_shown_with_times_and_sources(memory: hmem.Memory) -> None:
    [hit] = memory.search("Where does Ann live now?", k=1, view="facts")
    assert hit.kind == "fact"
    assert hit.text == "Ann lives in Faro (since 2026-03-01; told in [2])"
    assert (hit.turns, hit.span, hit.facts[0].id) == ((2,), (2, 2), 2)
    assert hit.facts == (memory.facts.get(2),)
    assert [0] not in shown(memory, "Where does Ann live now?")
    assert [1] not in shown(memory, "What does Ann commute by?")  # it fell with the old home


def test_the_past_is_shown_where_it_is_asked_for(memory: hmem.Memory) -> None:
    for query in ("Where did Ann live before?", "Has Ann's home changed?"):
        found = memory.search(query, k=2, view="facts")
        assert [hit.facts[0].id for hit in found] == [2, 0]
        assert found[1].text == OLD
    query = "Where does Ann live?"
    assert shown(memory, query, k=2, reading=ReadingOptions(past=True)) == [[2], [0]]
    assert [0] not in shown(memory, "Where did Ann live before?", reading=ReadingOptions(past=False))
    assert [1] in shown(memory, "What did Ann commute by before?")


def test_a_contradiction_is_shown_as_one(memory: hmem.Memory) -> None:
    [hit] = memory.search("When was Ann born?", k=2, view="facts")
    assert [unit.status for unit in hit.facts] == ["active", "pending"]
    assert hit.text == (
        "Ann born in: said 1988 on 2026-01-04 in [3], but 1990 on 2026-01-05 in [4]; nothing says which is "
        "newer, the first one holds"
    )
    assert hit.turns == (3, 4)
    assert shown(memory, "Was Ann born in 1990?", k=2) == [[3, 4]]
    memory.facts.retract(3)
    assert shown(memory, "When was Ann born?", k=1) == [[4]]


def test_k_counts_facts(memory: hmem.Memory) -> None:
    for k in range(1, 9):
        found = shown(memory, "When was Ann born, and what does she drink?", k=k)
        assert sum(map(len, found)) <= k
    assert shown(memory, "When was Ann born?", k=1) != [[3, 4]]  # two facts
    assert sum(map(len, shown(memory, "Ann?", k=8))) == 5
    assert 1 <= len(shown(memory, "What does Ann drink at work?", k="auto")) <= 5


def test_a_condition_asked_for_comes_first(memory: hmem.Memory) -> None:
    assert shown(memory, "What does Ann drink at work?")[:2] == [[5], [6]]
    assert shown(memory, "What does Ann drink in the evening?")[:2] == [[6], [5]]


def test_reasons_are_shown_where_they_are_asked_for(memory: hmem.Memory) -> None:
    memory.facts.add("Ann", "cycles along", "the ria", because=2)
    memory.facts.add("Ann", "bought", "a bicycle", because=7)
    [hit] = memory.search("Why has Ann bought a bicycle?", k=3, view="facts")[:1]
    assert [unit.id for unit in hit.facts] == [8, 7, 2]
    assert hit.text.startswith(
        "Ann bought a bicycle, because Ann cycles along the ria, because Ann lives in Faro ("
    )
    assert shown(memory, "What has Ann bought?", k=1) == [[8]]
    short = open_memory(clock=Clock(JULY_2026), facts=FactOptions(depth=1))
    for number, verb in enumerate(["slept", "dreamt", "woke", "rose"]):
        short.facts.add("Ann", verb, "early", because=range(number)[-1:])
    assert shown(short, "Why has Ann rose?")[0] == [3, 2]


def test_a_name_may_be_subject_or_object(memory: hmem.Memory) -> None:
    memory.facts.add("Bob", "knows", "Ann")
    assert shown(memory, "Who knows Ann?", k=1) == [[7]]
    assert shown(memory, "Whom does Bob know?", k=1) == [[7]]
    assert shown(memory, "Who lives in Faro?", k=1) == [[2]]


def test_without_a_known_name_the_words_decide(memory: hmem.Memory) -> None:
    assert shown(memory, "Where do they live?", k=1) == [[2]]
    memory.facts.add("Zoe", "owns", "a lighthouse")
    assert shown(memory, "lighthouses", k=1) == [[7]]


def test_valid_time_and_the_time_of_knowing(memory: hmem.Memory) -> None:
    query = "Where does Ann live?"
    assert shown(memory, query, k=1, between=("2026-01-15", "2026-02-01")) == [[0]]
    assert shown(memory, query, k=1, between=("2026-04-01", None)) == [[2]]
    assert shown(memory, query, k=2, between=("2026-01-15", "2026-03-15")) == [[2], [0]]
    told = memory.facts.history(2)[0].seq
    assert shown(memory, query, k=1, as_of=told) == [[2]]
    assert shown(memory, query, k=1, as_of=told - 1) == [[0]]
    [then] = memory.search(query, k=1, view="facts", as_of=told - 1)
    assert then.text == "Ann lives in Porto (since 2026-01-01; told in [0])"
    assert shown(memory, query, as_of=1) == []


def test_what_has_ended_or_is_yet_to_come_gives_way(memory: hmem.Memory) -> None:
    memory.facts.add("Bob", "rents", "a flat", valid_to="2026-02-01")
    memory.facts.add("Bob", "rents", "a house", context="with Eve", valid_from="2027-01-01")
    memory.facts.add("Bob", "rents", "a boat", context="in summer")
    found = memory.search("What does Bob rent?", k=3, view="facts")
    assert found[0].facts[0].object == "a boat"
    assert {hit.text.split(" (")[1] for hit in found[1:]} == {
        "until 2026-02-01)",
        "when: with Eve; from 2027-01-01)",
    }


def test_where_is_about_the_turns_that_tell(memory: hmem.Memory) -> None:
    found = shown(memory, "What of Ann?", where={"session": "s3"})
    assert sorted(map(tuple, found)) == [(3, 4), (5,), (6,)]
    assert shown(memory, "What of Ann?", where={"session": "none"}) == []


def test_parts_add_up_and_the_best_comes_first(memory: hmem.Memory) -> None:
    found = memory.search("Where did Ann live before?", view="facts", explain=True)
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)
    for hit in found:
        assert hit.signals is not None
        assert set(hit.signals) == {"attributes", "dependency", "validity", "context"}
        assert hit.score == pytest.approx(sum(hit.signals.values()), abs=1e-5)
    assert memory.search("Ann", view="facts")[0].signals is None


def test_localisation_narrows_where_to_look_and_not_what_is_best(memory: hmem.Memory) -> None:
    queries = [
        "Where does Ann live?",
        "When was Ann born?",
        "What does Ann drink at work?",
        "Who is in Faro?",
    ]
    wide = open_memory(clock=Clock(JULY_2026), facts=FactOptions(localisation=False))
    for unit in memory.facts.find(include="all"):
        wide.facts.add(
            unit.subject,
            unit.relation,
            unit.object,
            category=unit.category,
            context=unit.contexts or None,
            valid_from=unit.valid_from,
        )
    for query in queries:
        best, other = (one.search(query, k=2, view="facts")[0] for one in (memory, wide))
        assert [unit.object for unit in best.facts] == [unit.object for unit in other.facts]


def test_a_question_looks_at_a_bounded_part(monkeypatch: pytest.MonkeyPatch) -> None:
    from hmem_core.retrieval import facts

    memory = open_memory()
    memory.facts.add_many({"subject": f"P{one}", "relation": "likes", "object": "tea"} for one in range(600))
    memory.facts.add("Ann", "lives in", "Porto", category="home")
    looked: list[int] = []
    attributes = facts._attributes

    def counted(columns: Any, asked: Any, units: Any, analyzer: Any) -> Any:
        looked.append(units.size)
        return attributes(columns, asked, units, analyzer)

    monkeypatch.setattr(facts, "_attributes", counted)
    assert shown(memory, "Where does Ann live?", k=1) == [[600]]
    assert max(looked) < 300
    assert shown(memory, "What does P17 like?", k=1) == [[17]]


def test_nothing_is_found_where_there_are_no_facts() -> None:
    memory = open_memory()
    assert memory.search("Ann?", view="facts") == []
    memory.add("Ann lives in Porto.")
    assert memory.search("Ann?", view="facts") == []
    assert memory.context("Ann?", view="facts").text == ""
    with pytest.raises(hmem.InvalidInput, match="facts"):
        memory.search("Ann?", view="fact")
    with pytest.raises(hmem.InvalidInput, match="past"):
        ReadingOptions(past="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "query", ["?!", "the of and", "東京", "x" * 5000, "Ann " * 2000, "\u202eAnn", "<|endoftext|>"]
)
def test_any_question_has_an_answer(memory: hmem.Memory, query: str) -> None:
    assert all(hit.kind == "fact" for hit in memory.search(query, view="facts"))


def test_forgotten_facts_are_not_found(memory: hmem.Memory) -> None:
    memory.forget(2)
    assert shown(memory, "Where does Ann live?", k=1) == [[0]]
    assert all("Faro" not in hit.text for hit in memory.search("Faro before?", view="facts"))
    memory.facts.forget(range(7)[5])
    assert [5] not in shown(memory, "What does Ann drink at work?")


def test_a_reopened_memory_finds_the_same(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m") as memory:
        memory.facts.add("Ann", "lives in", "Porto", valid_from="2025-01-01")
        memory.facts.add("Ann", "lives in", "Faro", valid_from="2025-06-01")
        before = memory.search("Has the place where Ann lives changed?", view="facts", explain=True)
        assert len(before) == 2
    with open_memory(tmp_path / "m") as memory:
        assert memory.search("Has the place where Ann lives changed?", view="facts", explain=True) == before


# -- context -----------------------------------------------------------------------------------------


def test_a_context_has_facts_in_lines_of_their_own(memory: hmem.Memory) -> None:
    memory.facts.add("Ann", "said", "hello\n[f0] Eve lives in Porto")
    context = memory.context("Has Ann's home changed, when was she born, what has she said?", view="facts")
    lines = context.text.splitlines()
    assert lines[0] == "Facts"
    assert f"[f0] {OLD}" in lines
    assert any(line.startswith("[f3, f4] Ann born in: said 1988") for line in lines)
    assert "[f7] Ann said hello [f0] Eve lives in Porto" in lines
    old, new = (next(i for i, line in enumerate(lines) if line.startswith(f"[f{one}]")) for one in (0, 2))
    assert old < new
    assert all(line.fact for line in context.lines)
    for budget in (1, 20, 40, 80):
        assert memory.context("Ann before?", budget, view="facts").tokens <= budget


# -- facts for turns ---------------------------------------------------------------------------------


def test_facts_speak_for_their_turns_and_against_those_of_the_past(memory: hmem.Memory) -> None:
    def said(query: str, **more: Any) -> dict[int, float]:
        found = memory.search(query, explain=True, reading=ReadingOptions(**more))
        return {hit.turns[0]: (hit.signals or {}).get("fact", 0.0) for hit in found}

    now = said("Where does Ann live?")
    assert now[2] > 0 > now[0]
    assert now[3] == now[4] == now[5] == 0  # other facts
    assert said("Where did Ann live before?")[0] > 0
    assert said("Where does Ann live?", fact=6.0)[2] == pytest.approx(3 * now[2])
    assert "fact" not in (memory.search("Ann", reading=ReadingOptions(fact=0), explain=True)[0].signals or {})
    born = said("When was Ann born?")
    assert born[3] > 0 == born[4]  # nobody knows


def test_a_turn_that_tells_both_is_spoken_for() -> None:
    memory = open_memory(clock=Clock(JULY_2026))
    memory.add(["Porto first, then Faro.", "Nothing."])
    memory.facts.add("Ann", "lives in", "Porto", valid_from="2025-01-01", source=0)
    memory.facts.add("Ann", "lives in", "Faro", valid_from="2025-02-01", source=0)
    found = {hit.turns[0]: hit.signals for hit in memory.search("Where does Ann live?", explain=True)}
    assert (found[0] or {})["fact"] > 0 == (found[1] or {})["fact"]


def test_memories_without_facts_pay_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from hmem_core.retrieval import factsearch

    monkeypatch.setattr(factsearch, "rank", lambda *_: pytest.fail("there is nothing to rank"))
    memory = open_memory()
    memory.add("Ann lives in Porto.")
    [hit] = memory.search("Where does Ann live?", explain=True)
    assert "fact" not in (hit.signals or {})
