"""The command that adds whole conversations: import, into one memory or one for each, now or in batches."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, NamedTuple

import typer

import hmem_core as hmem
from hmem_core.errors import InvalidInput
from hmem_core.ingest.source import Format, Item, Source
from hmem_core.interfaces.commands.common import open_memory, output, segment_options
from hmem_core.interfaces.exits import Exit, note
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

if TYPE_CHECKING:
    from hmem_core.ingest.offline import Imported
    from hmem_core.interfaces.output import Output

__all__ = ["import_"]

_OFFLINE = "In batches"


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
    each: Annotated[
        bool,
        typer.Option(
            "--each",
            help="Give each conversation a memory of its own below DIR, named after its file or sample.",
        ),
    ] = False,
    offline: Annotated[
        Path | None,
        typer.Option(
            metavar="RECORD",
            help="Ask the language model over its batch API, which costs less and may take a day a round. "
            "Stopped, the same command goes on; RECORD is the file that remembers. Delete it at the end.",
            rich_help_panel=_OFFLINE,
        ),
    ] = None,
    poll: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="Between two looks at a batch.", rich_help_panel=_OFFLINE
        ),
    ] = 60.0,
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
    out = output(json, tz)
    found = _conversations(files, memory, format, sample, session, each)
    if offline is not None:
        from hmem_core.ingest.offline import import_offline

        if llm_model is None:
            raise InvalidInput("--offline asks a language model; name one with --llm-model")
        done = import_offline(
            {place: _items(conversations) for place, conversations in found.items()},
            hmem.LLM(model=llm_model, base_url=llm_base_url),
            offline,
            encoder=encoder,
            tz=tz,
            language=language,
            segments=segment_options(compatibility, llm_model),
            system=system,
            poll=poll,
            progress=lambda questions: note(f"a batch of {questions:,} questions is on its way"),
        )
        _say(out, done)
        return
    llm = (llm_model, llm_base_url)
    for place, conversations in found.items():
        with open_memory(
            place, encoder, tz, create=True, language=language, llm=llm, compatibility=compatibility
        ) as opened:
            for conversation in conversations:
                _ingest(opened, conversation, system, out)


class _Conversation(NamedTuple):
    """Where one is to be read."""

    path: Path
    format: Format | None
    sample: str | None
    session: str | None
    shared: bool
    """Whether there are others in its file."""

    @property
    def name(self) -> str:
        name = "stdin" if str(self.path) == "-" else str(self.path)
        return f"{name}, {self.sample}" if self.shared else name

    def read(self, stream: BinaryIO) -> Source:
        from hmem_core.ingest.readers import read

        return read(stream, self.name, format=self.format, sample=self.sample, session=self.session)


def _conversations(
    files: Sequence[Path],
    memory: Path,
    format: Format | None,
    sample: str | None,
    session: str | None,
    each: bool,
) -> dict[Path, list[_Conversation]]:
    """What goes into which memory. All files are there to be read."""
    from hmem_core.ingest.readers import samples

    found: dict[Path, list[_Conversation]] = {}
    for path in files:
        conversation = _Conversation(path, format, sample, session, shared=False)
        with _stream(path) as stream:
            if not each:
                found.setdefault(memory, []).append(conversation)
                continue
            if str(path) == "-":
                raise InvalidInput("--each names memories after files, and stdin has no name; give files")
            names = [sample] if sample is not None else samples(stream, str(path), format=format)
        for name in names or (None,):
            place = memory / _plain(path.stem if name is None else name, path)
            if place in found:
                raise InvalidInput(
                    f"{path} and {found[place][0].path} would both become {place}; rename one of them"
                )
            found[place] = [conversation._replace(sample=name, shared=len(names) > 1)]
    return found


def _plain(name: str, path: Path) -> str:
    """The name of a directory."""
    if not name.strip(". ") or any(sign in name for sign in "/\\\0"):
        raise InvalidInput(f"{path} holds a conversation called {name!r}, which cannot name a directory")
    return name


def _items(conversations: Sequence[_Conversation]) -> Iterator[Item]:
    """The messages of conversations, one after the other; a file is open while it is read."""
    for conversation in conversations:
        with _stream(conversation.path) as stream:
            yield from conversation.read(stream).items


_BATCH = 64
"""Messages between two steps of the progress bar: about a second of embedding."""


def _ingest(memory: hmem.Memory, conversation: _Conversation, system: bool, out: Output) -> None:
    from hmem_core.ingest.bulk import ingest

    name = conversation.name
    with _stream(conversation.path) as stream:
        source = conversation.read(stream)
        with out.progress(f"importing {name}", source.total) as progress:
            done = ingest(
                memory,
                source.items,
                system=system,
                batch=_BATCH,
                progress=lambda done: progress(done.messages),
            )
    out.imported(name, source.format, done)


def _say(out: Output, results: dict[Path, Imported | Exception]) -> None:
    """What became of each memory. The first error is raised once all is said."""
    first: Exception | None = None
    troubled = False
    for place, done in results.items():
        if isinstance(done, Exception):
            if first is None:
                first = done
            else:
                note(f"{place}: {done}")
            continue
        out.imported_offline(str(place), done)
        if done.problem is not None:
            troubled = True
            note(f"{place}: {done.problem}")
    if first is not None:
        raise first
    if troubled:
        raise typer.Exit(Exit.MODEL)


def _stream(path: Path) -> AbstractContextManager[BinaryIO]:
    if str(path) == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return path.open("rb")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from error
