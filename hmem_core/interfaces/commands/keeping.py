"""The commands that show what there is and keep it in order: demo, stats, verify, warm."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer

import hmem_core as hmem
from hmem_core.interfaces.commands.common import open_memory, output
from hmem_core.interfaces.exits import Exit
from hmem_core.interfaces.options import (
    DEFAULT_MEMORY,
    Encoder,
    Json,
    LLMModel,
    LLMUrl,
    Location,
    Tz,
)
from hmem_core.records import EncoderIdentity

__all__ = ["demo", "settle", "stats", "verify", "warm"]


def demo(
    memory: Annotated[
        Path | None,
        typer.Option(
            "--memory", "-m", metavar="DIR", help="Keep the memory there, instead of throwing it away."
        ),
    ] = None,
    encoder: Encoder = None,
    json: Json = False,
) -> None:
    """See what this is: import eight months of a conversation, ask it a handful of questions."""
    from hmem_core.interfaces.demo import screen
    from hmem_core.interfaces.demo.run import run

    out = output(json)
    shown = run(memory, encoder, out.progress)
    if json:
        out.record(shown)
    else:
        screen.show(shown, out.console)


def stats(
    llm_model: LLMModel = None,
    llm_base_url: LLMUrl = None,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Sizes and state of a memory. With a language model named, also what waits for it."""
    out = output(json, tz)
    with open_memory(memory, encoder, tz, llm=(llm_model, llm_base_url)) as opened:
        out.stats(opened.stats())


def settle(
    llm_model: LLMModel = None,
    llm_base_url: LLMUrl = None,
    facts: Annotated[bool, typer.Option("--facts", help="Also read facts from all turns.")] = False,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    json: Json = False,
) -> None:
    """Let a language model do all that is due, and show what that took.

    Segments are summarised, and events described.

    With --facts it also says which facts the turns tell; `hmem facts find` shows them.
    """
    out = output(json)
    with open_memory(memory, encoder, "UTC", llm=(llm_model, llm_base_url), facts=facts) as opened:
        done = opened.settle()
        out.settled(done, opened.stats())


def verify(memory: Location = DEFAULT_MEMORY, json: Json = False) -> None:
    """Read every byte of the journal and the checkpoints, and say what is wrong.

    Exits with 4 if anything is. Needs no encoder, and works where the memory cannot be opened.
    """
    verified = hmem.verify(memory)
    output(json).verified(verified)
    if not verified.sound:
        raise typer.Exit(Exit.STORAGE)


class Warmed(msgspec.Struct, frozen=True, kw_only=True):
    """What `warm` did."""

    kernels: list[str]
    compiled: int
    """Kernels that no cache on disk had; the others were only loaded."""
    kernel_seconds: float
    encoder: EncoderIdentity
    encoder_seconds: float


def warm(encoder: Encoder = None, json: Json = False) -> None:
    """Compile what is compiled on first use, so that the first search need not wait.

    Also loads the encoder once, which shows that it works.
    """
    import hmem_kernels
    from hmem_core.embedding.registry import resolve

    out = output(json)
    begun = time.perf_counter()
    compiled = hmem_kernels.warm()
    kernels = time.perf_counter()
    made = resolve(encoder)
    made.embed(["ready"])
    warmed = Warmed(
        kernels=sorted(hmem_kernels.KERNELS),
        compiled=compiled,
        kernel_seconds=kernels - begun,
        encoder=made.identity,
        encoder_seconds=time.perf_counter() - kernels,
    )
    if json:
        out.record(warmed)
    else:
        out.fields(
            {
                "kernels": f"{len(warmed.kernels)}, of which {compiled} had to be compiled",
                "took": f"{warmed.kernel_seconds:.2f} s",
                "encoder": str(warmed.encoder),
                "loaded in": f"{warmed.encoder_seconds:.2f} s",
            }
        )
