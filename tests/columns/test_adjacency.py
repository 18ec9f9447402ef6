"""Lists with a base and a tail, against plain lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hmem_core.columns import adjacency
from hmem_core.columns.adjacency import Adjacency

pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), max_size=30)


def same(lists: Adjacency, expected: dict[int, list[int]]) -> None:
    for row in range(-1, 12):
        wanted = expected.get(row, [])
        assert lists[row].tolist() == wanted
        assert lists.count(row) == len(wanted)
        for limit in (0, 1, 3):
            assert lists.latest(row, limit).tolist() == wanted[::-1][:limit]
    rows, targets = lists.entries()
    assert list(zip(rows.tolist(), targets.tolist(), strict=True)) == [
        (row, one) for row in sorted(expected) for one in expected[row]
    ]
    assert len(lists) == sum(map(len, expected.values()))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs, pairs, pairs, st.sampled_from([2, 1000]))
def test_like_plain_lists(
    monkeypatch: pytest.MonkeyPatch,
    base: list[tuple[int, int]],
    tail: list[tuple[int, int]],
    tried: list[tuple[int, int]],
    least: int,
) -> None:
    monkeypatch.setattr(adjacency, "_LEAST_TAIL", least)
    expected: dict[int, list[int]] = {}
    lists = Adjacency([row for row, _ in base], [one for _, one in base])
    for row, one in base:
        expected.setdefault(row, []).append(one)
    for row, one in tail:
        lists.append(row, one)
        expected.setdefault(row, []).append(one)
    same(lists, expected)
    mark = lists.begin()
    more = {row: list(some) for row, some in expected.items()}
    for row, one in tried:
        lists.append(row, one)
        more.setdefault(row, []).append(one)
    same(lists, more)
    lists.rollback(mark)
    same(lists, expected)
    lists.append(3, 7)
    expected.setdefault(3, []).append(7)
    same(lists, expected)


def test_a_tail_is_merged_once_it_is_long() -> None:
    lists = Adjacency()
    for one in range(3 * adjacency._LEAST_TAIL):
        lists.append(one % 5, one)
    assert lists.links().tail.size <= adjacency._LEAST_TAIL
    assert lists[2].tolist() == list(range(2, 3 * adjacency._LEAST_TAIL, 5))
    assert lists.links().targets.dtype == np.int32
