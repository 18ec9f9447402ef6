"""What holds for every kernel. A new one is covered once it is registered."""

import ast
import importlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import pytest
from numba.core.dispatcher import Dispatcher

import hmem_kernels
from hmem_kernels import KERNELS, compilations
from hmem_kernels._kernel import EXACT, REORDER

SOURCES = sorted(Path(hmem_kernels.__file__).parent.glob("*.py"))
ENTRIES = sorted(name for name, kernel in KERNELS.items() if kernel.examples)

compiled_only = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="NUMBA_DISABLE_JIT is set")


def results(name):
    """The arguments of each example after the call, and what it returned."""
    return [(KERNELS[name].call(*arguments), arguments) for arguments in KERNELS[name].examples()]


def assert_same(left, right, **tolerance):
    """Two trees of tuples, arrays and numbers are equal, floats within `tolerance`."""
    if isinstance(left, tuple | list):
        assert len(left) == len(right)
        for a, b in zip(left, right, strict=True):
            assert_same(a, b, **tolerance)
    elif left is None:
        assert right is None
    else:
        np.testing.assert_allclose(left, right, **(tolerance or {"rtol": 0}))


def is_input(value):
    return isinstance(value, np.ndarray) and not value.flags.writeable


def moved(value, place, directory):
    """The same with input in another place, that in named tuples too."""
    if isinstance(value, tuple):
        return value._make(moved(part, place, directory) for part in value)
    return hmem_kernels.frozen(place(value, directory)) if is_input(value) else value


def in_memory_map(array, directory):
    path = directory / f"{len(list(directory.iterdir()))}.bin"
    path.write_bytes(array.tobytes() or b"\0")
    return np.memmap(path, array.dtype, "r", shape=array.shape) if array.size else array


def in_arrow(array, _):
    flat = pa.array(array.reshape(-1)).to_numpy(zero_copy_only=True)
    return flat.reshape(array.shape)


@pytest.mark.parametrize("name", ENTRIES)
def test_has_an_oracle_and_a_test_against_it(name):
    module, function = name.split(".")
    assert hasattr(importlib.import_module(f"tests.oracles.{module}"), function)
    assert f"oracle.{function}(" in Path(__file__).with_name(f"test_{module}.py").read_text()


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_entries_have_examples_and_parts_are_private(name):
    assert (KERNELS[name].examples is None) == name.split(".")[1].startswith("_")


@pytest.mark.parametrize("name", ENTRIES)
def test_examples_have_read_only_and_empty_input(name):
    examples = list(KERNELS[name].examples())
    assert all(any(map(is_input, arguments)) for arguments in examples)
    assert any(arguments[0].size == 0 for arguments in examples)


@pytest.mark.parametrize("place", [in_memory_map, in_arrow])
@pytest.mark.parametrize("name", ENTRIES)
def test_reads_memory_it_may_not_write(name, place, tmp_path):
    expected = results(name)
    compiled = compilations()
    for (returned, written), arguments in zip(expected, KERNELS[name].examples(), strict=True):
        arguments = [moved(value, place, tmp_path) for value in arguments]
        assert_same(KERNELS[name].call(*arguments), returned)
        assert_same(arguments, written)
    assert compilations() == compiled, "read-only memory has the same signature, whatever owns it"


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_fastmath_is_a_named_set(name):
    assert KERNELS[name].fastmath is EXACT or KERNELS[name].fastmath is REORDER


@compiled_only
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_calls_only_kernels_of_its_own_module(name):
    function = KERNELS[name].call.py_func
    called = [function.__globals__.get(word) for word in function.__code__.co_names]
    assert {call.__module__ for call in called if isinstance(call, Dispatcher)} <= {function.__module__}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_source_asks_for_parallel_or_goes_round_the_decorator(path):
    for node in ast.walk(ast.parse(path.read_text())):
        assert not (isinstance(node, ast.keyword) and node.arg == "parallel")
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            assert path.name == "_kernel.py" or not any(m.split(".")[0] == "numba" for m in modules)


@compiled_only
def test_compiled_and_interpreted_agree():
    code = (
        "import pickle, sys; from tests.kernels.test_common import ENTRIES, results;"
        "sys.stdout.buffer.write(pickle.dumps({name: results(name) for name in ENTRIES}))"
    )
    interpreted = pickle.loads(run(code, NUMBA_DISABLE_JIT="1"))
    assert sorted(interpreted) == ENTRIES
    for name in ENTRIES:
        assert_same(interpreted[name], results(name), rtol=1e-5, atol=1e-6)


@compiled_only
def test_importing_compiles_nothing():
    code = (
        "from hmem_kernels import KERNELS, compilations;"
        "print(compilations(), sum(len(kernel.call.overloads) for kernel in KERNELS.values()))"
    )
    assert run(code).split() == [b"0", b"0"]


def run(code, **environment):
    """What a fresh interpreter prints."""
    finished = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, check=False
    )
    assert finished.returncode == 0, finished.stderr.decode()
    return finished.stdout
