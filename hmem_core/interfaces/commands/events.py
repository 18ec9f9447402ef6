"""The commands that show events: events, event."""

from __future__ import annotations

import itertools
from typing import Annotated

import typer

from hmem_core.interfaces.commands.common import end, open_memory, output
from hmem_core.interfaces.options import DEFAULT_MEMORY, Encoder, Json, Location, Tz

__all__ = ["event", "events"]


def events(
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="The events nearest to it; all without one.")
    ] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="Events at most.")] = 20,
    turn: Annotated[int | None, typer.Option(metavar="ID", help="Only the events of that turn.")] = None,
    min_turns: Annotated[int, typer.Option(min=1, help="Leave out events of fewer turns.")] = 1,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """List events: turns that are about one thing, whether said in a row or weeks apart.

    Those that got a turn last come first; with a query, those nearest to it. In a pipe: number, score if
    there is a query, times of the first and last turn, number of turns, speakers, keywords, summary.
    """
    out = output(json, tz)
    with open_memory(memory, encoder, tz) as opened:
        if turn is not None:
            listed = opened.events.of_turn(turn)
        elif query is not None:
            listed = opened.events.search(query, limit)
        else:
            listed = list(opened.events.all(limit, min_turns=min_turns))
        listed = list(itertools.islice((one for one in listed if len(one.turns) >= min_turns), limit))
    out.events(listed)
    end(listed, "there is no such event")


def event(
    id: Annotated[int, typer.Argument(metavar="ID", help="The event's number.")],
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Show one event: its summary, whom and what it is about, and its timeline.

    In a pipe, a line of the timeline is: time, turn, fact.
    """
    out = output(json, tz)
    with open_memory(memory, encoder, tz) as opened:
        out.event(opened.events.get(id))
