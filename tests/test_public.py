"""The public surface, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import hmem_core as hmem

HEAVY = ("numpy", "numba", "pyarrow", "onnxruntime", "tokenizers", "openai", "scipy", "typer", "rich")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_names_are_importable_and_sorted() -> None:
    assert hmem.__all__ == sorted(hmem.__all__)
    for name in hmem.__all__:
        assert getattr(hmem, name) is not None
    assert dir(hmem) == hmem.__all__


def test_importing_loads_nothing_heavy_and_starts_nothing() -> None:
    out = run(
        "import sys, threading; import hmem_core; "
        f"print([m for m in {HEAVY!r} if m in sys.modules], threading.active_count())"
    )
    assert out == "[] 1\n"


def test_opening_a_memory_loads_no_model() -> None:
    out = run(
        "import sys, hmem_core; hmem_core.open(encoder=lambda texts: [[1.0]] * len(texts)).close(); "
        "print([m for m in ('onnxruntime', 'tokenizers', 'openai') if m in sys.modules])"
    )
    assert out == "[]\n"


def test_every_error_is_an_hmem_error() -> None:
    from hmem_core import errors

    for name in errors.__all__:
        assert issubclass(getattr(errors, name), hmem.HmemError)
        assert name in (errors.__doc__ or "")
