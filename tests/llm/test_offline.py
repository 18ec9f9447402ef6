"""Programs in lockstep over a scripted batch endpoint."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hmem_core as hmem
from hmem_core.budgets import limited
from hmem_core.effects import Ask, Embed, Message, Program, Together
from hmem_core.errors import BudgetExceeded, LLMRefused, LLMUnavailable, MalformedReply
from hmem_core.options import Budget, Prices
from tests.llm.offline_bench import Bench, Programs, says
from tests.llm.programs import Said, ask, asking, at_once, echo, in_turn
from tests.llm.scripted import (
    Arrived,
    ChatRequest,
    Progress,
    Reply,
    ScriptedServer,
    dropped,
    malformed,
    null_content,
    rate_limited,
    refused,
    truncated,
    unauthorized,
    unavailable,
    unsupported,
)


@pytest.fixture
def server(scripted_server: ScriptedServer) -> ScriptedServer:
    scripted_server.answer = echo
    return scripted_server


@pytest.fixture
def bench(server: ScriptedServer, tmp_path: Path) -> Bench:
    return Bench(server, tmp_path)


# -- lockstep ----------------------------------------------------------------------------------------


def test_each_round_is_one_batch(bench: Bench) -> None:
    programs: Programs = {f"p{n}": partial(in_turn, f"p{n}", n) for n in range(4)}
    said = bench.run(programs)
    assert said == {f"p{n}": [f"p{n}.{i}" for i in range(n)] for n in range(4)}
    assert [len(batch.lines) for batch in bench.server.batches.values()] == [3, 2, 1]


def test_the_same_question_is_asked_once(bench: Bench) -> None:
    said = bench.run({name: partial(asking, "x", purpose=name) for name in "abc"})
    assert said == dict.fromkeys("abc", "x")
    assert (bench.server.paid, bench.total.calls, bench.total.saved) == (1, 1, 2)


def test_batches_keep_to_their_limits(bench: Bench) -> None:
    bench.run({"p": partial(at_once, "p", 5)}, max_lines=2)
    assert [len(batch.lines) for batch in bench.server.batches.values()] == [2, 2, 1]
    bench.run({"q": partial(at_once, "q", 3)}, max_bytes=1)
    assert [len(batch.lines) for batch in bench.server.batches.values()][3:] == [1, 1, 1]


def test_texts_of_all_programs_are_embedded_together(bench: Bench) -> None:
    def program(name: str) -> Program[list[float]]:
        first: np.ndarray = yield Embed((name, "shared"))
        said, rows = yield Together((ask(name), Embed((f"{name} again",))))
        return [float(first.sum()), said.text, len(rows)]

    said = bench.run({name: partial(program, name) for name in "ab"})
    assert [one[1:] for one in said.values()] == [["a", 1], ["b", 1]]
    assert bench.encoder.batches == [["a", "shared", "b"], ["a again", "b again"]]
    assert len(bench.server.batches) == 1


def test_a_program_that_fails_fails_alone(bench: Bench) -> None:
    def broken() -> Program[None]:
        yield ask("x")
        raise ValueError("mine")

    said = bench.run({"a": broken, "b": partial(asking, "b")})
    assert said["b"] == "b"
    assert str(said["a"]) == "mine"


def test_what_cannot_be_asked_fails_alone(bench: Bench) -> None:
    def wrong() -> Program[Any]:
        return (yield Ask("test", (Message("user", "x"),), dict[str, int]))

    said = bench.run({"a": wrong, "b": partial(asking, "b"), "c": partial(asking, "\ud800")})
    assert said["b"] == "b"
    assert isinstance(said["a"], hmem.InvalidInput)
    assert isinstance(said["c"], UnicodeError)


# -- failures ----------------------------------------------------------------------------------------


def test_lines_that_failed_go_into_a_later_batch(bench: Bench) -> None:
    bench.server.faults.add(rate_limited(), when=says("p.1"), times=1)
    bench.server.faults.add(dropped(), when=says("p.2"), times=1)
    assert bench.once(at_once("p", 4)) == [f"p.{n}" for n in range(4)]
    assert [len(batch.lines) for batch in bench.server.batches.values()] == [4, 2]
    assert (bench.server.paid, bench.total.calls, bench.total.retries) == (4, 4, 2)


def test_lines_that_waited_in_vain_go_into_a_later_batch(bench: Bench) -> None:
    expired = Progress(("validating", "in_progress", "finalizing", "expired"), lines=2)
    bench.server.progress = lambda number: expired if number == 0 else Progress()
    assert bench.once(at_once("p", 5)) == [f"p.{n}" for n in range(5)]
    assert bench.server.paid == 5


def test_lines_that_got_lost_are_asked_again(bench: Bench) -> None:
    lost = Progress(edit=lambda output: output.splitlines(keepends=True)[0])
    bench.server.progress = lambda number: lost if number == 0 else Progress()
    assert bench.once(at_once("p", 3)) == ["p.0", "p.1", "p.2"]
    assert [len(batch.lines) for batch in bench.server.batches.values()] == [3, 2]


def test_a_limit_on_what_is_enqueued_passes(bench: Bench) -> None:
    bench.server.progress = lambda n: Progress(("validating", "failed")) if n == 0 else Progress()
    assert bench.once(asking("x")) == "x"
    assert bench.server.paid == 1


def test_a_wrong_input_is_a_refusal(bench: Bench) -> None:
    failed = Progress(("validating", "failed"), failure=("invalid_model", "no such model"))
    bench.server.progress = failed
    said = bench.run({name: partial(asking, name) for name in "ab"})
    for error in said.values():
        assert isinstance(error, LLMRefused)
        assert "no such model" in str(error)
    assert len(bench.server.batches) == 1
    assert bench.total.failures == 2


def test_only_the_lines_that_are_wrong_are_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from hmem_core.llm import offline

    def line(name: str, body: dict[str, Any]) -> bytes:
        return b"{broken}\n" if body["messages"][-1]["content"] == "b" else sound(name, body)

    sound = offline.request_line
    monkeypatch.setattr(offline, "request_line", line)
    said = bench.run({name: partial(asking, name) for name in "abc"})
    assert isinstance(said.pop("b"), LLMRefused)
    assert said == {"a": "a", "c": "c"}


def test_a_lost_answer_does_not_pay_twice(bench: Bench) -> None:
    post = {"on": "batches", "when": lambda one: one.method == "POST", "times": 1}
    bench.server.faults.add(dropped(done=True), **post)
    bench.server.faults.add(malformed(), **post)
    assert bench.once(in_turn("p", 2)) == ["p.0", "p.1"]
    assert (bench.server.paid, len(bench.server.batches)) == (2, 2)


@pytest.mark.parametrize("fault", [truncated(), dropped(), unavailable(), rate_limited(0.01)])
@pytest.mark.parametrize("kind", ["files", "batches"])
def test_calls_that_fail_are_made_again(bench: Bench, kind: str, fault: Any) -> None:
    bench.server.faults.add(fault, on=kind, at=(0, 2, 4))
    assert bench.once(asking("x")) == "x"
    assert (bench.server.paid, len(bench.server.batches)) == (1, 1)


def test_a_download_that_was_cut_is_fetched_again(bench: Bench) -> None:
    bench.server.faults.add(malformed(), on="files", when=lambda one: one.method == "GET", times=2)
    assert bench.once(at_once("p", 4)) == [f"p.{n}" for n in range(4)]
    assert bench.server.paid == 4


def test_a_server_that_is_down_stops_the_run_which_goes_on_later(bench: Bench) -> None:
    bench.server.faults.add(unavailable(), on="batches", when=lambda one: one.method == "GET")
    with pytest.raises(LLMUnavailable):
        bench.once(in_turn("p", 2))
    bench.server.faults.clear()
    assert bench.once(in_turn("p", 2)) == ["p.0", "p.1"]
    assert bench.server.paid == 2


def test_a_server_that_refuses_stops_the_run(bench: Bench) -> None:
    bench.server.faults.add(unauthorized(), on="files")
    with pytest.raises(LLMRefused, match="401"):
        bench.once(asking("x"))
    bench.server.faults.clear()
    assert bench.once(asking("x")) == "x"


def test_a_batch_that_the_server_has_lost_is_not_paid_for_again(bench: Bench) -> None:
    bench.server.faults.add(unavailable(), on="batches", when=lambda one: one.method == "GET")
    with pytest.raises(LLMUnavailable):
        bench.once(asking("x"))
    bench.server.faults.clear()
    bench.server.batches.clear()
    with pytest.raises(LLMRefused, match="No batch found") as caught:
        bench.once(asking("x"))
    assert "new record" in caught.value.__notes__[0]
    assert bench.server.batches == {}


def test_a_batch_that_the_server_has_lost_does_not_keep_others_from_being_recorded(bench: Bench) -> None:
    bench.server.faults.add(unavailable(), on="batches", when=lambda one: one.path.endswith("batch_1"))
    with pytest.raises(LLMUnavailable):
        bench.once(at_once("p", 3), max_lines=1)
    bench.server.faults.clear()
    assert len(bench.server.batches) == 3
    del bench.server.batches["batch_1"]
    with pytest.raises(LLMRefused, match="No batch found"):
        bench.once(at_once("p", 3), max_lines=1)
    with pytest.raises(LLMRefused, match="No batch found"):
        bench.run({})
    assert bench.server.paid == 2
    assert all(batch.status == "completed" for batch in bench.server.batches.values())
    assert len(bench.server.files) == 1


# -- replies -----------------------------------------------------------------------------------------


def test_a_malformed_reply_is_repaired_in_the_next_batch(bench: Bench) -> None:
    def answer(request: ChatRequest) -> Any:
        if "cannot be used" in request.text:
            return {"text": "mended"}
        return "no JSON" if request.text == "a.0" else echo(request)

    bench.server.answer = answer
    said = bench.run({name: partial(in_turn, name, 2) for name in "ab"})
    assert said == {"a": ["mended", "a.1"], "b": ["b.0", "b.1"]}
    assert [len(batch.lines) for batch in bench.server.batches.values()] == [2, 2, 1]
    assert bench.total.calls == bench.server.paid == 5
    again = bench.run({"a": partial(in_turn, "a", 2)})
    assert (again["a"], bench.server.paid) == (["mended", "a.1"], 5)


def test_a_reply_that_was_cut_gets_more_room(bench: Bench) -> None:
    bench.server.answer = lambda request: {"text": " ".join(["word"] * 10)}

    def short() -> Program[Said]:
        return (yield ask("x", max_tokens=12))

    assert len(bench.run({"p": short})["p"].text.split()) == 10
    assert [one.json["max_tokens"] for one in bench.server.asks] == [12, 24]


def test_a_reply_malformed_twice_fails(bench: Bench) -> None:
    bench.server.answer = lambda request: "no JSON"
    assert isinstance(bench.once(asking("x")), MalformedReply)
    assert (bench.server.paid, bench.total.failures) == (2, 1)


@pytest.mark.parametrize(
    ("fault", "kind", "asked"), [(refused(), "refused", 1), (null_content(), "empty", 2)]
)
def test_no_reply(bench: Bench, fault: Any, kind: str, asked: int) -> None:
    bench.server.faults.add(fault)
    error = bench.once(asking("x"))
    assert (error.kind, bench.server.paid) == (kind, asked)


def test_what_a_server_does_not_know_is_said_otherwise(bench: Bench) -> None:
    bench.server.faults.add(unsupported("json_schema"))
    assert bench.once(in_turn("p", 2), tries=1, stragglers="fail") == ["p.0", "p.1"]
    assert bench.server.paid == 2
    assert bench.once(asking("q")) == "q"
    forms = [one.chat.response_format["type"] for one in bench.server.asks]
    assert forms == ["json_schema", *["json_object"] * 3]


# -- stragglers and budgets --------------------------------------------------------------------------


def in_a_batch(arrived: Arrived) -> bool:
    return arrived.batch is not None and arrived.chat.text == "p.0"


def test_stragglers_go_online(bench: Bench) -> None:
    bench.server.faults.add(rate_limited(), when=in_a_batch)
    programs: Programs = {name: partial(in_turn, name, 2) for name in "pq"}
    said = bench.run(programs, tries=2)
    assert said == {"p": ["p.0", "p.1"], "q": ["q.0", "q.1"]}
    alone = [one.chat.text for one in bench.server.asks if one.batch is None]
    assert (alone, bench.server.paid, bench.total.calls) == (["p.0"], 4, 4)
    assert bench.run(programs, tries=2) == said
    assert (bench.server.paid, bench.total.calls) == (4, 4)


def test_stragglers_fail(bench: Bench) -> None:
    bench.server.faults.add(rate_limited(), when=in_a_batch)
    said = bench.run({name: partial(in_turn, name, 2) for name in "pq"}, tries=2, stragglers="fail")
    assert isinstance(said["p"], LLMUnavailable)
    assert said["q"] == ["q.0", "q.1"]
    assert all(one.batch for one in bench.server.asks)


def test_a_straggler_that_fails_online_too(bench: Bench) -> None:
    bench.server.faults.add(rate_limited(), when=in_a_batch)
    bench.server.faults.add(unauthorized(), when=says("p.0"))
    assert isinstance(bench.once(in_turn("p", 2), tries=1), LLMRefused)
    assert bench.total.failures == 1
    bench.server.faults.clear()
    assert bench.once(in_turn("p", 2), tries=1) == ["p.0", "p.1"]


def test_a_budget_reaches_into_the_programs_and_over_restarts(bench: Bench) -> None:
    llm = {"budget": Budget(calls=3)}
    said = bench.run({f"p{n}": partial(in_turn, f"p{n}", 2) for n in range(2)}, llm)
    assert said["p0"] == ["p0.0", "p0.1"]
    assert isinstance(said["p1"], BudgetExceeded)
    assert isinstance(bench.run({"new": partial(asking, "new")}, llm)["new"], BudgetExceeded)
    assert bench.server.paid == 3
    more = bench.run({"p1": partial(in_turn, "p1", 2)}, {"budget": Budget(calls=4)})
    assert more == {"p1": ["p1.0", "p1.1"]}


def test_a_program_may_have_a_budget_of_its_own(bench: Bench) -> None:
    programs: Programs = {"p": lambda: limited(in_turn("p", 3), Budget(calls=2))}
    for _ in range(2):
        assert isinstance(bench.run(programs)["p"], BudgetExceeded)
    assert bench.server.paid == 2


def test_purposes_and_cost(bench: Bench) -> None:
    bench.server.answer = lambda request: Reply(echo(request), prompt_tokens=100, completion_tokens=10)
    programs: Programs = {name: partial(asking, name, purpose=name) for name in ("judge", "annotate")}
    for _ in range(2):
        bench.run(programs, {"prices": Prices(input=1, output=2)})
        assert bench.ledger is not None
        assert Counter({name: one.calls for name, one in bench.ledger.purposes.items()}) == {
            "annotate": 1,
            "judge": 1,
        }
        assert bench.total.cost == pytest.approx(2 * (100 + 20) / 1e6)


@pytest.mark.parametrize("wrong", [{"tries": 0}, {"max_lines": 0}, {"stragglers": "later"}])
def test_options_without_meaning_are_refused(bench: Bench, wrong: dict[str, Any]) -> None:
    with pytest.raises(hmem.InvalidInput, match=next(iter(wrong))):
        bench.run({}, **wrong)
