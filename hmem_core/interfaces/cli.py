"""The command `hmem`.

What is heavy is imported when a command needs it, so that ``hmem --help`` is quick.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

import hmem_core as hmem
from hmem_core.interfaces.commands import events, facts, importing, keeping, reading, writing
from hmem_core.interfaces.exits import Commands, Exit, note

__all__ = ["app", "main"]

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 nothing found, 2 wrong usage or input, 3 no such memory, 4 storage refused "
    "or damaged, 5 encoder missing or not the right one, 6 language model failed. Set HMEM_DEBUG=1 for "
    "tracebacks.",
)


def main() -> None:
    """Run the command line. Never shows a traceback unless HMEM_DEBUG is set."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal in an old encoding is shown what it can
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="hmem")
    except Exception as error:  # whatever was foreseen has ended in SystemExit
        if os.environ.get("HMEM_DEBUG"):
            raise
        note(
            f"a fault of hmem's own: {type(error).__name__}: {error}; "
            "HMEM_DEBUG=1 shows where, please report it"
        )
        sys.exit(Exit.BUG)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"hmem {hmem.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A memory for LLM agents: add what was said, ask for what is worth reading.

    `hmem demo` shows in one screen what this is. Output is for eyes on a terminal, tab-separated lines in a
    pipe, JSON with --json.
    """


_PANELS: dict[str, dict[str, Callable[..., None]]] = {
    "Start here": {"demo": keeping.demo},
    "Writing": {"add": writing.add, "import": importing.import_, "forget": writing.forget},
    "Asking": {
        "search": reading.search,
        "context": reading.context,
        "turns": reading.turns,
        "get": reading.get,
        "tree": reading.tree,
        "events": events.events,
        "event": events.event,
    },
    "Keeping": {
        "stats": keeping.stats,
        "settle": keeping.settle,
        "verify": keeping.verify,
        "warm": keeping.warm,
    },
}
for _panel, _commands in _PANELS.items():
    for _name, _command in _commands.items():
        app.command(_name, rich_help_panel=_panel)(_command)
app.add_typer(facts.app, name="facts", rich_help_panel="Facts")
