"""Guided search over a memory: what vectors find, chosen among by a model (`events.guided`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from hmem_core.columns.scanning import best_rows
from hmem_core.effects import Program
from hmem_core.errors import InvalidInput
from hmem_core.events import guided
from hmem_core.events.guided import Account, Material, Selected
from hmem_core.events.scoring import Asked, event_scores
from hmem_core.llm.prompts.rendering import ShownFact, ShownTurn
from hmem_core.llm.prompts.turn_prediction import Opened
from hmem_core.messages import clean
from hmem_core.options import GuidedOptions, ReadingOptions
from hmem_core.records import Evidence, Guided
from hmem_core.retrieval import filters, reading, selection, signals
from hmem_core.retrieval.reranking import best_hits
from hmem_core.retrieval.search import Reader, Request, check, embedded, understood
from hmem_core.retrieval.showing import shown
from hmem_core.retrieval.signals import Query
from hmem_core.retrieval.views import VIEWS, Hit, Ranker
from hmem_core.state import View

__all__ = ["check_guided", "search"]

FloatArray = npt.NDArray[np.float32]
Mask = npt.NDArray[np.uint8]

FACTS = 64
"""Lines of a timeline that are shown at most, the latest."""


class _Ranked(NamedTuple):
    """Every turn by itself, as a view ranks it."""

    signals: signals.Signals
    total: FloatArray
    allowed: Mask
    """The turns that may be read at all."""
    found: Mask
    """Those of them that the view finds."""


def check_guided(request: Request) -> None:
    """Refuse a view that no model can be guided by.

    Raises:
        InvalidInput
    """
    check(request)
    if request.view not in VIEWS or VIEWS[request.view].columns is None:
        single = ", ".join(sorted(name for name, ranker in VIEWS.items() if ranker.columns is not None))
        raise InvalidInput(
            f"view={request.view!r} does not rank single turns, and guided search chooses among these; "
            f"use one of {single}"
        )


def search(request: Request, reader: Reader, how: GuidedOptions) -> Program[Guided]:
    """Find at most ``request.k`` turns, best first, and say how.

    A turn scores what it does in the view, and more if the model named it in an event. So with the model
    down, hits and their order are those of a search without it.

    Raises:
        LLMMissing: there is no model.
    """
    check_guided(request)
    question = clean(request.query)
    account = Account()
    text = yield from guided.search_text(question, account, how)
    asked = [account.stage("keywords", ())] if how.query != "question" else []
    ranker = VIEWS[request.view]
    chosen_reading = request.reading or reader.options
    query = yield from embedded(text, ranker, chosen_reading, reader)
    view = reader.view(ranker._replace(events=True))
    query = understood(query, request, view, ranker, reader)
    allowed = filters.mask(view, reader.tz, between=request.between, where=request.where, as_of=request.as_of)
    ranked = _rank(view, query, ranker, allowed, chosen_reading)
    k = selection.MOST if request.k == "auto" else request.k  # it is the model that decides
    best = best_rows(ranked.total, max(k, how.semantic_turns), ranked.found).tolist()
    opened = _events(view, query, ranked, chosen_reading, how) if how.events else []
    semantic = list(filter(None, (shown(view, row) for row in best[: how.semantic_turns])))
    turns = {turn.id for turn in semantic} | {turn.id for event in opened for turn in event.turns}
    worth = {turn: float(ranked.total[turn]) for turn in turns}
    chosen = yield from guided.select(question, Material(semantic, opened, worth), account, how)
    if not account.answered and (how.prediction or how.filter or how.query != "question"):
        # The model did not help: as without it.
        reranks = reader.reranks
        hits = yield from best_hits(view, query, request.view, k, allowed, chosen_reading, reranks=reranks)
    else:
        gain = how.predicted * float(np.std(list(worth.values()))) if worth else 0.0
        hits = [_hit(row, ranked.signals, gain if row in chosen.predicted else 0.0) for row in chosen.kept]
        hits.sort(key=lambda hit: (-hit.score, hit.rows))
    evidence = []
    for hit in hits[:k]:
        piece = reading.evidence(view, hit, explain=request.explain)
        if piece is not None:
            evidence.append(_explained(piece, chosen, semantic) if request.explain else piece)
    stages = (*asked, *chosen.stages)
    return Guided(evidence=tuple(evidence), query=text, stages=stages, judged=chosen.judged)


def _rank(view: View, query: Query, ranker: Ranker, allowed: Mask, options: ReadingOptions) -> _Ranked:
    assert ranker.columns is not None
    columns = ranker.columns(view, query, selection.REACH, allowed, options)
    total: FloatArray = np.add.reduce(list(columns.values()))
    found = allowed & (total > 0) if ranker.positive else allowed
    return _Ranked(columns, total, allowed, found)


def _events(
    view: View, query: Query, ranked: _Ranked, options: ReadingOptions, how: GuidedOptions
) -> list[Opened]:
    """The events nearest to the query, each with the turns that may be read of it."""
    if not view.events.links.events or not how.semantic_events:
        return []
    cosines = signals.cosines(view, query.vector)
    if set(ranked.signals) == {"dense"}:  # cosines alone, as the paper
        own = np.zeros_like(cosines)
        options = msgspec.structs.replace(options, centroid=1.0, coverage=0.0)
    else:
        own = signals.standardised(cosines, ranked.allowed, options.dense)
        own = own + signals.lexical(view, query.text, ranked.allowed, options)
    asked = Asked(own, cosines, query.vector, view.analyzer.query(query.text))
    scores, shown = event_scores(view, asked, ranked.allowed, options)
    order = np.argsort(-scores, kind="stable")
    nearest = order[shown[order]][: how.semantic_events].tolist()
    opened = (_open(view, event, ranked, how.shown) for event in nearest)
    return [event for event in opened if event.turns]


def _open(view: View, event: int, ranked: _Ranked, most: int) -> Opened:
    """An event, as far as a read may see it: nothing that rests on a turn the filters exclude."""
    rows = np.unique(view.events.links.turns_of(event))
    rows = rows[ranked.allowed[rows] == 1]
    chosen = rows[np.argsort(-ranked.total[rows], kind="stable")[:most]].tolist()
    turns = [turn for row in chosen if (turn := shown(view, row)) is not None]
    turns.sort(key=lambda turn: (turn.at, turn.id))
    at = {turn.id: turn.at for turn in turns}
    entries = [
        entry
        for entry in view.events.descriptions_of(event)
        if all(ranked.allowed[turn] for turn in entry.read)
    ]
    summaries = [entry.summary for entry in entries if entry.summary is not None]
    facts = [
        ShownFact(item.turn, item.time or at[item.turn].date().isoformat(), item.fact)
        for entry in entries
        for item in entry.timeline
        if item.turn in at
    ]
    facts.sort(key=lambda fact: at[fact.turn])
    return Opened(
        id=event,
        summary=summaries[-1] if summaries else "",
        facts=tuple(facts[-FACTS:]),
        turns=tuple(turns),
        left_out=len(rows) - len(turns),
    )


def _hit(row: int, columns: signals.Signals, gain: float) -> Hit:
    parts = {name: float(column[row]) for name, column in columns.items()}
    if gain:
        parts["predicted"] = gain
    return Hit((row, row), (row,), sum(parts.values()), parts)


def _explained(piece: Evidence, chosen: Selected, semantic: Sequence[ShownTurn]) -> Evidence:
    (turn,) = piece.turns
    passed = {
        "vectors": any(turn == one.id for one in semantic),
        "prediction": turn in chosen.predicted,
        "filter": chosen.judged and turn in chosen.kept,
    }
    return msgspec.structs.replace(piece, stages=tuple(name for name, by in passed.items() if by))
