"""Which sessions and turns answer LongMemEval's questions, and how soon each view shows them. No LLM.

    python -m bench.quality.longmemeval longmemeval_s.json [--views fused,...] [--baselines bm25,...]
        [--json OUT]

Every instance is one memory, filled a session at a time, and asked its one question. Sessions are ranked by
their best turn. Questions that nothing answers are left out. There is nothing to choose on this data: no half
is set apart.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import hmem_core as hmem
from bench.quality import arguments, longmemeval_data
from bench.quality.baselines import BASELINES
from bench.quality.finding import VIEWS, Search, searches
from bench.quality.longmemeval_data import Instance
from bench.quality.tables import markdown
from bench.quality.vector_cache import CachedEncoder
from hmem_core.embedding.base import Encoder
from hmem_core.embedding.registry import resolve
from hmem_core.errors import HmemError

__all__ = ["FIGURES", "main", "measure"]

SESSION_CUTS = (5, 10)
CUTS = (8, 10, 20)
FIGURES = (*(f"session_recall@{cut}" for cut in SESSION_CUTS), *(f"recall@{cut}" for cut in CUTS))
ASKED = ("dense", "lexical", "time-top-down", "fused")
_FIRST = 64
"""Turns that are asked for at first; more, if they lie in too few sessions."""


def measure(
    instances: Sequence[Instance],
    encoder: Encoder,
    views: Sequence[str] = ASKED,
    baselines: Sequence[str] = (),
) -> dict[str, Any]:
    """The report: rows of figures by view and kind of question."""
    began = time.perf_counter()
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    answerable = [one for one in instances if one.evidence]
    for number, instance in enumerate(answerable, 1):
        print(f"{number}/{len(answerable)} {instance.id}", file=sys.stderr)
        for name, figures in _ask(instance, encoder, views, baselines):
            for kind in ("all", instance.kind):
                found.setdefault((name, kind), []).append(figures)
    rows = [
        {
            "view": view,
            "split": "all",
            "category": kind,
            "questions": len(figures),
            **{
                name: round(fmean(of[name] for of in figures if name in of), 4)
                for name in FIGURES
                if any(name in of for of in figures)
            },
        }
        for (view, kind), figures in found.items()
    ]
    return {"rows": rows, "encoder": encoder.identity.name, "seconds": round(time.perf_counter() - began, 1)}


def _ask(
    instance: Instance, encoder: Encoder, views: Sequence[str], baselines: Sequence[str]
) -> Iterator[tuple[str, dict[str, float]]]:
    asked_at = round(instance.at.timestamp() * 1e6)
    with hmem.open(encoder=encoder, clock=lambda: asked_at) as memory:
        for session in instance.sessions:
            memory.add(
                [{"role": turn.role, "content": turn.text, "key": turn.key} for turn in session.turns],
                session=session.key,
                at=session.at,
            )
        asked = searches(memory, {name: VIEWS[name] for name in views}, baselines, encoder)
        for name, search in asked.items():
            yield name, _figures(memory, search, instance)


def _figures(memory: hmem.Memory, search: Search, instance: Instance) -> dict[str, float]:
    sessions = _sessions(search, instance.question)
    figures = {
        f"session_recall@{cut}": len(instance.evidence.intersection(sessions[:cut])) / len(instance.evidence)
        for cut in SESSION_CUTS
    }
    if instance.turns:
        keys = {turn.id: turn.key for turn in memory.turns()}
        for cut in CUTS:
            shown = search.find(instance.question, cut)
            ids = {keys[turn] for one in shown for turn in one.turns}
            figures[f"recall@{cut}"] = len(ids & instance.turns) / len(instance.turns)
    return figures


def _sessions(search: Search, question: str) -> list[str]:
    """The session of the best turn first."""
    k = _FIRST
    while True:
        hits = search.find(question, k)
        sessions = list(dict.fromkeys(hit.session for hit in hits if hit.session is not None))
        if len(sessions) >= max(SESSION_CUTS) or sum(len(hit.turns) for hit in hits) < k:
            return sessions
        k *= 4


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments.parser("longmemeval", __doc__)
    parser.add_argument("file", type=Path, help="longmemeval_s.json")
    parser.add_argument(
        "--views",
        type=arguments.names_among(VIEWS),
        default=ASKED,
        help=f"some of {','.join(VIEWS)}; default: {','.join(ASKED)}",
    )
    ranked = [name for name in BASELINES if name != "full-context"]
    arguments.add_common(parser, baselines=ranked, split=False)
    options = parser.parse_args(given)
    try:
        instances = longmemeval_data.load(options.file)
    except (OSError, KeyError, TypeError, ValueError) as error:
        parser.error(f"{options.file} is not a file of LongMemEval: {error!r}")
    try:
        with CachedEncoder(resolve(options.encoder), options.cache) as encoder:
            report = measure(instances, encoder, options.views, options.baselines)
    except HmemError as error:
        parser.exit(1, f"measuring stopped: {error}\n")
    columns = ("view", "category", "questions", *FIGURES)
    print(markdown(columns, [[row.get(name, "") for name in columns] for row in report["rows"]]))
    arguments.write(options.json, report)


if __name__ == "__main__":
    main()
