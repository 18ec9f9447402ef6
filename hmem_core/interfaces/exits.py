"""How the command ends: exit codes, and errors as one line on stderr.

With ``--json`` the line is an object: ``{"error": "MemoryNotFound", "message": "…", "exit": 3}``. A command
line that cannot be read at all (an unknown option) is answered in plain text, and ends with 2.
``HMEM_DEBUG=1`` lets errors through with their traceback.
"""

from __future__ import annotations

import os
import sys
from enum import IntEnum
from typing import Any

import msgspec
import typer
from typer.core import TyperGroup

from hmem_core.errors import (
    EncoderError,
    HmemError,
    InvalidInput,
    LLMError,
    MemoryNotFound,
    NotFound,
    StorageError,
)

__all__ = ["Commands", "Exit", "json_asked", "note"]


class Exit(IntEnum):
    """What the exit code of `hmem` means."""

    OK = 0
    NOTHING = 1
    """Nothing matched: no hit, no turn, nothing to forget."""
    USAGE = 2
    """The command line or the input has no meaning."""
    NO_MEMORY = 3
    """No memory lies at that path."""
    STORAGE = 4
    """The disk refused, or `verify` found damage."""
    ENCODER = 5
    """The encoder is missing, failed, or is not the one the memory was written with."""
    MODEL = 6
    """The language model is missing, down, or gave no usable reply."""
    BUG = 70
    """A fault of hmem's own."""
    INTERRUPTED = 130
    """Ctrl-C."""
    BROKEN_PIPE = 141
    """Whoever read the output stopped reading, as `head` does."""


_CODES: tuple[tuple[type[HmemError], Exit], ...] = (
    (InvalidInput, Exit.USAGE),
    (MemoryNotFound, Exit.NO_MEMORY),
    (NotFound, Exit.NOTHING),
    (EncoderError, Exit.ENCODER),
    (LLMError, Exit.MODEL),
    (StorageError, Exit.STORAGE),
    (HmemError, Exit.STORAGE),
)

_JSON = "hmem.json"


class Commands(TyperGroup):
    """A group of commands that ends every error with a line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()  # so that a reader who has gone is noticed here
        except (KeyboardInterrupt, typer.Abort) as error:
            _say(ctx, error, "interrupted", Exit.INTERRUPTED)
            raise typer.Exit(Exit.INTERRUPTED) from None
        except BrokenPipeError:
            _silence_stdout()
            raise typer.Exit(Exit.BROKEN_PIPE) from None
        except HmemError as error:
            if os.environ.get("HMEM_DEBUG"):
                raise
            code = next(code for kind, code in _CODES if isinstance(error, kind))
            _say(ctx, error, str(error), code)
            raise typer.Exit(code) from None


def json_asked(ctx: Any, value: bool) -> bool:
    """Callback of ``--json``: remembers it for errors."""
    ctx.find_root().meta[_JSON] = value
    return value


def note(text: str) -> None:
    """A remark for whoever is watching, on stderr."""
    typer.echo(f"hmem: {text}", err=True)


def _say(ctx: Any, error: BaseException, message: str, code: Exit) -> None:
    """Report an error and the notes on it, on one line."""
    message = "; ".join([message, *getattr(error, "__notes__", ())])
    message = " ".join(message.split())
    if ctx.find_root().meta.get(_JSON):
        report = {"error": type(error).__name__, "message": message, "exit": int(code)}
        typer.echo(msgspec.json.encode(report), err=True)
    else:
        note(message)


def _silence_stdout() -> None:
    """What is still buffered goes nowhere, so that closing stdout raises nothing."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
