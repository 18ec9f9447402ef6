"""Fixtures of the command line's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hmem_core.embedding import registry
from hmem_core.interfaces.cli import app
from tests.helpers import hashing_encoder

Run = Callable[..., Result]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the memory of a test is; the working directory is an empty one."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HMEM_MEMORY", str(tmp_path / "memory"))
    monkeypatch.delenv("HMEM_ENCODER", raising=False)
    monkeypatch.delenv("HMEM_DEBUG", raising=False)
    return tmp_path / "memory"


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this process, with a quick encoder where none is named."""
    resolve = registry.resolve

    def quick(encoder: Any) -> Any:
        return hashing_encoder() if encoder is None else resolve(encoder)

    monkeypatch.setattr(registry, "resolve", quick)
    runner = CliRunner()

    def invoke(*arguments: object, input: str | bytes | None = None) -> Result:
        result = runner.invoke(app, [str(argument) for argument in arguments], input=input)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke
