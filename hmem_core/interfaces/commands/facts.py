"""The commands that tell facts and ask for them: facts add, find, locate, about, why, history, …"""

from __future__ import annotations

from typing import Annotated

import typer

from hmem_core.interfaces import options
from hmem_core.interfaces.commands.common import end, open_memory, output
from hmem_core.interfaces.exits import Commands
from hmem_core.interfaces.options import DEFAULT_MEMORY, AsOf, Encoder, Json, Location, Tz

__all__ = ["app"]

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    help="Tell facts, ask what holds, and why. A newer value takes the place of an older one, and what "
    "rested on that is outdated.",
)

Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="What the fact is about, such as Ann.")]
UnitId = Annotated[int, typer.Argument(metavar="UNIT", help="The unit's id.")]
Include = Annotated[
    str,
    typer.Option(
        metavar="WHICH",
        help="active; history, superseded ones too; all, also those pending, outdated or retracted.",
    ),
]


@app.command()
def add(
    subject: Subject,
    relation: Annotated[str, typer.Argument(metavar="RELATION", help="Such as 'lives in'.")],
    object: Annotated[str, typer.Argument(metavar="OBJECT", help="Such as Porto.")],
    category: Annotated[str | None, typer.Option(help="The kind of fact, such as residence.")] = None,
    context: Annotated[
        list[str] | None, typer.Option(help="A condition under which it holds; repeat for more.")
    ] = None,
    valid_from: Annotated[
        str | None, typer.Option(metavar="TIME", help="When it began; what makes it newer than another.")
    ] = None,
    valid_to: Annotated[str | None, typer.Option(metavar="TIME", help="When it was true no longer.")] = None,
    confidence: Annotated[float, typer.Option(help="From 0 to 1.")] = 1.0,
    because: Annotated[
        list[int] | None,
        typer.Option(metavar="UNIT", help="A unit on which it rests; it needs all that are named."),
    ] = None,
    source: Annotated[list[int] | None, typer.Option(metavar="ID", help="A turn that says so.")] = None,
    key: Annotated[str | None, typer.Option(help="Makes a retry harmless.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show where the rewrite looked.")] = False,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Tell a fact, and show what that changes.

    Makes a new memory if there is none. In a pipe: unit, status before and after, why, and by which unit.
    """
    out = output(json, tz)
    with open_memory(memory, encoder, tz, create=True) as opened:
        rewrite = opened.facts.add(
            subject,
            relation,
            object,
            category=category,
            context=context,
            valid_from=valid_from,
            valid_to=valid_to,
            confidence=confidence,
            because=because or (),
            source=source or (),
            key=key,
            explain=explain,
        )
    out.rewrite(rewrite)
    if rewrite.explain is not None and not json:
        out.localisation(rewrite.explain)


@app.command()
def find(
    subject: Annotated[str | None, typer.Option(help="Only of that subject.")] = None,
    relation: Annotated[str | None, typer.Option(help="Only with that relation.")] = None,
    object: Annotated[str | None, typer.Option(help="Only with that object.")] = None,
    category: Annotated[str | None, typer.Option(help="Only of that kind.")] = None,
    context: Annotated[str | None, typer.Option(help="Only under that condition.")] = None,
    valid_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only what was true then, superseded or not.")
    ] = None,
    include: Include = "active",
    limit: Annotated[int | None, typer.Option(help="So many at most, the latest ones.")] = None,
    as_of: AsOf = None,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """List facts in the order of the times at which they are true.

    In a pipe: unit, status, start, end, subject, relation, object, contexts, confidence, turns.
    """
    out = output(json, tz)
    with open_memory(memory, encoder, tz) as opened:
        units = opened.facts.find(
            subject,
            relation,
            object,
            category=category,
            context=context,
            valid_at=valid_at,
            include=include,  # type: ignore[arg-type]  # it checks
            limit=limit,
            as_of=options.as_of(as_of),
        )
    out.units(units)
    end(units, "no fact like that is known")


@app.command()
def locate(
    subject: Annotated[str | None, typer.Option(help="About whom or what.")] = None,
    relation: Annotated[str | None, typer.Option(help="Such as 'lives in'.")] = None,
    object: Annotated[str | None, typer.Option(help="Such as Porto.")] = None,
    category: Annotated[str | None, typer.Option(help="The kind of fact.")] = None,
    context: Annotated[list[str] | None, typer.Option(help="A condition; repeat for more.")] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="The time in question, else now.")] = None,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Show the chains of active facts that fit best, with what makes up each score.

    In a pipe: score, attributes, dependency, validity, context, units, text.
    """
    out = output(json, tz)
    with open_memory(memory, encoder, tz) as opened:
        found = opened.facts.locate(subject, relation, object, category=category, context=context, at=at)
    out.localisation(found)
    end(found.paths, "no fact of that subject or category is known")


@app.command()
def about(
    subject: Subject,
    include: Include = "active",
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """List the facts about a subject; columns as in `hmem facts find`."""
    out = output(json, tz)
    with open_memory(memory, encoder, tz) as opened:
        units = opened.facts.about(subject, include=include)  # type: ignore[arg-type]  # it checks
    out.units(units)
    end(units, f"no fact about {subject} is known")


@app.command()
def why(
    unit: UnitId,
    depth: Annotated[int, typer.Option(help="How far down supports are followed.")] = 16,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Show what a fact rests on, down to the turns that tell it. Indented, one fact or turn a line."""
    out = output(json, tz)
    with open_memory(memory, encoder, tz) as opened:
        out.why(opened.facts.why(unit, depth=depth))


@app.command()
def history(
    unit: UnitId,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Show what a fact was from its first day on.

    In a pipe: number of the rewrite, when, status, start, end, confidence, why, and by which unit.
    """
    out = output(json, tz)
    with open_memory(memory, encoder, tz) as opened:
        out.versions(opened.facts.history(unit))


@app.command()
def retract(
    unit: UnitId,
    reason: Annotated[str | None, typer.Option(help="Why; kept with it.")] = None,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Withdraw a fact as an error; what it had superseded holds again. It stays in the history."""
    out = output(json, tz)
    with open_memory(memory, encoder, tz) as opened:
        out.rewrite(opened.facts.retract(unit, reason))


@app.command()
def undo(
    rewrite: Annotated[int, typer.Argument(metavar="REWRITE", help="Its number, as `hmem facts add` shows.")],
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Take a rewrite back, whatever came after it."""
    out = output(json, tz)
    with open_memory(memory, encoder, tz) as opened:
        out.rewrite(opened.facts.undo(rewrite))
