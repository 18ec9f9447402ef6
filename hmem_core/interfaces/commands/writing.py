"""The commands that change a memory by a turn or a few: add, forget."""

from __future__ import annotations

import datetime as dt
import sys
from typing import Annotated, Any

import typer

import hmem_core as hmem
from hmem_core import messages, times
from hmem_core.errors import InvalidInput
from hmem_core.interfaces import options
from hmem_core.interfaces.commands.common import end, open_memory, output
from hmem_core.interfaces.options import (
    DEFAULT_MEMORY,
    Compatibility,
    Encoder,
    Json,
    Language,
    LLMModel,
    LLMUrl,
    Location,
    Tz,
)

__all__ = ["add", "forget"]


def add(
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="What was said; - or nothing to read stdin.")
    ] = None,
    session: Annotated[str | None, typer.Option(help="The conversation it belongs to.")] = None,
    speaker: Annotated[str | None, typer.Option(help="Who said it.")] = None,
    role: Annotated[str, typer.Option(help="user, assistant, tool, …")] = "user",
    at: Annotated[str | None, typer.Option(metavar="TIME", help="When; now unless given.")] = None,
    key: Annotated[
        str | None, typer.Option(help="Makes a retry harmless: a known key is not added again.")
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD=VALUE", help="To filter by; VALUE may be JSON. Repeat for more."),
    ] = None,
    language: Language = None,
    llm_model: LLMModel = None,
    llm_base_url: LLMUrl = None,
    compatibility: Compatibility = "cosine",
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Remember one thing.

    Makes a new memory if there is none. Everything on stdin is one turn; for many messages see `hmem import`.
    """
    text = options.stdin_text(text, "text")
    out = output(json, tz)
    said: dict[str, Any] = {
        "session": session,
        "speaker": speaker,
        "role": role,
        "at": at,
        "key": key,
        "metadata": options.values(metadata),
        "system": True,
    }
    messages.read_messages(text, messages.Defaults(**said), times.zone(tz))  # before a memory is made for it
    llm = (llm_model, llm_base_url)
    with open_memory(
        memory, encoder, tz, create=True, language=language, llm=llm, compatibility=compatibility
    ) as opened:
        out.added(opened.add(text, **said))


def forget(
    ids: Annotated[list[int] | None, typer.Option("--id", metavar="ID", help="Repeat for more.")] = None,
    key: Annotated[str | None, typer.Option(help="Turns added under that key.")] = None,
    session: Annotated[str | None, typer.Option(help="Turns of that conversation.")] = None,
    before: Annotated[str | None, typer.Option(metavar="TIME", help="Turns said before that.")] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask; needed where nobody can be asked.")
    ] = False,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Erase turns for good.

    Their text leaves every file of the memory. With several conditions, the turns that meet all of them go.
    """
    if not yes and not sys.stdin.isatty():
        raise InvalidInput("there is nobody to confirm this; add --yes to forget without being asked")
    out = output(json, tz)
    with open_memory(memory, encoder, tz) as opened:
        if not yes:
            count = _count(opened, ids or None, key, session, before, times.zone(tz))
            end(_confirmed(f"Forget {count:,} turns of {memory} for good?"), "nothing was forgotten")
        forgotten = opened.forget(ids or None, key=key, session=session, before=before)
    out.forgotten(forgotten)
    earlier = "forgotten already" if forgotten.already else "no turn meets the conditions"
    end(forgotten.ids, f"nothing was forgotten: {earlier}")


def _confirmed(question: str) -> bool:
    # Not typer.confirm: it writes to stdout, where a pipe or a JSON reader listens.
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _count(
    memory: hmem.Memory,
    ids: list[int] | None,
    key: str | None,
    session: str | None,
    before: str | None,
    tz: dt.tzinfo,
) -> int:
    """How many turns meet the conditions."""
    limit = None if before is None else times.datetime_of(times.micros(before, tz, "before"))
    return sum(
        (ids is None or turn.id in ids)
        and (key is None or turn.key == key)
        and (limit is None or (turn.at is not None and turn.at < limit))
        for turn in memory.turns(session=session)
    )
