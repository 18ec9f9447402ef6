"""Falling and rising through justifications, against the slow way, and as truth maintenance as a whole."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hmem_core.columns.adjacency import Adjacency
from hmem_core.columns.facttables import Members
from hmem_kernels import frozen
from hmem_kernels.cascade import ACTIVE, OUTDATED, Support, fall, related, rise
from tests.oracles import cascade as oracle

BLOCKED = 2
UNITS = 12
tellings = st.lists(
    st.tuples(
        st.integers(0, UNITS - 1), st.booleans(), st.lists(st.integers(0, UNITS - 1), max_size=3, unique=True)
    ),
    max_size=24,
)


def support(told, split=0):
    """The graph of tellings (unit, whether it counts, what it rests on); those from `split` in tails."""
    because = Members()
    for _, _, needed in told:
        because.append(needed)
    of_unit = Adjacency([unit for unit, _, _ in told[:split]], range(split))
    pairs = [(support, row) for row, (_, _, needed) in enumerate(told) for support in needed]
    resting = Adjacency(
        [support for support, row in pairs if row < split], [row for _, row in pairs if row < split]
    )
    for row, (unit, _, needed) in enumerate(told[split:], split):
        of_unit.append(unit, row)
        for one in needed:
            resting.append(one, row)
    columns = (
        np.array([unit for unit, _, _ in told], np.int32),
        np.array([live for _, live, _ in told], np.uint8),
        because.ends,
        because.members,
        *of_unit.links(),
        *resting.links(),
    )
    return Support._make(map(frozen, columns))


def run(function, status, graph, *seeds):
    status = np.array(status, np.uint8)
    reached, cause = np.zeros(status.size, np.int32), np.zeros(status.size, np.int32)
    count = function(status, graph, *(frozen(np.array(some, np.int32)) for some in seeds), reached, cause)
    return status.tolist(), sorted(reached[:count].tolist()), list(zip(reached, cause, strict=True))[:count]


@settings(max_examples=300)
@given(
    tellings,
    st.integers(0, 24),
    st.lists(st.sampled_from([0, ACTIVE, BLOCKED, OUTDATED]), min_size=UNITS, max_size=UNITS),
    st.sets(st.integers(0, UNITS - 1)),
    st.sets(st.integers(0, UNITS - 1)),
)
def test_like_the_oracle(told, split, status, some, others) -> None:
    graph = support(told, min(split, len(told)))
    fallen = sorted(unit for unit in some if status[unit] != ACTIVE)
    found = run(fall, status, graph, fallen)
    expected = run(lambda *given: oracle.fall(*given), status, graph, fallen)
    assert found[:2] == expected[:2]
    known = oracle.justifications(graph, UNITS)
    assert all(cause in set().union(*known[unit]) for unit, cause in found[2])
    risen = sorted(unit for unit in some if status[unit] == ACTIVE)
    found = run(rise, status, graph, risen, sorted(others))
    expected = run(lambda *given: oracle.rise(*given), status, graph, risen, sorted(others))
    assert found[:2] == expected[:2]


@settings(max_examples=200)
@given(
    tellings,
    st.integers(0, 24),
    st.lists(st.sampled_from([ACTIVE, ACTIVE, OUTDATED]), min_size=UNITS, max_size=UNITS),
    st.lists(st.integers(0, UNITS - 1), unique=True),
    st.integers(0, 4),
)
def test_what_is_directly_related(told, split, status, units, limit) -> None:
    graph = support(told, min(split, len(told)))

    def run(function):
        rows, found = np.zeros((2, 2 * limit * len(units)), np.int32)
        given = frozen(np.array(units, np.int32)), frozen(np.array(status, np.uint8))
        count = function(*given, graph, limit, rows, found)
        return rows[:count].tolist(), found[:count].tolist()

    assert run(related) == run(lambda *given: oracle.related(*given))


@settings(max_examples=300)
@given(tellings, st.lists(st.sets(st.integers(0, UNITS - 1)), min_size=1, max_size=6))
def test_falling_then_rising_gives_the_labels_of_truth_maintenance(told, steps) -> None:
    """However units are blocked and unblocked, cycles of support included."""
    graph = support(told)
    known = oracle.justifications(graph, UNITS)
    status = [OUTDATED] * UNITS
    for blocked in steps:
        before = status
        fallen = [unit for unit in blocked if before[unit] == ACTIVE]
        freed = [unit for unit in range(UNITS) if before[unit] == BLOCKED and unit not in blocked]
        status = [BLOCKED if unit in blocked else before[unit] for unit in range(UNITS)]
        for unit in freed:
            status[unit] = OUTDATED
        status, doubted, _ = run(fall, status, graph, fallen)
        looked = range(UNITS) if before == [OUTDATED] * UNITS else doubted + freed
        status, _, _ = run(rise, status, graph, [], looked)
        inside = oracle.labels([unit in blocked for unit in range(UNITS)], known)
        assert [one == ACTIVE for one in status] == [unit in inside for unit in range(UNITS)]


def test_a_long_chain_and_a_wide_fan_touch_each_unit_once() -> None:
    for needed in (lambda unit: [unit - 1], lambda unit: [0]):
        units = 20_000
        graph = support([(0, True, [])] + [(unit, True, needed(unit)) for unit in range(1, units)], 10_000)
        status = np.full(units, ACTIVE, np.uint8)
        status[0] = BLOCKED
        reached, cause = np.zeros(units, np.int32), np.zeros(units, np.int32)
        assert fall(status, graph, frozen(np.zeros(1, np.int32)), reached, cause) == units - 1
        status[0] = ACTIVE
        doubted = frozen(np.zeros(0, np.int32))
        assert rise(status, graph, frozen(np.zeros(1, np.int32)), doubted, reached, cause) == units - 1
        assert (status == ACTIVE).all()
