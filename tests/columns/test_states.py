"""Token states: what is kept of them, and that it is enough."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmem_core.columns import states
from hmem_core.columns.states import MAX_STATES, StateColumns, pack_query, pack_states, words_of
from hmem_core.columns.terms import Analyzer


def unit(n: int, width: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, width)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def columns_of(*packed: bytes | None, words: int) -> StateColumns:
    columns = StateColumns(words)
    for one in packed:
        columns.append(one)
    return columns


@pytest.mark.parametrize("width", [7, 64, 200, 384, 768])
def test_similarities_are_right_on_average_and_near(width: int) -> None:
    query, turn = unit(40, width, 1), unit(50, width, 2)
    turn[:20] = turn[:20] * 0.7 + query[:20]  # so that some are alike
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
    words = words_of(width)
    columns = columns_of(*(pack_states(row[None], words) for row in turn), words=words)
    found = columns.view().best(pack_query(query, words), np.arange(50))
    errors = found - query @ turn.T
    assert abs(errors.mean()) < 0.01
    assert errors.std() < 1.2 / np.sqrt(64 * words)
    assert np.corrcoef(found.ravel(), (query @ turn.T).ravel())[0, 1] > 0.7


def test_what_is_stored_is_the_same_everywhere() -> None:
    row = np.zeros((1, 8), np.float32)
    row[0, 3] = 1.0
    packed = pack_states(row, 1)
    assert packed is not None
    assert packed.hex() == "081bcfb656005f0e3a"


def test_bytes_of_a_state() -> None:
    packed = pack_states(unit(10, 384), words_of(384))
    assert packed is not None
    assert len(packed) == 10 * (384 // 8 + 1)
    assert words_of(1024) == words_of(384)  # wider ones are cut


def test_the_best_token_of_a_turn_counts_and_turns_without_have_none() -> None:
    words = words_of(64)
    turn, query = unit(6, 64), unit(2, 64, 5)
    alone = columns_of(*(pack_states(row[None], words) for row in turn), words=words)
    together = columns_of(None, pack_states(turn, words), None, words=words)
    rows = np.array([2, 1, 0, 1])
    best = together.view().best(pack_query(query, words), rows)
    singles = alone.view().best(pack_query(query, words), np.arange(6))
    assert np.isnan(best[:, [0, 2]]).all()
    np.testing.assert_array_equal(best[:, 1], singles.max(axis=1))
    np.testing.assert_array_equal(best[:, 1], best[:, 3])


def test_function_words_and_punctuation_are_left_out_unless_there_is_nothing_else() -> None:
    says = Analyzer("english").says
    assert [
        token
        for token in ("the", "dog", ",", "##ing", " Café", "?!", "", "\ufffd", "犬", "🐶")
        if says(token)
    ] == [
        "dog",
        "##ing",
        " Café",
        "\ufffd",
        "犬",
        "🐶",
    ]
    assert Analyzer("german").says("the")
    rows = unit(3, 64)
    assert pack_states(rows, 1, np.array([False, True, False])) == pack_states(rows[1:2], 1)
    assert pack_states(rows, 1, np.zeros(3, np.bool_)) == pack_states(rows, 1)


def test_long_turns_keep_states_evenly_chosen_and_empty_ones_none() -> None:
    rows = unit(3 * MAX_STATES, 64)
    assert pack_states(rows, 1) == pack_states(rows[::3], 1)
    assert pack_states(np.zeros((2, 64), np.float32), 1) is None
    assert pack_states(np.zeros((0, 64), np.float32), 1) is None
    assert pack_query(np.zeros((0, 64), np.float32), 1).scale.shape == (0, 3)


@given(st.lists(st.integers(0, 5), max_size=14), st.data())
def test_columns_are_what_is_left_after_erasing(counts: list[int], data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(states, "BLOCK_ROWS", 4)
        packed = [pack_states(unit(count, 70, row), 2) for row, count in enumerate(counts)]
        columns = columns_of(*packed, words=2)
        before = columns.view()
        gone = data.draw(st.sets(st.integers(0, len(counts) - 1))) if counts else set()
        if data.draw(st.booleans()):
            columns = StateColumns.restore(2, [columns.batch(block) for block in range(-(-len(counts) // 4))])
        columns.erase(gone)
        left = [None if row in gone else one for row, one in enumerate(packed)]
        for _ in range(2):
            expected = columns_of(*left, words=2).arrays()
            assert columns.arrays().keys() == expected.keys()
            for name, value in columns.arrays().items():
                assert value.dtype == expected[name].dtype
                assert value.tobytes() == expected[name].tobytes()
            columns.append(one := pack_states(unit(2, 70, 99), 2))
            left.append(one)
        if counts:  # an older view stays as it was
            query = pack_query(unit(2, 70, 7), 2)
            rows = np.arange(len(counts))
            again = columns_of(*packed, words=2).view().best(query, rows)
            np.testing.assert_array_equal(before.best(query, rows), again)


def test_bytes_that_were_not_packed_for_these_columns_do_not_fit() -> None:
    columns = StateColumns(words_of(64))
    assert columns.fits(None)
    assert columns.fits(pack_states(unit(3, 64), 1))
    assert not columns.fits(b"")
    assert not columns.fits(pack_states(unit(3, 70), 2))
