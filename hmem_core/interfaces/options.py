"""The options that commands share, and how their values are read."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hmem_core.errors import InvalidInput
from hmem_core.interfaces.exits import json_asked

__all__ = [
    "DEFAULT_MEMORY",
    "AsOf",
    "Between",
    "Compatibility",
    "Encoder",
    "Guided",
    "Json",
    "LLMModel",
    "LLMUrl",
    "Language",
    "Location",
    "Now",
    "Reranker",
    "Since",
    "Tz",
    "Until",
    "View",
    "Where",
    "as_of",
    "conditions",
    "count",
    "interval",
    "stdin_text",
    "values",
]

DEFAULT_MEMORY = Path("agent-memory")

_SHARED = "Options of every command"
_FILTERS = "Filters"

Location = Annotated[
    Path,
    typer.Option(
        "--memory", "-m", metavar="DIR", envvar="HMEM_MEMORY", help="The memory.", rich_help_panel=_SHARED
    ),
]
Encoder = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        envvar="HMEM_ENCODER",
        help="A directory with model.onnx and tokenizer.json; without it, the built-in model.",
        rich_help_panel=_SHARED,
    ),
]
Reranker = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="A directory with model.onnx and tokenizer.json of a cross-encoder, which orders the best turns "
        "anew; without it, none does.",
    ),
]
_MODEL = "Language model"
LLMModel = Annotated[
    str | None,
    typer.Option(
        "--llm-model",
        metavar="NAME",
        envvar="HMEM_LLM_MODEL",
        help="A language model that summarises segments; without it, none is ever asked.",
        rich_help_panel=_MODEL,
    ),
]
LLMUrl = Annotated[
    str | None,
    typer.Option(
        "--llm-base-url",
        metavar="URL",
        envvar="HMEM_LLM_BASE_URL",
        help="The OpenAI-compatible server where it runs.",
        rich_help_panel=_MODEL,
    ),
]
Guided = Annotated[
    bool,
    typer.Option(
        "--guided",
        help="Let the language model choose among what is found, and look into events for more.",
        rich_help_panel=_MODEL,
    ),
]
Compatibility = Annotated[
    str,
    typer.Option(
        metavar="MODE",
        help="Who says which segments a turn belongs to: cosine, or the language model: pointwise, batch.",
        rich_help_panel=_MODEL,
    ),
]
Language = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="How words in Latin script are stemmed in a new memory: english (unless given), german, …",
    ),
]
Tz = Annotated[
    str,
    typer.Option(
        metavar="ZONE",
        help="Time zone in which times without one are read, and times are shown.",
        rich_help_panel=_SHARED,
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print JSON: one object, or one a line where there are several. Errors are JSON too, on stderr.",
        callback=json_asked,
        rich_help_panel=_SHARED,
    ),
]

Between = Annotated[
    tuple[str, str] | None,
    typer.Option(
        metavar="START END",
        help="Only turns said in that time; an END that is a bare date includes the day.",
        rich_help_panel=_FILTERS,
    ),
]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only turns said then or later.", rich_help_panel=_FILTERS)
]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Only turns said before; a bare date includes the day.",
        rich_help_panel=_FILTERS,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD=VALUE",
        help="Only turns with that session, speaker, role, key or metadata field; repeat for more. VALUE may "
        """be JSON: a list means any of its values, {"$gte": 3} is an operator.""",
        rich_help_panel=_FILTERS,
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option(
        metavar="SEQ|TIME",
        help="Only what the memory knew at that entry of its journal (a whole number) or at that time.",
        rich_help_panel=_FILTERS,
    ),
]
Now = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help='When the question is asked, which is what "last week" in it counts from; else it is now.',
    ),
]
View = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="How turns are ranked: fused, by all signals; dense or lexical, by embeddings or words alone; "
        "time, by the segment tree, which finds segments too; events, by their own and their events' scores; "
        "facts finds facts instead of turns.",
    ),
]


def interval(
    between: tuple[str, str] | None, since: str | None, until: str | None
) -> tuple[str | None, str | None] | None:
    """The argument ``between=`` that the three options mean.

    Raises:
        InvalidInput: both forms were used.
    """
    if between is None:
        return None if since is None and until is None else (since, until)
    if since is not None or until is not None:
        raise InvalidInput("--between says both ends; leave out --since and --until, or use only those")
    return between


def as_of(value: str | None) -> int | str | None:
    """Digits alone are a sequence number, anything else is a time."""
    return int(value) if value is not None and value.isdecimal() else value


def count(value: str) -> int | Literal["auto"]:
    """The argument ``k=``.

    Raises:
        InvalidInput: it is neither a whole number nor "auto".
    """
    if value == "auto":
        return "auto"
    try:
        return int(value)
    except ValueError:
        raise InvalidInput(f"-k {value!r} must be a whole number from 1, or auto") from None


def conditions(given: Sequence[str] | None) -> dict[str, Any] | None:
    """The argument ``where=`` that the values of ``--where`` mean: FIELD=VALUE each, or a JSON object.

    Raises:
        InvalidInput: one is neither, or a field comes twice.
    """
    return _pairs(given, "--where", 'for any of several values write FIELD=["a", "b"]') or None


def values(given: Sequence[str] | None) -> dict[str, Any]:
    """Metadata from FIELD=VALUE pairs; a VALUE that is JSON is read as such, any other is text.

    Raises:
        InvalidInput: one is no pair, or a name comes twice.
    """
    return _pairs(given, "--metadata", 'for several values write FIELD=["a", "b"]')


def _pairs(given: Sequence[str] | None, option: str, remedy: str) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for text in given or ():
        for name, value in _pair(text, option).items():
            if name in pairs:
                raise InvalidInput(f"{option} names {name!r} twice; {remedy}")
            pairs[name] = value
    return pairs


def _pair(text: str, option: str) -> Mapping[str, Any]:
    whole = _json_or_text(text)
    if isinstance(whole, dict):
        return whole
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidInput(f"{option} {text!r} is neither FIELD=VALUE nor a JSON object")
    return {name: _json_or_text(value)}


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def stdin_text(given: str | None, what: str) -> str:
    """The argument; or, if it is ``-`` or is missing in a pipe, everything on stdin.

    Raises:
        InvalidInput: there is neither, or stdin is not UTF-8.
    """
    if given is not None and given != "-":
        return given
    if given is None and sys.stdin.isatty():
        raise InvalidInput(f"there is no {what}; give it as an argument, or pipe it in")
    try:
        return sys.stdin.buffer.read().decode().removeprefix("\ufeff").rstrip("\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the {what} on stdin is not UTF-8 (byte {error.start})") from error
