"""How every kernel is compiled, cached and registered: said once, here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar, overload

import numba
import numpy as np
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher

__all__ = ["EXACT", "KERNELS", "REORDER", "Kernel", "compilations", "frozen", "kernel", "warm"]

Function = TypeVar("Function", bound=Callable[..., Any])
Array = TypeVar("Array", bound=np.ndarray[Any, Any])
Examples = Callable[[], Iterable[tuple[Any, ...]]]

EXACT: frozenset[str] = frozenset()
"""Every operation happens as written."""

REORDER = frozenset({"reassoc", "contract"})
"""A sum may be reordered and a product fused with it: what a dot loop needs to become vector
instructions. NaN, infinity and signed zero still mean what they mean."""


class Kernel(NamedTuple):
    """A registered kernel."""

    call: Callable[..., Any]
    """What the module holds under the kernel's name: compiled, or plain under ``NUMBA_DISABLE_JIT=1``."""
    fastmath: frozenset[str]
    examples: Examples | None
    """Fresh small arguments of every signature in use, empty input among them and outputs filled with zeros;
    None for a part of other kernels, which is compiled with them."""


KERNELS: dict[str, Kernel] = {}
"""All kernels, as ``module.function``."""


@overload
def kernel(function: Function, /) -> Function: ...
@overload
def kernel(
    *, fastmath: frozenset[str] = EXACT, examples: Examples | None = None
) -> Callable[[Function], Function]: ...
def kernel(
    function: Callable[..., Any] | None = None,
    /,
    *,
    fastmath: frozenset[str] = EXACT,
    examples: Examples | None = None,
) -> Callable[..., Any]:
    """Make a function a kernel: compiled on its first call, cached on disk, running without the GIL.

    `fastmath` is `EXACT` or `REORDER`. `examples` gives arguments for `warm` and the common tests. A kernel
    never uses ``parallel=True`` (its threads abort or hang the process when two callers enter, or after a
    fork): callers spread blocks over threads instead. It calls only kernels of its own module, because the
    cache notices changes of that one file.
    """

    def decorate(function: Function) -> Function:
        call = numba.njit(
            nogil=True, error_model="numpy", boundscheck=False, fastmath=set(fastmath) or False
        )(function)
        if isinstance(call, Dispatcher):
            # What `cache=True` does, except that a process with nowhere to write runs without a cache.
            with contextlib.suppress(RuntimeError):
                call._cache = _Cache(function)  # type: ignore[attr-defined]
        name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        KERNELS[name] = Kernel(call, fastmath, examples)
        compiled: Function = call
        return compiled

    return decorate if function is None else decorate(function)


class _Cache(FunctionCache):  # type: ignore[misc]  # numba is untyped
    """Numba's cache on disk, where damage, a full disk or another process's write is a miss, not an error.

    Numba lets these reach the caller of the kernel. It also lets two processes that fill an empty cache give
    two signatures one file, so a loaded signature is compared with the one that was asked for.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(sig, target_context)
        except Exception:  # unpickling damaged bytes raises nearly anything
            with contextlib.suppress(OSError):
                self.flush()
            return None
        return found if found is not None and found.signature.args == sig else None

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(Exception):  # it rereads the index, which may be damaged meanwhile
            super().save_overload(sig, data)


def frozen(array: Array) -> Array:
    """A read-only view of `array`, of the base array type: what kernels are given as input.

    Numba compiles a kernel once more for every mix of writable and read-only arguments. Memory maps and
    Arrow buffers are read-only, so all input is, and each kernel has one signature.
    """
    view: Array = np.asarray(array).view()  # type: ignore[assignment]
    view.flags.writeable = False
    return view


def warm() -> int:
    """Compile every kernel, or load it from the cache; returns how many had to be compiled."""
    before = compilations()
    for registered in KERNELS.values():
        for arguments in registered.examples() if registered.examples else ():
            registered.call(*arguments)
    return compilations() - before


def compilations() -> int:
    """How many kernels this process compiled because no cache had them (one for each signature)."""
    calls = (registered.call for registered in KERNELS.values())
    return sum(sum(call.stats.cache_misses.values()) for call in calls if isinstance(call, Dispatcher))
