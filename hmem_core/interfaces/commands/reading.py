"""The commands that ask: search, context, turns, get."""

from __future__ import annotations

from typing import Annotated

import typer

from hmem_core.interfaces import options
from hmem_core.interfaces.commands.common import end, open_memory, output
from hmem_core.interfaces.options import (
    DEFAULT_MEMORY,
    AsOf,
    Between,
    Encoder,
    Json,
    Location,
    Since,
    Tz,
    Until,
    View,
    Where,
)

__all__ = ["context", "get", "search", "turns"]


_NOTHING = "nothing found: no turn passes the filters, or there is none at all"


def search(
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="A question; - to read stdin.")] = None,
    k: Annotated[int, typer.Option("-k", help="Hits at most.")] = 8,
    explain: Annotated[bool, typer.Option("--explain", help="Show what makes up each score.")] = False,
    view: View = "fused",
    between: Between = None,
    since: Since = None,
    until: Until = None,
    where: Where = None,
    as_of: AsOf = None,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Find the turns most worth reading, best first.

    In a pipe: id, score, time, speaker, text; with --explain, signals before the text.
    """
    query = options.stdin_text(query, "query")
    out = output(json, tz)
    period, filters = options.interval(between, since, until), options.conditions(where)
    with open_memory(memory, encoder, tz) as opened:
        hits = opened.search(
            query, k, view=view, between=period, where=filters, as_of=options.as_of(as_of), explain=explain
        )
    out.hits(hits)
    end(hits, _NOTHING)


def context(
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="A question; - to read stdin.")] = None,
    max_tokens: Annotated[int, typer.Option(help="The budget; never exceeded.")] = 1000,
    view: View = "fused",
    between: Between = None,
    since: Since = None,
    until: Until = None,
    where: Where = None,
    as_of: AsOf = None,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Pack evidence for a prompt, within a budget of tokens.

    One line a turn, dated and with its id, in the order of time.
    """
    query = options.stdin_text(query, "query")
    out = output(json, tz)
    period, filters = options.interval(between, since, until), options.conditions(where)
    with open_memory(memory, encoder, tz) as opened:
        packed = opened.context(
            query, max_tokens, view=view, between=period, where=filters, as_of=options.as_of(as_of)
        )
    out.context(packed)
    too_long = f"nothing fits into {max_tokens} tokens; raise --max-tokens"
    end(
        packed.lines,
        too_long if packed.left_out else _NOTHING,
    )


def turns(
    session: Annotated[str | None, typer.Option(help="Only that conversation.")] = None,
    between: Between = None,
    since: Since = None,
    until: Until = None,
    where: Where = None,
    as_of: AsOf = None,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """List turns in the order of their times.

    In a pipe: id, time, session, speaker, text.
    """
    out = output(json, tz)
    period, filters = options.interval(between, since, until), options.conditions(where)
    with open_memory(memory, encoder, tz) as opened:
        listed = opened.turns(session=session, between=period, where=filters, as_of=options.as_of(as_of))
    out.turns(listed)
    end(listed, "no turn passes the filters")


def get(
    id: Annotated[int | None, typer.Argument(metavar="ID", help="The turn's id.")] = None,
    key: Annotated[str | None, typer.Option(help="Its key, instead.")] = None,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Show one turn, whole."""
    out = output(json, tz)
    with open_memory(memory, encoder, tz) as opened:
        out.turn(opened.get(id, key=key))
