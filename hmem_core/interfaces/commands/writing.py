"""The commands that change a memory: add, import, forget."""

from __future__ import annotations

import datetime as dt
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

import hmem_core as hmem
from hmem_core import times
from hmem_core.errors import InvalidInput
from hmem_core.ingest.source import Format
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

__all__ = ["add", "forget", "import_"]


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
    fields = options.values(metadata)
    llm = (llm_model, llm_base_url)
    with open_memory(
        memory, encoder, tz, create=True, language=language, llm=llm, compatibility=compatibility
    ) as opened:
        out.added(
            opened.add(
                text,
                session=session,
                speaker=speaker,
                role=role,
                at=at,
                key=key,
                metadata=fields,
                system=True,
            )
        )


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", allow_dash=True, help="Files to import; - for stdin."),
    ],
    format: Annotated[Format | None, typer.Option(help="Told by the content unless given.")] = None,
    sample: Annotated[str | None, typer.Option(help="Which conversation of a LoCoMo file.")] = None,
    session: Annotated[str | None, typer.Option(help="For messages that name no session.")] = None,
    system: Annotated[
        bool, typer.Option("--system", help="Also store system and developer prompts.")
    ] = False,
    language: Language = None,
    llm_model: LLMModel = None,
    llm_base_url: LLMUrl = None,
    compatibility: Compatibility = "cosine",
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Add whole conversations from files.

    JSON Lines or an array of messages ({"role": "user", "content": "…", "at": "2026-03-02"}),
    or LoCoMo files. Importing a file again adds nothing, and a longer export of it only what is new: messages
    are known by their key, or by their content where they have none.
    """
    from hmem_core.ingest.bulk import ingest
    from hmem_core.ingest.readers import read

    out = output(json, tz)
    llm = (llm_model, llm_base_url)
    with open_memory(
        memory, encoder, tz, create=True, language=language, llm=llm, compatibility=compatibility
    ) as opened:
        for path in files:
            name = "stdin" if str(path) == "-" else str(path)
            with _stream(path) as stream:
                source = read(stream, name, format=format, sample=sample, session=session)
                with out.progress(f"importing {name}", source.total) as progress:
                    done = ingest(
                        opened,
                        source.items,
                        system=system,
                        batch=_BATCH,
                        progress=lambda done: progress(done.messages),
                    )
            out.imported(name, source.format, done)


_BATCH = 64
"""Messages between two steps of the progress bar: about a second of embedding."""


def _stream(path: Path) -> AbstractContextManager[BinaryIO]:
    if str(path) == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return path.open("rb")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from error


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
