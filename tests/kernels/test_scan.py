import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from hmem_kernels import frozen
from hmem_kernels.scan import scan_scores, scan_topk
from tests.oracles import scan as oracle

ALL_LIVE = np.ones(0, np.uint8)


@st.composite
def whole_numbers(draw):
    """A block and a query of small whole numbers: sums are exact, and ties are frequent."""
    shape = draw(st.tuples(st.integers(0, 40), st.integers(0, 9)))
    numbers = st.integers(-2, 2).map(np.float32)
    block = draw(npst.arrays(np.float32, shape, elements=numbers))
    return block, draw(npst.arrays(np.float32, shape[1], elements=numbers))


def real_numbers(n, d, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d), dtype=np.float32), rng.standard_normal(d, dtype=np.float32)


def scores_of(block, query):
    scores = np.empty(len(block), np.float32)
    scan_scores(frozen(block), frozen(query), scores)
    return scores


def topk_of(parts, query, k):
    """Feed `parts`, each (block, live or ALL_LIVE, first), to one heap; (score, row) pairs, best first."""
    scores, rows = np.empty(k, np.float32), np.empty(k, np.int64)
    count = 0
    for block, live, first in parts:
        count = scan_topk(frozen(block), frozen(query), frozen(live), first, count, scores, rows)
    held = list(zip(scores[:count].tolist(), rows[:count].tolist(), strict=True))
    best_first = sorted(held, key=lambda pair: (-pair[0], pair[1]))
    assert not held or held[0] == best_first[-1], "the worst row lies first"
    return best_first


@given(whole_numbers())
def test_scores_equal_the_oracle(block_and_query):
    block, query = block_and_query
    assert scores_of(block, query).tolist() == oracle.scan_scores(block, query).tolist()


@given(whole_numbers(), st.integers(0, 45), st.integers(0, 2**40), st.data())
def test_topk_equals_the_oracle(block_and_query, k, first, data):
    block, query = block_and_query
    live = data.draw(st.none() | npst.arrays(np.uint8, len(block), elements=st.integers(0, 2)))
    found = topk_of([(block, ALL_LIVE if live is None else live, first)], query, k)
    assert found == oracle.scan_topk(block, query, k, live, first)


@given(st.integers(1, 200), st.integers(1, 70), st.integers(0, 2**32), st.data())
def test_where_blocks_are_cut_changes_no_bit(n, d, seed, data):
    block, query = real_numbers(n, d, seed)
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5)))
    spans = list(zip([0, *cuts], [*cuts, n], strict=True))
    whole = scores_of(block, query)
    pieces = [scores_of(block[start:stop], query) for start, stop in spans]
    assert np.concatenate(pieces).tobytes() == whole.tobytes()

    k = data.draw(st.integers(1, n + 1))
    parts = [(block[start:stop], ALL_LIVE, start) for start, stop in spans]
    found = topk_of(parts, query, k)
    assert found == topk_of([(block, ALL_LIVE, 0)], query, k)
    assert found == [(float(whole[row]), row) for _, row in found], "both kernels give the same bits"


@pytest.mark.parametrize("offset", range(1, 17))
def test_where_a_row_lies_in_memory_changes_no_bit(offset):
    block, query = real_numbers(3, 67, seed=0)
    room = np.empty(block.size + offset, np.float32)
    moved = room[offset:].reshape(block.shape)
    moved[:] = block
    assert scores_of(moved, query).tobytes() == scores_of(block, query).tobytes()


@given(st.integers(1, 30), st.integers(1, 900), st.integers(0, 2**32))
def test_scores_are_as_exact_as_float32_allows(n, d, seed):
    block, query = real_numbers(n, d, seed)
    bound = d * np.finfo(np.float32).eps * (np.abs(block).astype(float) @ np.abs(query).astype(float))
    assert (np.abs(scores_of(block, query) - oracle.scan_scores(block, query)) <= bound).all()


@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_nan_is_never_kept_and_infinity_is(k):
    column = [np.nan, 1.0, -np.inf, np.nan, np.inf, 1.0, np.nan]
    block = np.array(column, np.float32).reshape(-1, 1)
    query = np.ones(1, np.float32)
    best = [(np.inf, 4), (1.0, 1), (1.0, 5), (-np.inf, 2)]
    assert topk_of([(block, ALL_LIVE, 0)], query, k) == best[:k] == oracle.scan_topk(block, query, k)


@pytest.mark.parametrize("order", ["ascending", "descending", "equal"])
def test_a_k_as_large_as_n(order):
    column = {"ascending": np.arange(50_000), "descending": -np.arange(50_000), "equal": np.zeros(50_000)}
    block = column[order].astype(np.float32).reshape(-1, 1)
    found = topk_of([(block, ALL_LIVE, 0)], np.ones(1, np.float32), len(block))
    rows = [row for _, row in found]
    assert rows == (list(range(50_000))[::-1] if order == "ascending" else list(range(50_000)))
