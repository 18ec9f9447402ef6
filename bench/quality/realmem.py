"""Which earlier sessions a person's queries draw on, and how soon each view shows them. No LLM.

    python -m bench.quality.realmem PERSON.json ... [--views dense,fused,...] [--split dev] [--json OUT]

Every person is one memory, filled a session at a time. A query is asked of the memory as it was before its
session began, as it stands; sessions are ranked by their best turn. Session recall at k is the share of the
sessions named as evidence among the first k; NDCG counts them with gain 1. The first two persons in the order
of their files' names are the *dev* half, the others the *test* half.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import hmem_core as hmem
from bench.quality import realmem_data
from bench.quality.realmem_data import Query, Session
from bench.quality.tables import markdown
from bench.quality.vector_cache import CachedEncoder
from hmem_core.embedding.base import Encoder
from hmem_core.embedding.registry import resolve
from hmem_core.errors import HmemError
from hmem_core.options import ReadingOptions

CUTS = (5, 10)
FIGURES = (*(f"session_recall@{cut}" for cut in CUTS), "ndcg@10")
SPLITS = ("all", "dev", "test")
DEV = 2
"""Persons of the dev half."""
CACHE = Path(".cache") / "quality"
VIEWS = ("dense", "lexical", "time", "fused")
_FIRST = 64
"""Turns that are asked for at first; more, if they lie in too few sessions."""


@dataclass(frozen=True)
class Person:
    """One file."""

    name: str
    sessions: list[Session]
    queries: list[Query]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quality.realmem",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", type=Path, nargs="+", help="dialogue files, one a person")
    parser.add_argument("--views", default=",".join(VIEWS), help=f"default: {','.join(VIEWS)}")
    parser.add_argument("--split", choices=SPLITS, default="all", help="the persons to ask")
    parser.add_argument("--encoder", help="a model directory; default: the model hmem uses")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"earlier embeddings; default: {CACHE}")
    parser.add_argument("--json", type=Path, help="write all figures there")
    options = parser.parse_args(arguments)
    people = []
    for path in sorted(options.files, key=lambda path: path.name):
        try:
            people.append(Person(path.name.split("_dialogues")[0], *realmem_data.load(path)))
        except (OSError, KeyError, TypeError, ValueError) as error:
            parser.error(f"{path} is not a file of RealMem: {error!r}")
    try:
        with CachedEncoder(resolve(options.encoder), options.cache) as encoder:
            report = measure(people, encoder, options.views.split(","), options.split)
    except HmemError as error:
        parser.exit(1, f"measuring stopped: {error}\n")
    rows = [
        [row["view"], row["split"], row["persona"], row["questions"], *(row[name] for name in FIGURES)]
        for row in report["rows"]
    ]
    print(markdown(["view", "split", "persona", "questions", *FIGURES], rows))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def measure(
    people: Sequence[Person],
    encoder: Encoder,
    views: Iterable[str] = VIEWS,
    split: str = "all",
    reading: ReadingOptions | None = None,
) -> dict[str, Any]:
    """The report: rows of figures by view, half and person."""
    began = time.perf_counter()
    names = tuple(views)
    found: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for number, person in enumerate(people):
        half = "dev" if number < DEV else "test"
        if split not in ("all", half):
            continue
        print(f"{person.name}: {len(person.queries)} queries", file=sys.stderr)
        for view, figures in _ask(person, encoder, names, reading):
            groups = [(view, half, person.name), (view, half, "all")]
            if split == "all":
                groups.append((view, "all", "all"))
            for group in groups:
                found.setdefault(group, []).append(figures)
    rows = [
        {
            "view": view,
            "split": half,
            "persona": name,
            "questions": len(figures),
            **{figure: round(fmean(of[figure] for of in figures), 4) for figure in FIGURES},
        }
        for (view, half, name), figures in sorted(
            found.items(), key=lambda item: (names.index(item[0][0]), item[0][1:] != ("all", "all"), item[0])
        )
    ]
    return {"rows": rows, "encoder": encoder.identity.name, "seconds": round(time.perf_counter() - began, 1)}


def _ask(
    person: Person, encoder: Encoder, views: Sequence[str], reading: ReadingOptions | None
) -> Iterator[tuple[str, dict[str, float]]]:
    with hmem.open(encoder=encoder) as memory:
        before = []  # the memory's sequence number as each session began
        for position, session in enumerate(person.sessions):
            before.append(memory.stats().seq)
            memory.add(
                [{"role": _role(speaker), "content": text} for speaker, text in session.turns],
                session=str(position),
                at=session.at,
            )
        for view in views:
            for query in person.queries:
                ranked = _ranked(memory, query, before[query.before], view, reading)
                yield view, figures_of(ranked, query.evidence)


def _role(speaker: str) -> str:
    return "assistant" if speaker.lower() == "assistant" else "user"


def _ranked(
    memory: hmem.Memory, query: Query, seq: int, view: str, reading: ReadingOptions | None
) -> list[int]:
    """Sessions, the one of the best turn first."""
    k, sessions = _FIRST, list[int]()
    while True:
        hits = memory.search(query.text, k=k, view=view, as_of=seq, reading=reading)
        sessions = list(dict.fromkeys(int(hit.session) for hit in hits if hit.session is not None))
        shown = sum(len(hit.turns) for hit in hits)
        if len(sessions) >= max(CUTS) or shown < k:
            return sessions
        k *= 4


def figures_of(ranked: Sequence[int], evidence: Sequence[int]) -> dict[str, float]:
    """Session recall and NDCG of one ranking."""
    gold = set(evidence)
    gains = [1 / math.log2(rank + 2) for rank, one in enumerate(ranked[:10]) if one in gold]
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(len(gold), 10)))
    return {
        **{f"session_recall@{cut}": len(gold & set(ranked[:cut])) / len(gold) for cut in CUTS},
        "ndcg@10": sum(gains) / ideal,
    }


if __name__ == "__main__":
    main()
