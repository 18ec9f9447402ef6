import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest

from hmem_core.columns import pool
from hmem_core.columns.pool import parallel_map, threads
from hmem_core.cpus import available_cpus
from hmem_core.errors import InvalidInput


@pytest.fixture
def sized(monkeypatch):
    """Give the process a new pool of so many threads."""

    def resize(size):
        monkeypatch.setenv("HMEM_THREADS", str(size))
        monkeypatch.setattr(pool, "_pool", pool._Pool())

    return resize


def double(x):
    return 2 * x


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_results_come_in_order(sized, size, count):
    sized(size)
    assert parallel_map(double, range(count)) == [2 * x for x in range(count)]


@pytest.mark.parametrize(("size", "count"), [(4, 1), (1, 4)])
def test_one_item_or_one_thread_runs_inline(sized, size, count):
    sized(size)
    assert set(parallel_map(lambda _: threading.get_ident(), range(count))) == {threading.get_ident()}
    assert pool._pool._executor is None


def test_items_run_side_by_side(sized):
    sized(3)
    barrier = threading.Barrier(3)
    assert len({*parallel_map(lambda _: (barrier.wait(30), threading.get_ident())[1], range(3))}) == 3


def test_callers_from_many_threads_and_nested_calls(sized):
    sized(2)

    def nested(x):
        return sum(parallel_map(double, range(x)))

    found = {}

    def call(name):
        found[name] = [parallel_map(nested, range(20)) for _ in range(10)]

    callers = [threading.Thread(target=call, args=(name,)) for name in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == {name: [[x * (x - 1) for x in range(20)]] * 10 for name in range(4)}


@pytest.mark.parametrize("failing", ["the caller's", "the pool's"])
def test_an_exception_stops_the_rest_and_is_raised(sized, failing):
    sized(2)
    main = threading.get_ident()
    begun = []

    def fail_in_one_thread(x):
        begun.append(x)
        if (threading.get_ident() == main) == (failing == "the caller's"):
            raise LookupError(x)
        time.sleep(0.01)

    with pytest.raises(LookupError):
        parallel_map(fail_in_one_thread, range(1000))
    assert len(begun) < 100
    assert parallel_map(double, range(4)) == [0, 2, 4, 6], "the pool is as good as before"


def test_nothing_is_under_way_after_an_exception(sized):
    sized(2)
    main = threading.get_ident()
    slow_began, slow_ended = threading.Event(), threading.Event()

    def one_fails_one_is_slow(_):
        if threading.get_ident() == main:
            slow_began.wait(30)
            raise LookupError
        slow_began.set()
        time.sleep(0.05)
        slow_ended.set()

    with pytest.raises(LookupError):
        parallel_map(one_fails_one_is_slow, range(2))
    assert slow_ended.is_set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_forked_after_first_use_has_a_pool_of_its_own(sized):
    sized(3)
    everyone = threading.Barrier(3)
    parallel_map(lambda _: everyone.wait(30), range(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of fork beside threads
        child = os.fork()
    if child == 0:
        signal.alarm(30)
        barrier = threading.Barrier(2)
        os._exit(0 if parallel_map(lambda x: (barrier.wait(20), x)[1], range(2)) == [0, 1] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert parallel_map(double, range(3)) == [0, 2, 4]


def test_works_during_interpreter_exit_and_never_delays_it():
    code = """
import atexit, threading
from hmem_core.columns.pool import parallel_map
work = lambda x: x * x
threading._register_atexit(lambda: print(parallel_map(work, range(4))))  # before threads are joined
atexit.register(lambda: print(parallel_map(work, range(4))))  # after
print(parallel_map(work, range(4)))
"""
    environment = os.environ | {"HMEM_THREADS": "3"}
    finished = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (finished.stdout, finished.stderr) == ("[0, 1, 4, 9]\n" * 3, "")


def test_the_system_refuses_another_thread(sized, monkeypatch):
    """The executor then raises although an existing thread may already be doing what it was asked for."""
    sized(3)
    both = threading.Barrier(2)
    parallel_map(lambda _: both.wait(30), range(2))
    main = threading.get_ident()

    def refuse(executor):
        raise RuntimeError("can't start new thread")

    def slow_in_the_pool(x):
        both.wait(30)
        if threading.get_ident() != main:
            time.sleep(0.05)
        return x

    monkeypatch.setattr(pool.ThreadPoolExecutor, "_adjust_thread_count", refuse)
    assert parallel_map(slow_in_the_pool, range(2)) == [0, 1]


def test_importing_starts_no_thread_and_no_compiler():
    code = (
        "import sys, threading, hmem_core.columns.pool;"
        "print(threading.active_count(), 'numba' in sys.modules, 'numpy' in sys.modules)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout.split() == ["1", "False", "False"]


def test_size_is_set_by_the_environment(sized):
    sized(7)
    assert threads() == 7


def test_size_without_environment(monkeypatch):
    monkeypatch.setenv("HMEM_THREADS", "")
    monkeypatch.setattr(pool, "_pool", pool._Pool())
    assert threads() == available_cpus()


@pytest.mark.parametrize("wanted", ["0", "-1", "two", "1.5"])
def test_a_size_that_is_none(sized, wanted):
    sized(wanted)
    with pytest.raises(InvalidInput, match="HMEM_THREADS"):
        threads()
