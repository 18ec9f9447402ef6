"""Guided retrieval as a program, over records made by hand and a model that is a function."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hmem_core.budgets import limited
from hmem_core.effects import Ask, Single, drive
from hmem_core.errors import LLMMissing, LLMUnavailable, MalformedReply
from hmem_core.events.guided import Account, Material, Selected, search_text, select
from hmem_core.llm.prompts.question_keywords import Keywords
from hmem_core.llm.prompts.rendering import ShownTurn
from hmem_core.llm.prompts.turn_prediction import Opened
from hmem_core.options import Budget, GuidedOptions

START = datetime(2023, 1, 1, tzinfo=UTC)
Say = Callable[[str, list[int]], Any]


def turn(number: int, text: str = "said") -> ShownTurn:
    return ShownTurn(number, START + timedelta(days=number), "Ann", text)


def material(semantic: Sequence[int], *events: Sequence[int]) -> Material:
    opened = [Opened(id=n, summary=f"event {n}", turns=tuple(map(turn, one))) for n, one in enumerate(events)]
    worth = {one: -float(one) for one in (*semantic, *(one for event in events for one in event))}
    return Material([turn(one) for one in semantic], opened, worth)


class Scripted:
    """Answers by purpose with what `say` names of the ids shown; remembers the ids of each question."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self.asked: list[tuple[str, list[int]]] = []

    def __call__(self, effect: Single) -> Any:
        assert isinstance(effect, Ask)
        lines = [one for one in effect.messages[1].content.split("\n") if one.startswith('{"id"')]
        shown = [json.loads(one)["id"] for one in lines]
        self.asked.append((effect.purpose, shown))
        said = self.say(effect.purpose, shown)
        if isinstance(said, Exception):
            raise said
        return effect.schema(said)

    @property
    def counts(self) -> Counter[str]:
        return Counter(purpose for purpose, _ in self.asked)


def run(found: Material, say: Say, **options: Any) -> tuple[Selected, Scripted]:
    scripted = Scripted(say)
    return drive(select("Where?", found, Account(), GuidedOptions(**options)), scripted), scripted


def everything(purpose: str, shown: list[int]) -> Any:
    return shown


def stage(selected: Selected, name: str) -> tuple[int, ...]:
    (found,) = [one.turns for one in selected.stages if one.name == name]
    return found


def test_candidates_are_what_vectors_found_and_what_was_predicted() -> None:
    found, scripted = run(
        material([3, 1], [1, 7, 8], [3, 9]),
        lambda purpose, shown: [7, 9] if purpose == "turn_prediction" else [1, 9],
        together=1,
    )
    assert stage(found, "vectors") == (3, 1)
    assert stage(found, "prediction") == (3, 1, 7, 9)
    assert found.kept == (1, 9)
    assert found.predicted == {7, 9}
    assert found.judged
    assert scripted.asked[:2] == [("turn_prediction", [1, 7, 8]), ("turn_prediction", [3, 9])]
    assert scripted.asked[2] == ("turn_filter", [1, 3, 7, 9])  # in the order of time


def test_what_the_model_invents_or_repeats_does_not_count() -> None:
    found, _ = run(material([3], [7, 8]), lambda purpose, shown: [shown[-1], 99, "x", shown[-1], -5, "[8]"])
    assert found.predicted == {8}
    assert found.kept == (8,)


@pytest.mark.parametrize("events", [(), ([7, 8],)])
def test_never_empty(events: Sequence[Sequence[int]]) -> None:
    found, _ = run(material([3, 1], *events), lambda purpose, shown: [])
    assert found.kept == (1, 3)
    assert not found.judged
    # Where it predicted and then kept nothing, what vectors found stands too.
    found, _ = run(
        material([3, 1], *events), lambda purpose, shown: shown if purpose == "turn_prediction" else []
    )
    assert found.kept == (1, 3)


def test_nothing_to_choose_from_asks_nothing() -> None:
    found, scripted = run(material([]), everything)
    assert found.kept == ()
    assert scripted.asked == []


def test_calls_of_the_faithful_mode_are_the_papers() -> None:
    """One for the keywords, one for each of ten events, one for each ten candidates; the answer comes on top.
    So 24 candidates take 15 calls in all; the paper's mean is about 14.4."""
    options = GuidedOptions.faithful()
    events = [[n, n + 1] for n in range(100, 120, 2)]
    found = material(range(10), *events)
    predicted = [n for n, _ in events] + [101, 103, 105, 107]
    scripted = Scripted(
        lambda purpose, shown: (
            ["Porto"]
            if purpose == "question_keywords"
            else [n for n in shown if n in predicted]
            if purpose == "turn_prediction"
            else shown
        )
    )
    account = Account()
    assert drive(search_text("Where?", account, options), scripted) == "Porto"
    selected = drive(select("Where?", found, account, options), scripted)
    assert len(selected.kept) == 24
    assert scripted.counts == {"question_keywords": 1, "turn_prediction": 10, "turn_filter": 3}
    assert [one.asks for one in selected.stages] == [0, 10, 3]
    # Asking about an event adds nothing where vectors found all its turns; the paper asks nevertheless.
    known = material(range(10), *[[n] for n in range(10)])
    again = Scripted(lambda purpose, shown: shown)
    drive(select("Where?", known, Account(), options), again)
    assert again.counts == {"turn_prediction": 10, "turn_filter": 1}
    default = Scripted(lambda purpose, shown: shown)
    assert drive(select("Where?", known, Account(), GuidedOptions()), default).kept == tuple(range(10))
    assert default.counts == {"turn_filter": 1}


def test_small_events_share_a_question_and_find_the_same() -> None:
    found = material(range(5), *[[n] for n in range(100, 110)])
    wanted = {101, 104, 109}

    def say(purpose: str, shown: list[int]) -> list[int]:
        return [one for one in shown if one in wanted]

    alone, many = run(found, say, together=1)
    shared, few = run(found, say, together=4)
    assert (many.counts["turn_prediction"], few.counts["turn_prediction"]) == (10, 3)
    assert alone.kept == shared.kept == (101, 104, 109)


@pytest.mark.parametrize(
    ("options", "asks", "candidates"),
    [
        ({"events": False}, {"turn_filter": 1}, (3, 1)),
        ({"prediction": False}, {"turn_filter": 1}, (3, 1, 7, 8)),
        ({"filter": False}, {"turn_prediction": 1}, (3, 1, 7, 8)),
        ({"filter": False, "prediction": False}, {}, (3, 1, 7, 8)),
    ],
)
def test_what_is_switched_off_is_not_asked(
    options: dict[str, bool], asks: dict[str, int], candidates: tuple[int, ...]
) -> None:
    found, scripted = run(material([3, 1], [7, 8]), everything, **options)
    assert scripted.counts == asks
    assert stage(found, "prediction") == candidates
    assert sorted(found.kept) == sorted(candidates)
    assert found.judged == options.get("filter", True)


def test_a_model_that_names_everything_is_bounded() -> None:
    found, scripted = run(material(range(10), *[range(n, n + 40) for n in range(100, 500, 40)]), everything)
    assert len(stage(found, "prediction")) == 60
    assert stage(found, "prediction")[:12] == (*range(10), 100, 101)  # predicted ones by their worth
    assert scripted.counts["turn_filter"] == 6


def test_one_question_that_fails_costs_only_its_own(caplog: pytest.LogCaptureFixture) -> None:
    def say(purpose: str, shown: list[int]) -> Any:
        if 7 in shown or 3 in shown:
            return MalformedReply("no JSON", "broken")
        return shown[:1]

    with caplog.at_level(logging.WARNING, "hmem.llm"):
        found, _ = run(material([3, 1], [7, 8], [20, 21]), say, together=1, chunk=2)
    assert found.predicted == {20}
    # The part with turn 3 was not judged, so all of it stays; of the other the model kept one.
    assert found.kept == (1, 3, 20)
    assert found.judged
    assert [one.failed for one in found.stages] == [0, 1, 1]
    assert "1 of 2 questions failed" in caplog.text


def test_with_the_model_down_one_stage_asks_and_vectors_decide(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "hmem.llm"):
        found, scripted = run(
            material([3, 1], [7, 8], [9]), lambda purpose, shown: LLMUnavailable("down"), together=1
        )
    assert found.kept == (1, 3)
    assert not found.judged
    assert scripted.counts == {"turn_prediction": 2}
    assert "goes on without the model: down" in caplog.text
    account, scripted = Account(), Scripted(lambda purpose, shown: LLMUnavailable("down"))
    assert drive(search_text("Where?", account, GuidedOptions(query="both")), scripted) == "Where?"
    drive(select("Where?", material([3], [7]), account, GuidedOptions()), scripted)
    assert scripted.counts == {"question_keywords": 1}


def test_a_budget_that_ends_mid_way_leaves_a_result(caplog: pytest.LogCaptureFixture) -> None:
    scripted = Scripted(everything)
    program = select("Where?", material([3, 1], [7], [8], [9]), Account(), GuidedOptions(together=1))
    with caplog.at_level(logging.WARNING, "hmem.llm"):
        found = drive(limited(program, Budget(calls=2)), scripted)
    assert scripted.counts == {"turn_prediction": 2}
    assert found.predicted == {7, 8}
    assert sorted(found.kept) == [1, 3, 7, 8]
    assert not found.judged
    assert "1 of 3 questions failed" in caplog.text


def test_no_model_at_all_is_an_error() -> None:
    with pytest.raises(LLMMissing):
        run(material([3], [7]), lambda purpose, shown: LLMMissing("none"))


@pytest.mark.parametrize(
    ("query", "text"),
    [("question", "Where?"), ("keywords", "Porto, Douro"), ("both", "Where?\nPorto, Douro")],
)
def test_what_is_searched_for(query: Any, text: str) -> None:
    options = GuidedOptions(query=query)
    assert drive(search_text("Where?", Account(), options), lambda ask: Keywords(["Porto", "Douro"])) == text
    assert drive(search_text("Where?", Account(), options), lambda ask: Keywords(["…", ""])) == "Where?"


@pytest.mark.parametrize(
    "options",
    [{"query": "guess"}, {"chunk": 0}, {"shown": 1000}, {"semantic_turns": 0}, {"predicted": -1.0}],
)
def test_options_without_meaning_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        GuidedOptions(**options)
