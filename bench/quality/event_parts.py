"""What summaries, timelines and entities of events each add to LoCoMo's evidence. No LLM.

    python -m bench.quality.event_parts locomo10.json [--split dev] [--cache DIR]

The events are those that a memory builds and describes by itself. A turn scores by its embedding and its
words; to that comes the score of its event, made of the parts that a row names: the log mean odds of its
turns (*turns*), the cosine of the query with its centroid (*centroid*), how much of the query's words its
turns have (*coverage*), and the cosine of the query with the embedding of what describes the event
(*summary*, *timeline*: its best fact, *entities* and keywords as a list). Each part but the first is
standardised over events and weighs as much as the defaults weigh a part, one half.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
import numpy.typing as npt

import hmem_core as hmem
from bench.quality import locomo_data
from bench.quality.arguments import CACHE
from bench.quality.locomo_data import Conversation
from bench.quality.protocol import DEV, SPLITS, asked_at, fill
from bench.quality.tables import markdown
from bench.quality.vector_cache import CachedEncoder
from hmem_core.embedding.base import Encoder
from hmem_core.embedding.registry import resolve

FloatArray = npt.NDArray[np.float32]
Part = Callable[[FloatArray], FloatArray]
"""From the vector of a query to a score of each event."""

SHOWN = 8
WEIGHT = 0.5
DESCRIBED = ("summary", "timeline", "entities")
ROWS = (
    (),
    ("turns",),
    *(("turns", part) for part in ("centroid", "coverage", *DESCRIBED)),
    ("turns", "centroid", "coverage"),
    *(("turns", "centroid", "coverage", part) for part in DESCRIBED),
    ("turns", "centroid", "coverage", *DESCRIBED),
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quality.event_parts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, help="locomo10.json")
    parser.add_argument("--split", choices=SPLITS, default="all", help="the conversations to ask")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"embeddings; default: {CACHE}")
    options = parser.parse_args(arguments)
    conversations = locomo_data.load(options.file)
    chosen = {"all": conversations, "dev": conversations[:DEV], "test": conversations[DEV:]}[options.split]
    recalls: dict[tuple[str, ...], list[float]] = {row: [] for row in ROWS}
    with CachedEncoder(resolve(None), options.cache) as encoder:
        for conversation in chosen:
            for row, found in measure(conversation, encoder).items():
                recalls[row] += found
    table = ((" + ".join(("own", *row)), len(found), fmean(found)) for row, found in recalls.items())
    print(markdown(["parts", "questions", f"recall@{SHOWN}"], table))


def measure(conversation: Conversation, encoder: Encoder) -> dict[tuple[str, ...], list[float]]:
    """For each row of parts, the recall of each question."""
    with hmem.open(encoder=encoder, clock=asked_at(conversation)) as memory:
        fill(memory, conversation)
        keys = {turn.id: turn.key for turn in memory.turns()}
        events = list(memory.events)
        described = _described(events, encoder)
        recalls: dict[tuple[str, ...], list[float]] = {row: [] for row in ROWS}
        for question in conversation.questions:
            if not question.evidence:
                continue
            gold = set(question.evidence)
            own, parts = _parts(memory, question.text, events)
            query = encoder.embed([question.text])[0]
            parts |= {name: part(query) for name, part in described.items()}
            for row in ROWS:
                scores = own.copy()
                if row:
                    total = parts["turns"] + sum(WEIGHT * _standardised(parts[name]) for name in row[1:])
                    for event, score in zip(events, total, strict=True):
                        scores[list(event.turns)] += score
                best = np.argsort(-scores, kind="stable")[:SHOWN].tolist()
                recalls[row].append(len(gold & {keys[turn] for turn in best}) / len(gold))
    return recalls


def _described(events: Sequence[hmem.Event], encoder: Encoder) -> dict[str, Part]:
    """The parts that compare a query with what describes the events."""
    facts = [item.fact for event in events for item in event.timeline]
    ends = np.cumsum([len(event.timeline) for event in events])[:-1]
    summaries = encoder.embed([event.summary for event in events])
    dated = encoder.embed(facts)
    names = encoder.embed([", ".join((*event.entities, *event.keywords)) for event in events])
    return {
        "summary": lambda query: summaries @ query,
        "timeline": lambda query: np.array(
            [part.max() for part in np.split(dated @ query, ends)], np.float32
        ),
        "entities": lambda query: names @ query,
    }


def _parts(
    memory: hmem.Memory, query: str, events: Sequence[hmem.Event]
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """What each turn scores by itself, and the parts that the engine computes, as searches explain them."""
    own = np.zeros(sum(len(event.turns) for event in events), np.float32)
    found: dict[str, FloatArray] = {}
    for name, centroid, coverage in (("turns", 0.0, 0.0), ("centroid", 1.0, 0.0), ("coverage", 0.0, 1.0)):
        reading = hmem.ReadingOptions(centroid=centroid, coverage=coverage)
        hits = memory.search(query, own.size, view="events", explain=True, reading=reading)
        lent = np.zeros_like(own)
        for hit in hits:
            assert hit.signals is not None
            lent[hit.turns[0]] = hit.signals["event"]
            own[hit.turns[0]] = hit.signals["dense"] + hit.signals["lexical"]
        found[name] = lent[[event.turns[0] for event in events]]
    for name in ("centroid", "coverage"):
        found[name] = found[name] - found["turns"]
    return own, found


def _standardised(scores: FloatArray) -> FloatArray:
    spread = scores.std()
    return (scores - scores.mean()) / spread if spread > 0 else np.zeros_like(scores)


if __name__ == "__main__":
    main()
