"""Programs: how they compose, run side by side, and keep to a budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmem_core.budgets import Billed, Meter, estimate_tokens, limited
from hmem_core.effects import Ask, Embed, Message, Program, Run, Single, Together, drive, gather, together
from hmem_core.errors import BudgetExceeded, EncoderError, InvalidInput, LLMUnavailable
from hmem_core.options import Budget, Prices
from hmem_core.reports import Usage


def ask(text: str, max_tokens: int = 10) -> Ask:
    return Ask("test", (Message("user", text),), str, max_tokens)


def say(effect: Single) -> str:
    """A reply that shows what it is the reply to."""
    return f"re: {effect.messages[0].content if isinstance(effect, Ask) else effect.texts}"


def rounds(program: Program[Any], answer: Callable[[Single], Any] = say) -> list[int]:
    """How many effects the program yields in each round."""
    run, sizes = Run(program), []
    while not run.done:
        sizes.append(len(run.effects))
        run.resume([answer(effect) for effect in run.effects])
    return sizes


# -- random programs ---------------------------------------------------------------------------------

# A program as data: "ask" and "embed" yield one effect, a number that many together, "fail" raises, "catch"
# asks something that fails, and a list is a gather.
plans = st.recursive(
    st.lists(st.sampled_from(["ask", "embed", "catch", 0, 2, 3]), max_size=4),
    lambda inner: st.tuples(st.lists(inner, max_size=4)),
    max_leaves=8,
)


def program(plan: Any, name: str = "p", *, side_by_side: bool = True) -> Program[Any]:
    if isinstance(plan, tuple):
        inner = [program(one, f"{name}.{i}", side_by_side=side_by_side) for i, one in enumerate(plan[0])]
        if side_by_side:
            return (yield from gather(inner))
        results = []
        for one in inner:
            results.append((yield from one))
        return results
    said: list[Any] = []
    for place, step in enumerate(plan):
        text = f"{name}:{place}"
        if step == "ask":
            said.append((yield ask(text)))
        elif step == "embed":
            said.append((yield Embed((text,))))
        elif step == "catch":
            try:
                yield ask(f"{text} fails")
            except LLMUnavailable as error:
                said.append(str(error))
        else:
            said.append((yield from together(ask(f"{text} {i} {'fails' * (i % 2)}") for i in range(step))))
    return said


def answer(effect: Single) -> str:
    reply = say(effect)
    if "fails" in reply:
        raise LLMUnavailable(reply)
    return reply


def shown(value: Any) -> Any:
    return [shown(one) for one in value] if isinstance(value, list) else str(value)


def depth(plan: Any) -> int:
    return max(map(depth, plan[0]), default=0) if isinstance(plan, tuple) else len(plan)


@given(plans)
def test_programs_side_by_side_are_the_same_programs(plan: Any) -> None:
    together_ = drive(program(plan), answer)
    assert shown(together_) == shown(drive(program(plan, side_by_side=False), answer))


@given(plans)
def test_rounds_are_those_of_the_longest_program_not_their_sum(plan: Any) -> None:
    def reply(effect: Single) -> Any:
        try:
            return answer(effect)
        except LLMUnavailable as error:
            return error

    assert len(rounds(program(plan), reply)) == depth(plan)


# -- gather ------------------------------------------------------------------------------------------


def asking(text: str) -> Program[str]:
    reply: str = yield ask(text)
    return reply


def failing(text: str) -> Program[str]:
    yield ask(text)
    raise ValueError(text)


def test_nested_gathers_are_one_round() -> None:
    nested = gather([gather([asking("a"), asking("b")]), gather([asking("c")])])
    effect = next(nested)
    assert effect == Together((ask("a"), ask("b"), ask("c")))
    with pytest.raises(StopIteration) as end:
        nested.send(["A", "B", "C"])
    assert end.value.value == [["A", "B"], ["C"]]


def test_a_failing_program_does_not_keep_the_others_from_their_end() -> None:
    ended = []

    def long(text: str) -> Program[str]:
        first = yield ask(text)
        second = yield ask(first)
        ended.append(second)
        return str(second)

    with pytest.raises(ValueError, match=r"^bad$"):
        drive(gather([failing("bad"), long("good"), failing("worse")]), say)
    assert ended == ["re: re: good"]


def test_failures_in_the_place_of_results() -> None:
    results = drive(gather([failing("bad"), asking("good")], return_exceptions=True), say)
    assert isinstance(results[0], ValueError)
    assert results[1] == "re: good"


def test_one_failed_effect_is_raised_where_it_was_yielded_and_nowhere_else() -> None:
    def careful(text: str) -> Program[str]:
        try:
            return str((yield ask(text)))
        except LLMUnavailable:
            return "none"

    replies = drive(gather([careful("fails"), careful("good")]), answer)
    assert replies == ["none", "re: good"]


def test_a_program_may_end_or_fail_before_its_first_effect() -> None:
    def nothing() -> Program[int]:
        return 7
        yield

    def broken() -> Program[int]:
        raise ValueError("at once")
        yield

    assert drive(gather([nothing(), nothing()]), say) == [7, 7]
    assert drive(gather(iter(())), say) == []
    with pytest.raises(ValueError, match="at once"):
        drive(gather([broken(), nothing()]), say)


def test_giving_up_closes_every_program() -> None:
    closed = []

    def tidy(name: str) -> Program[None]:
        try:
            yield ask(name)
        finally:
            closed.append(name)

    outer = gather([tidy("a"), gather([tidy("b")])])
    next(outer)
    outer.close()
    assert closed == ["a", "b"]


def test_what_fails_for_all_fails_for_each() -> None:
    def careful(text: str) -> Program[str]:
        try:
            return str((yield ask(text)))
        except EncoderError:
            return text

    run = gather([careful("a"), careful("b")])
    next(run)
    with pytest.raises(StopIteration) as end:
        run.throw(EncoderError("all"))
    assert end.value.value == ["a", "b"]


def test_an_interrupt_ends_the_program() -> None:
    tidied = []

    def tidy() -> Program[None]:
        try:
            yield Together((ask("a"), ask("b")))
        finally:
            tidied.append(True)

    def interrupt(effect: Single) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drive(tidy(), interrupt)
    assert tidied == [True]


# -- budgets -----------------------------------------------------------------------------------------


def several(n: int) -> Program[list[str | Exception]]:
    return gather([asking(str(i)) for i in range(n)], return_exceptions=True)


def charge(usage: Usage) -> Callable[[Single], str]:
    """An answer that costs so much."""

    def reply(effect: Single) -> str:
        assert isinstance(effect, Billed)
        for bill in effect.bills:
            bill.add(usage)
        return say(effect)

    return reply


def test_questions_over_the_budget_are_not_asked() -> None:
    asked = []

    def count(effect: Single) -> str:
        asked.append(effect)
        return say(effect)

    results = drive(limited(several(5), Budget(calls=3)), count)
    assert len(asked) == 3
    assert results[:3] == ["re: 0", "re: 1", "re: 2"]
    assert [type(result) for result in results[3:]] == [BudgetExceeded] * 2


def test_a_program_can_handle_it() -> None:
    def thrifty() -> Program[str]:
        said = []
        try:
            for i in range(5):
                said.append((yield ask(str(i))))
        except BudgetExceeded as error:
            said.append(str(error))
        yield Embed(("free",))
        return " ".join(said)

    assert drive(limited(thrifty(), Budget(calls=2)), say) == (
        "re: 0 re: 1 test: not asked, since the reply could bring calls to 3, over the budget of 2"
    )


def test_an_estimate_makes_room_for_what_was_really_used() -> None:
    one = estimate_tokens("0") + 10

    def in_turn() -> Program[int]:
        for i in range(9):
            try:
                yield ask(str(i))
            except BudgetExceeded:
                return i
        return 9

    assert drive(limited(in_turn(), Budget(tokens=3 * one)), say) == 3
    used = Usage(calls=1, input_tokens=2, output_tokens=1)
    assert drive(limited(in_turn(), Budget(tokens=one + 6)), charge(used)) == 3
    # At once, each must be allowed its longest reply.
    results = drive(limited(several(5), Budget(tokens=2 * one)), charge(used))
    assert sum(isinstance(result, str) for result in results) == 2


def test_money_needs_prices() -> None:
    with pytest.raises(InvalidInput, match="prices"):
        Meter(Budget(money=1.0))
    prices = Prices(input=0.0, output=100_000.0)  # ten tokens are one unit
    results = drive(limited(several(5), Budget(money=2.5), prices), say)
    assert sum(isinstance(result, str) for result in results) == 2


def test_budgets_nest_and_are_shared() -> None:
    meter = Meter(Budget(calls=3))
    inner = [limited(several(2), Budget(calls=1)) for _ in range(2)]
    results = drive(limited(gather(inner), meter), charge(Usage(calls=1)))
    assert [[isinstance(one, str) for one in pair] for pair in results] == [[True, False]] * 2
    assert meter.spent == Usage(calls=2)
    left = drive(limited(several(2), meter), charge(Usage(calls=1)))
    assert [isinstance(one, str) for one in left] == [True, False]


def test_a_saved_call_costs_nothing() -> None:
    meter = Meter(Budget(calls=1))
    for _ in range(3):
        assert drive(limited(several(1), meter), charge(Usage(saved=1))) == ["re: 0"]
    assert meter.spent == Usage(saved=3)


def test_what_is_given_up_counts_with_its_estimate() -> None:
    meter = Meter(Budget(calls=1))
    run = limited(asking("x"), meter)
    next(run)
    run.close()
    assert meter.spent.calls == 1


@given(plans, st.integers(0, 6))
def test_a_budget_that_is_not_reached_changes_nothing(plan: Any, spare: int) -> None:
    calls = sum(rounds(program(plan), lambda effect: say(effect)))
    free = drive(program(plan), answer)
    assert shown(drive(limited(program(plan), Budget(calls=calls + spare)), answer)) == shown(free)
