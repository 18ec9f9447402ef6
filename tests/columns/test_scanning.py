import os
import signal
import threading
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from hmem_core.columns import pool, scanning
from hmem_core.columns.scanning import top_k
from hmem_core.errors import InvalidInput
from tests.kernels.test_common import compiled_only, run
from tests.oracles import scan as oracle


@pytest.fixture(autouse=True, scope="module")
def many_small_tasks():
    """Three threads and tasks of a few rows, so that small inputs take every path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HMEM_THREADS", "3")
        patch.setattr(pool, "_pool", pool._Pool())
        patch.setattr(scanning, "_TASK_NUMBERS", 16)
        yield


def pairs(best):
    assert (best.scores.dtype, best.rows.dtype) == (np.float32, np.int64)
    return list(zip(best.scores.tolist(), best.rows.tolist(), strict=True))


def cut(array, places):
    """`array` as blocks cut at `places`, empty ones included."""
    return np.split(array, sorted(places)) if len(places) else [array]


def random(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d), dtype=np.float32), rng.standard_normal(d, dtype=np.float32)


@given(st.integers(0, 60), st.integers(0, 6), st.integers(0, 65), st.data())
def test_equals_the_oracle(n, d, k, data):
    # Small whole numbers: sums are exact, and ties are frequent.
    numbers = st.integers(-2, 2).map(np.float32)
    rows = data.draw(npst.arrays(np.float32, (n, d), elements=numbers))
    query = data.draw(npst.arrays(np.float32, d, elements=numbers))
    live = data.draw(st.none() | npst.arrays(st.sampled_from([np.uint8, np.bool_]), n))
    blocks = cut(rows, data.draw(st.lists(st.integers(0, n), max_size=6)))
    assert pairs(top_k(blocks, query, k, live)) == oracle.scan_topk(rows, query, k, live)


@given(st.integers(1, 300), st.integers(1, 70), st.integers(0, 2**32), st.data())
def test_cutting_into_blocks_changes_no_bit(n, d, seed, data):
    rows, query = random(n, d, seed)
    blocks = cut(rows, data.draw(st.lists(st.integers(0, n), max_size=6)))
    k = data.draw(st.integers(1, n + 1))
    whole, parts = top_k([rows], query, k), top_k(blocks, query, k)
    assert whole.scores.tobytes() == parts.scores.tobytes()
    assert whole.rows.tolist() == parts.rows.tolist()


@pytest.mark.parametrize(
    ("blocks", "live"),
    [
        ([], None),
        ([], np.ones(0, np.uint8)),
        ([np.ones((0, 3), np.float32)], None),
        ([np.ones((9, 3), np.float32)], np.zeros(9, np.uint8)),
        ([np.full((9, 3), np.nan, np.float32)], None),
    ],
    ids=["no block", "no block, a mask", "no row", "all masked", "all NaN"],
)
def test_nothing_to_find(blocks, live):
    assert pairs(top_k(blocks, np.ones(3, np.float32), 5, live)) == []


def test_read_only_memory_maps(tmp_path):
    rows, query = random(50, 8)
    rows.tofile(tmp_path / "rows")
    query.tofile(tmp_path / "query")
    np.ones(50, np.uint8).tofile(tmp_path / "live")
    mapped = np.memmap(tmp_path / "rows", np.float32, "r", shape=rows.shape)
    mapped_query = np.memmap(tmp_path / "query", np.float32, "r")
    mapped_live = np.memmap(tmp_path / "live", np.uint8, "r")
    found = top_k([mapped[:20], mapped[20:]], mapped_query, 7, mapped_live)
    assert pairs(found) == pairs(top_k([rows], query, 7))
    assert type(found.scores) is type(found.rows) is np.ndarray


def test_a_strided_or_unaligned_query():
    rows, query = random(20, 8)
    strided = np.repeat(query, 2)[::2]
    unaligned = np.frombuffer(b"\0" + query.tobytes(), np.float32, offset=1)
    assert not unaligned.flags.aligned
    for other in (strided, unaligned):
        assert pairs(top_k([rows], other, 3)) == pairs(top_k([rows], query, 3))


def test_memory_does_not_grow_with_the_rows():
    rows, query = random(200_000, 2)
    live = np.ones(200_000, np.bool_)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanning, "_TASK_NUMBERS", 1 << 16)
        top_k([rows], query, 10, live)
        tracemalloc.start()
        try:
            top_k([rows], query, 10, live)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 60_000


def test_the_query_is_not_changed_nor_frozen():
    rows, query = random(9, 4)
    before = query.copy()
    top_k([rows], query, 3)
    assert query.flags.writeable
    assert rows.flags.writeable
    assert query.tolist() == before.tolist()


F32 = np.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": -1}, "k is -1"),
        ({"k": 2.5}, "k is 2.5"),
        ({"k": None}, "k is None"),
        ({"query": np.ones(4)}, "query is float64"),
        ({"query": [1.0] * 4}, "query is list"),
        ({"query": None}, "query is NoneType"),
        ({"query": np.ones((1, 4), F32)}, r"query has shape \(1, 4\)"),
        ({"query": np.array([1, 2, np.nan, 4], F32)}, "NaN or infinite"),
        ({"query": np.array([1, 2, -np.inf, 4], F32)}, "NaN or infinite"),
        ({"query": np.ones(5, F32)}, r"block 0 has shape \(3, 4\); give \(rows, 5\)"),
        ({"blocks": [np.ones((3, 4), F32), np.ones((3, 4), np.float16)]}, "block 1 is float16"),
        ({"blocks": np.ones((3, 4), F32)}, r"block 0 has shape \(4,\)"),
        ({"blocks": [np.ones((3, 8), F32)[:, ::2]]}, "block 0 does not lie"),
        ({"blocks": [np.ones((3, 4), ">f4")]}, "block 0 is >f4"),
        ({"blocks": [np.frombuffer(bytes(49), F32, offset=1).reshape(3, 4)]}, "block 0 does not lie"),
        ({"live": np.ones(2, np.uint8)}, r"live has shape \(2,\); .* \(3,\)"),
        ({"live": np.ones((3, 1), np.uint8)}, r"live has shape \(3, 1\)"),
        ({"live": np.ones(3, np.int64)}, "live is int64"),
        ({"live": [1, 1, 1]}, "live is list"),
        ({"live": np.ones(6, np.uint8)[::2]}, "live is strided"),
    ],
)
def test_wrong_input_is_named(change, message):
    arguments = {"blocks": [np.ones((3, 4), F32)], "query": np.ones(4, F32), "k": 2, "live": None}
    with pytest.raises(InvalidInput, match=message):
        top_k(**arguments | change)


def test_many_threads_at_once():
    rows, query = random(5_000, 8)
    expected = pairs(top_k([rows], query, 10))
    found = []

    def search():
        for _ in range(10):
            found.append(pairs(top_k([rows], query, 10)))

    callers = [threading.Thread(target=search) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == [expected] * 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_forked_after_first_use():
    rows, query = random(500, 8)
    expected = pairs(top_k([rows], query, 10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of fork beside threads
        child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if pairs(top_k([rows], query, 10)) == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@compiled_only
def test_a_process_after_warm_compiles_nothing(tmp_path):
    warm = "import hmem_kernels; print(hmem_kernels.warm() > 0)"
    assert run(warm, NUMBA_CACHE_DIR=str(tmp_path)).split() == [b"True"]
    use = """
import numpy as np
from hmem_kernels import compilations, frozen
from hmem_core.columns.scanning import top_k
rows, query, live = np.ones((9, 4), np.float32), np.ones(4, np.float32), np.ones(9, np.uint8)
for k in (2, np.int32(2)):
    for block in (rows, frozen(rows)):
        for mask in (None, live, frozen(live), live.view(np.bool_)):
            top_k([block], query, k, mask)
print(compilations())
"""
    assert run(use, NUMBA_CACHE_DIR=str(tmp_path)).split() == [b"0"]
