"""How commands open a memory, print, and end with nothing found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

import hmem_core as hmem
from hmem_core import times
from hmem_core.interfaces.exits import Exit, note

if TYPE_CHECKING:
    from hmem_core.interfaces.output import Output

__all__ = ["end", "open_memory", "output", "segment_options"]


def open_memory(
    location: Path,
    encoder: str | None,
    tz: str,
    *,
    create: bool = False,
    language: str | None = None,
    llm: tuple[str | None, str | None] = (None, None),
    compatibility: str = "cosine",
    guided: bool = False,
    facts: bool = False,
    reranker: str | None = None,
) -> hmem.Memory:
    """The memory at `location`.

    Args:
        llm: name of a language model, and the address of its server.
        guided: searches are to be guided by it.
        facts: it is to read facts from turns.
        reranker: a directory with a cross-encoder.

    Raises:
        MemoryNotFound: there is none, and not `create`.
        InvalidInput: a mode that asks a model, and no model.
    """
    model, url = llm
    segments = segment_options(compatibility, model)
    if model is None and guided:
        raise hmem.InvalidInput("--guided asks a language model; name one with --llm-model")
    try:
        return hmem.open(
            location,
            encoder=encoder,
            tz=tz,
            create=create,
            language=language,
            segments=segments,
            facts=hmem.FactOptions(extract=facts),
            reranker=reranker,
            llm=None if model is None else hmem.LLM(model=model, base_url=url),
        )
    except hmem.MemoryNotFound as error:
        raise hmem.MemoryNotFound(
            f"there is no memory at {location}; name another with --memory or HMEM_MEMORY, "
            "or make one with `hmem add` or `hmem import`"
        ) from error


def segment_options(compatibility: str, model: str | None) -> hmem.SegmentOptions:
    """How turns find their place.

    Raises:
        InvalidInput: the mode is not known, or asks a model, and there is none.
    """
    segments = hmem.SegmentOptions(compatibility=compatibility)  # type: ignore[arg-type]  # it checks
    if model is None and compatibility != "cosine":
        raise hmem.InvalidInput(
            f"compatibility={compatibility!r} asks a language model; name one with --llm-model"
        )
    return segments


def output(json: bool, tz: str = "UTC") -> Output:
    """Where the command's results go."""
    from hmem_core.interfaces.output import Output  # rich is not imported for --help

    return Output(json=json, tz=times.zone(tz))


def end(found: object, message: str) -> None:
    """Exit with 1 and a remark where nothing was found."""
    if not found:
        note(message)
        raise typer.Exit(Exit.NOTHING)
