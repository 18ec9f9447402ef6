"""The tree's columns: deciding beside them, attaching to them, and their checkpoint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hmem_core.columns.tree import TreeColumns
from hmem_core.options import SegmentOptions
from hmem_core.segments.construction import rule

OPTIONS = [
    SegmentOptions(),
    SegmentOptions(choose="best"),
    SegmentOptions(tau=0.4),
    SegmentOptions(tau=(0.8, 0.5, 0.2)),
    SegmentOptions(tau=-1.0),
    SegmentOptions(tau=2.0),
]
matrices = hnp.arrays(
    np.float32, st.tuples(st.integers(0, 60), st.just(3)), elements=st.integers(-2, 2).map(float)
)


def assert_same(found: TreeColumns, expected: TreeColumns) -> None:
    arrays, wanted = found.arrays(), expected.arrays()
    for name, value in wanted.items():
        assert arrays[name].tobytes() == value.tobytes(), name


@settings(max_examples=100)
@given(matrices, st.sampled_from(OPTIONS), st.lists(st.integers(1, 9), min_size=1))
def test_deciding_in_batches_and_one_by_one_is_the_same(
    rows: np.ndarray, options: SegmentOptions, sizes: list[int]
) -> None:
    single, batched = TreeColumns(3), TreeColumns(3)
    for row in rows:
        single.attach(row[np.newaxis], single.decide(row[np.newaxis], rule(options)).heights)
    start = 0
    while start < len(rows):
        block = rows[start : start + sizes[start % len(sizes)]]
        before = batched.arrays()
        heights = batched.decide(block, rule(options)).heights
        assert all(batched.arrays()[name].tobytes() == value.tobytes() for name, value in before.items())
        batched.attach(block, heights)
        start += len(block)
    assert_same(batched, single)
    assert len(single) <= max(2 * len(rows) - 1, 0)


@given(matrices, matrices, st.sampled_from(OPTIONS))
def test_a_restored_tree_goes_on_as_if_nothing_had_been(
    before: np.ndarray, after: np.ndarray, options: SegmentOptions
) -> None:
    tree = TreeColumns(3)
    tree.attach(before, tree.decide(before, rule(options)).heights)
    restored = TreeColumns.restore(3, tree.batches())
    assert_same(restored, tree)
    for one in (tree, restored):
        one.attach(after, one.decide(after, rule(options)).heights)
    assert_same(restored, tree)


def test_a_snapshot_stays_as_it_was() -> None:
    tree = TreeColumns(2)
    rows = np.random.default_rng(0).standard_normal((200, 2)).astype(np.float32)
    for row in rows:
        snapshot = tree.snapshot()
        copies = [column.copy() for column in snapshot]
        tree.attach(row[np.newaxis], tree.decide(row[np.newaxis], rule(SegmentOptions())).heights)
        for column, copy in zip(snapshot, copies, strict=True):
            assert column.tobytes() == copy.tobytes()
        assert (snapshot.parent < snapshot.parent.size).all()


@pytest.mark.parametrize("tau", [2.0, "auto"])
def test_comparisons_a_turn_stay_few(tau: float | str) -> None:
    tree = TreeColumns(8)
    rng = np.random.default_rng(1)
    topics = rng.standard_normal((40, 8))
    rows = (topics[np.repeat(rng.integers(0, 40, 400), 10)] + rng.standard_normal((4000, 8)) / 2).astype("f4")
    decided = tree.decide(rows, rule(SegmentOptions(tau=tau)))  # type: ignore[arg-type]
    tree.attach(rows, decided.heights)
    assert decided.compared / len(rows) < np.log2(len(rows))
    assert len(tree) < 2 * len(rows)
