"""The decorator: where it caches, and what becomes of a cache that is missing, damaged or full."""

import errno
import importlib.util
import sys

import numba
import numpy as np
import pytest
from numba.core import caching

from hmem_kernels import _kernel
from tests.kernels.test_common import compiled_only, run

SOURCE = """
from hmem_kernels import kernel

@kernel
def double(array):
    return array.sum() * 2
"""

pytestmark = compiled_only


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Import the kernel of SOURCE as a new process would: compiled code comes from the cache only."""
    monkeypatch.setattr(_kernel, "KERNELS", {})
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "doubling.py"
    path.write_text(SOURCE)

    def load():
        spec = importlib.util.spec_from_file_location("doubling", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "doubling", module)
        spec.loader.exec_module(module)
        return module.double

    return load


def misses(double):
    return sum(double.stats.cache_misses.values())


def cached_files(tmp_path, pattern):
    files = sorted((tmp_path / "cache").rglob(pattern))
    assert files
    return files


def test_a_second_process_compiles_nothing(load):
    first = load()
    assert first(np.arange(4)) == 12
    assert misses(first) == _kernel.compilations() == 1
    second = load()
    assert second(np.arange(4)) == 12
    assert misses(second) == 0


def test_nowhere_to_write(load, monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    double = load()
    assert double.stats.cache_path is None
    assert double(np.arange(4)) == 12


def test_nowhere_to_write_in_a_fresh_process(tmp_path):
    (tmp_path / "file").touch()
    code = (
        "from hmem_kernels import KERNELS;"
        "print({str(kernel.call.stats.cache_path) for kernel in KERNELS.values()})"
    )
    environment = {
        "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",
        "NUMBA_CACHE_DIR": str(tmp_path / "file" / "below"),
    }
    assert run(code, **environment).split() == [b"{'None'}"]


@pytest.mark.parametrize("pattern", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("damage", [b"", b"\x80\x05garbage", bytes(9)], ids=["empty", "torn", "zeros"])
def test_a_damaged_cache_is_made_anew(load, tmp_path, pattern, damage):
    load()(np.arange(4))
    for path in cached_files(tmp_path, pattern):
        path.write_bytes(damage)
    double = load()
    assert double(np.arange(4)) == 12
    assert misses(double) == 1
    repaired = load()
    assert repaired(np.arange(4)) == 12
    assert misses(repaired) == 0


def test_code_filed_under_another_signature_is_not_run(load, tmp_path):
    double = load()
    assert (double(np.arange(4)), double(np.arange(4.0))) == (12, 12.0)
    first, second = cached_files(tmp_path, "*.nbc")
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    double = load()
    assert (double(np.arange(4)), double(np.arange(4.0))) == (12, 12.0)
    assert misses(double) == 2


def test_a_full_disk(load, monkeypatch):
    def refuse(self, filepath):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "_open_for_write", refuse)
    assert load()(np.arange(4)) == 12


def test_a_bare_kernel_and_one_with_options_keep_name_and_docstring(monkeypatch):
    monkeypatch.setattr(_kernel, "KERNELS", {})

    def halve(x):
        """Half of x."""
        return x / 2

    for decorate in (_kernel.kernel, _kernel.kernel(fastmath=_kernel.REORDER)):
        decorated = decorate(halve)
        assert (decorated.__name__, decorated.__doc__, decorated(3)) == ("halve", "Half of x.", 1.5)
    assert list(_kernel.KERNELS) == ["test_kernel.halve"]
