"""How well cuts of the segment tree meet the topics of dialogues. No LLM.

    python -m bench.quality.segmentation tiage.json dialseg_711.json [--json OUT]

A tree is grown over the turns of each dialogue, one after the other, and cut where turns were attached above
some height. Beside it: cutting where the cosine between the turns before and after a gap is low (*gap*), and
TextTiling (Hearst 1997) over words. Each method has one threshold, the one of the least Pk on the dialogues
whose set is not *test*. Pk and WindowDiff are errors (the window is half a gold segment); F1 counts gold
boundaries that are met exactly.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
from nltk.metrics.segmentation import pk, windowdiff

from bench.quality.tables import markdown
from bench.quality.vector_cache import CachedEncoder
from hmem_core.columns.terms import Analyzer
from hmem_core.columns.tree import TreeColumns
from hmem_core.embedding.base import Encoder
from hmem_core.embedding.registry import resolve
from hmem_core.errors import HmemError
from hmem_core.options import SegmentOptions
from hmem_core.segments.construction import rule

__all__ = ["METHODS", "Dialogue", "figures_of", "load", "main", "measure"]

FIGURES = ("Pk", "WindowDiff", "F1")
CACHE = Path(".cache") / "quality"
BLOCK = 2
"""Turns on each side of a gap that are compared."""

FloatArray = npt.NDArray[np.float32]
Strengths = npt.NDArray[np.float64]
"""For each gap between two turns, how much speaks for a boundary; shape (turns - 1,)."""


@dataclass(frozen=True)
class Dialogue:
    """One dialogue."""

    turns: tuple[str, ...]
    lengths: tuple[int, ...]
    """Turns of each topic, in order."""
    tuning: bool
    """Thresholds may be chosen on it."""

    @property
    def gold(self) -> npt.NDArray[np.bool_]:
        """For each gap, whether a topic ends there."""
        found = np.zeros(len(self.turns) - 1, np.bool_)
        found[np.cumsum(self.lengths)[:-1] - 1] = True
        return found


def load(path: Path) -> list[Dialogue]:
    """The dialogues of a file."""
    records = json.loads(path.read_text(encoding="utf-8"))
    return [
        Dialogue(tuple(record["utterances"]), tuple(record["segments"]), record["set"] != "test")
        for record in records
        if sum(record["segments"]) == len(record["utterances"]) > 1
    ]


# -- methods -----------------------------------------------------------------------------------------


def tree(dialogue: Dialogue, vectors: FloatArray) -> Strengths:
    """The height at which the turn after each gap was attached."""
    columns = TreeColumns(vectors.shape[1])
    return columns.decide(vectors, rule(SegmentOptions())).heights[1:].astype(np.float64)


def gap(dialogue: Dialogue, vectors: FloatArray) -> Strengths:
    """How far the cosine across each gap lies below the peaks on both sides of it."""
    return _depths(_across(vectors))


def texttiling(dialogue: Dialogue, vectors: FloatArray) -> Strengths:
    """The same, of the cosine of word counts."""
    analyzer = Analyzer("english")
    counted = [analyzer.count(turn)[:2] for turn in dialogue.turns]
    terms = {
        term: place
        for place, term in enumerate(sorted({t for hashes, _ in counted for t in hashes.tolist()}))
    }
    words = np.zeros((len(counted), max(len(terms), 1)), np.float32)
    for row, (hashes, counts) in enumerate(counted):
        words[row, [terms[term] for term in hashes.tolist()]] = counts
    return _depths(_across(words))


METHODS: dict[str, Callable[[Dialogue, FloatArray], Strengths]] = {
    "tree": tree,
    "gap": gap,
    "TextTiling": texttiling,
}


def _across(rows: FloatArray) -> Strengths:
    """The cosine of what stands before and after each gap."""
    found = []
    for place in range(1, len(rows)):
        before, after = rows[max(place - BLOCK, 0) : place].sum(0), rows[place : place + BLOCK].sum(0)
        found.append(before @ after / max(float(np.linalg.norm(before) * np.linalg.norm(after)), 1e-9))
    return np.array(found, np.float64)


def _depths(scores: Strengths) -> Strengths:
    """TextTiling's depth: from each valley up to the nearest peak to the left and to the right."""
    depths = np.zeros(scores.size)
    for place, score in enumerate(scores):
        for side in (scores[place::-1], scores[place:]):
            falls = np.flatnonzero(np.diff(side) < 0)
            depths[place] += side[falls[0] if falls.size else -1] - score
    return depths


# -- measuring ---------------------------------------------------------------------------------------


def figures_of(gold: npt.NDArray[np.bool_], cut: npt.NDArray[np.bool_]) -> dict[str, float]:
    """Pk, WindowDiff and F1 of one dialogue."""
    turns, segments = gold.size + 1, int(gold.sum()) + 1
    window = min(max(round(turns / segments / 2), 1), gold.size)
    texts = ["".join("01"[int(one)] for one in row) for row in (gold, cut)]
    met, wanted, made = int((gold & cut).sum()), int(gold.sum()), int(cut.sum())
    f1 = 2 * met / (wanted + made) if wanted + made else 1.0
    return {"Pk": pk(*texts, k=window), "WindowDiff": windowdiff(*texts, k=window), "F1": f1}


def measure(dialogues: Sequence[Dialogue], encoder: Encoder) -> list[dict[str, Any]]:
    """A row of figures a method, on the dialogues that no threshold was chosen on."""
    vectors = [
        encoder.embed(list(one.turns)).astype(np.float16).astype(np.float32)  # as a memory rounds them
        for one in dialogues
    ]
    rows = []
    for name, method in METHODS.items():
        found = [(one, method(one, matrix)) for one, matrix in zip(dialogues, vectors, strict=True)]
        tuned = [pair for pair in found if pair[0].tuning]
        asked = [pair for pair in found if not pair[0].tuning]
        threshold = min(_candidates(tuned), key=lambda limit: _mean(tuned, limit)["Pk"])
        rows.append(
            {"method": name, "threshold": round(float(threshold), 4), "dialogues": len(asked)}
            | _mean(asked, threshold)
        )
    never = [{**figures_of(one.gold, np.zeros_like(one.gold))} for one in dialogues if not one.tuning]
    means = {figure: round(fmean(of[figure] for of in never), 4) for figure in FIGURES}
    rows.append({"method": "no cut", "threshold": None, "dialogues": len(never)} | means)
    return rows


def _candidates(found: Iterable[tuple[Dialogue, Strengths]]) -> list[float]:
    strengths = np.unique(np.concatenate([strength for _, strength in found]))
    return np.unique(np.quantile(strengths, np.linspace(0, 1, 60))).tolist()


def _mean(found: Sequence[tuple[Dialogue, Strengths]], threshold: float) -> dict[str, float]:
    figures = [figures_of(one.gold, strength >= threshold) for one, strength in found]
    return {name: round(fmean(of[name] for of in figures), 4) for name in FIGURES}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quality.segmentation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", type=Path, nargs="+", help="tiage.json, dialseg_711.json")
    parser.add_argument("--encoder", help="a model directory; default: the model hmem uses")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"earlier embeddings; default: {CACHE}")
    parser.add_argument("--json", type=Path, help="write all figures there")
    options = parser.parse_args(arguments)
    report: dict[str, Any] = {"rows": []}
    try:
        with CachedEncoder(resolve(options.encoder), options.cache) as encoder:
            report["encoder"] = encoder.identity.name
            for path in options.files:
                print(path.name, file=sys.stderr)
                report["rows"] += [{"data": path.stem, **row} for row in measure(load(path), encoder)]
    except (OSError, KeyError, TypeError, ValueError) as error:
        parser.error(f"{path} is not a file of dialogues with segments: {error!r}")
    except HmemError as error:
        parser.exit(1, f"measuring stopped: {error}\n")
    columns = ["data", "method", "threshold", "dialogues", *FIGURES]
    print(markdown(columns, [[row[name] for name in columns] for row in report["rows"]]))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
