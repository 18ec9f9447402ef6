"""The commands that ask: search, context, turns, get, tree."""

from __future__ import annotations

from typing import Annotated

import typer

from hmem_core.errors import InvalidInput
from hmem_core.interfaces import options
from hmem_core.interfaces.commands.common import end, open_memory, output
from hmem_core.interfaces.options import (
    DEFAULT_MEMORY,
    AsOf,
    Between,
    Encoder,
    Guided,
    Json,
    LLMModel,
    LLMUrl,
    Location,
    Now,
    Reranker,
    Since,
    Tz,
    Until,
    View,
    Where,
)

__all__ = ["context", "get", "search", "tree", "turns"]


_NOTHING = "nothing found: no turn passes the filters, or there is none at all"


def search(
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="A question; - to read stdin.")] = None,
    k: Annotated[str, typer.Option("-k", help="Turns at most, or auto.")] = "8",
    explain: Annotated[bool, typer.Option("--explain", help="Show what makes up each score.")] = False,
    view: View = "fused",
    reranker: Reranker = None,
    between: Between = None,
    since: Since = None,
    until: Until = None,
    where: Where = None,
    as_of: AsOf = None,
    now: Now = None,
    guided: Guided = False,
    llm_model: LLMModel = None,
    llm_base_url: LLMUrl = None,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Find the turns most worth reading, best first.

    In a pipe: id, score, time, speaker, text; with --explain, signals before the text, which add up to the
    score, and with --guided the stages that chose the turn. A segment has its first and last id, and the
    number of its turns beside the speaker.
    """
    query = options.stdin_text(query, "query")
    out = output(json, tz)
    period, filters = options.interval(between, since, until), options.conditions(where)
    llm = (llm_model, llm_base_url) if guided else (None, None)
    with open_memory(memory, encoder, tz, llm=llm, guided=guided, reranker=reranker) as opened:
        hits = opened.search(
            query,
            options.count(k),
            view=view,
            between=period,
            where=filters,
            as_of=options.as_of(as_of),
            now=now,
            explain=explain,
            guided=guided,
        )
    out.hits(hits)
    end(hits, _NOTHING)


def context(
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="A question; - to read stdin.")] = None,
    max_tokens: Annotated[int, typer.Option(help="The budget; never exceeded.")] = 1000,
    view: View = "fused",
    reranker: Reranker = None,
    between: Between = None,
    since: Since = None,
    until: Until = None,
    where: Where = None,
    as_of: AsOf = None,
    now: Now = None,
    guided: Guided = False,
    llm_model: LLMModel = None,
    llm_base_url: LLMUrl = None,
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
    llm = (llm_model, llm_base_url) if guided else (None, None)
    with open_memory(memory, encoder, tz, llm=llm, guided=guided, reranker=reranker) as opened:
        packed = opened.context(
            query,
            max_tokens,
            view=view,
            between=period,
            where=filters,
            as_of=options.as_of(as_of),
            now=now,
            guided=guided,
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


def tree(
    depth: Annotated[int, typer.Option(help="Levels below the first.")] = 3,
    width: Annotated[int, typer.Option(help="Of each segment's parts, so many: the largest.")] = 8,
    min_size: Annotated[int, typer.Option(help="Leave out segments of fewer turns; 1 shows all.")] = 2,
    span: Annotated[
        tuple[int, int] | None,
        typer.Option(metavar="FIRST LAST", help="Begin with the smallest segment that holds both turns."),
    ] = None,
    turn: Annotated[
        int | None, typer.Option(metavar="ID", help="Only the segments that hold that turn, down to itself.")
    ] = None,
    memory: Location = DEFAULT_MEMORY,
    encoder: Encoder = None,
    tz: Tz = "UTC",
    json: Json = False,
) -> None:
    """Draw the segment tree: what of the history belongs together.

    Of each segment: the turns it spans, how many of them are not forgotten, when they were said, its height,
    and a turn that stands for it. In a pipe: number (indented), span, size, height, start, end, and up to
    three such turns. With --json: a segment a line in the same order, with the numbers of its parent and of
    all its children.
    """
    if turn is not None and span is not None:
        raise InvalidInput("--turn and --span are two ways to choose; leave out one")
    out = output(json, tz)
    with open_memory(memory, encoder, tz) as opened:
        segments = opened.segments
        if turn is not None:
            shown = segments.of_turn(turn)[::-1]
        else:
            start = None if span is None else segments.by_span(*span).id
            shown = list(segments.walk(start, depth=depth, width=width, min_size=min_size))
    out.tree(shown, more=turn is None)
    end(shown, "the memory holds no turns")
