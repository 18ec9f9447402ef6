"""How well cuts of the segment tree meet the topics of dialogues. No LLM.

    python -m bench.quality.segmentation tiage.json dialseg_711.json [--json OUT]

A tree is grown over the turns of each dialogue, one after the other. *Heights* cuts where turns were attached
far up; *segments* where the two segments that meet at a gap are unlike each other (the cosine of their
centroids), below the peaks on both sides. Beside the tree: *gap*, the same depth of the cosine between the
few turns before and after a gap; *TextTiling* (Hearst 1997), the same over counts of stems; and *gap and
heights*, both together.

Each method has a threshold and few variants: how many turns are compared, and whether what speaks for a cut
is standardised within the dialogue. They are chosen on the dialogues whose set is not *test*, for the best
mean of F1, on one side, and of 1 - Pk and 1 - WindowDiff, on the other: the score of SuperDialseg (arXiv
2305.08371). Least Pk alone would choose not to cut at all. Pk and WindowDiff are errors, their window half a
gold segment; F1 counts gold boundaries that are met exactly, over all dialogues in the mean.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bench.quality import arguments
from bench.quality.tables import markdown
from bench.quality.vector_cache import CachedEncoder
from hmem_core.columns.terms import Analyzer
from hmem_core.columns.tree import TreeColumns
from hmem_core.embedding.base import Encoder
from hmem_core.embedding.registry import resolve
from hmem_core.errors import HmemError
from hmem_core.options import SegmentOptions
from hmem_core.segments.construction import rule
from hmem_kernels.frontier import Tree

__all__ = ["METHODS", "Dialogue", "figures_of", "load", "main", "measure"]

FIGURES = ("Pk", "WindowDiff", "F1", "score")
BLOCKS = (1, 2, 3, 4)
"""Turns on each side of a gap that are compared."""

FloatArray = npt.NDArray[np.float32]
Strengths = npt.NDArray[np.float64]
"""For each gap between two turns, how much speaks for a boundary; shape (turns - 1,)."""
Variants = dict[str, Strengths]
"""What each variant of a method says, by the variant's name."""
Cuts = npt.NDArray[np.bool_]
Pair = tuple[Cuts, Strengths]
"""Gold boundaries of a dialogue, and what a method says of its gaps."""


@dataclass(frozen=True)
class Dialogue:
    """One dialogue."""

    turns: tuple[str, ...]
    lengths: tuple[int, ...]
    """Turns of each topic, in order."""
    tuning: bool
    """Thresholds may be chosen on it."""

    @property
    def gold(self) -> Cuts:
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


def heights(dialogue: Dialogue, vectors: FloatArray) -> Variants:
    """The height at which the turn after each gap was attached."""
    return _scaled("", _grown(vectors).heights[1:].astype(np.float64))


def segments(dialogue: Dialogue, vectors: FloatArray) -> Variants:
    """How unlike the segments are that meet at each gap: the children, to both sides of it, of the lowest
    node above both turns."""
    return _scaled("", _depths(_meeting(vectors)))


def gap(dialogue: Dialogue, vectors: FloatArray) -> Variants:
    """How far the cosine across each gap lies below the peaks on both sides of it."""
    return _tiled(vectors)


def texttiling(dialogue: Dialogue, vectors: FloatArray) -> Variants:
    """The same, of the cosine of counts of stems, stop words left out."""
    analyzer = Analyzer("english")
    counted = [analyzer.count(turn)[:2] for turn in dialogue.turns]
    terms = {
        term: place
        for place, term in enumerate(sorted({t for hashes, _ in counted for t in hashes.tolist()}))
    }
    words = np.zeros((len(counted), max(len(terms), 1)), np.float32)
    for row, (hashes, counts) in enumerate(counted):
        words[row, [terms[term] for term in hashes.tolist()]] = counts
    return _tiled(words)


def gap_and_heights(dialogue: Dialogue, vectors: FloatArray) -> Variants:
    """*gap*, and a share of *heights*, both standardised."""
    height = _standardised(_grown(vectors).heights[1:].astype(np.float64))
    depth = _standardised(_depths(_across(vectors, 2)))
    return {f"share {share}": depth + share * height for share in (0.25, 0.5, 1.0)}


METHODS: dict[str, Callable[[Dialogue, FloatArray], Variants]] = {
    "tree, heights": heights,
    "tree, segments": segments,
    "gap": gap,
    "gap and heights": gap_and_heights,
    "TextTiling": texttiling,
}


class _Grown(NamedTuple):
    tree: Tree
    heights: npt.NDArray[np.int32]


def _grown(vectors: FloatArray) -> _Grown:
    columns = TreeColumns(vectors.shape[1])
    decided = columns.decide(vectors, rule(SegmentOptions())).heights
    columns.attach(vectors, decided)
    return _Grown(columns.view(), decided)


def _meeting(vectors: FloatArray) -> Strengths:
    """The cosine of the segments that meet at each gap."""
    tree = _grown(vectors).tree
    sums = np.concatenate([np.zeros((1, vectors.shape[1])), np.cumsum(vectors, axis=0, dtype=np.float64)])
    found = []
    for before, after in pairwise(tree.leaf.tolist()):
        left = _chain(tree.parent, before)
        right = _chain(tree.parent, after)
        while left and right and left[-1] == right[-1]:  # what is above both
            left.pop()
            right.pop()
        sides = [sums[tree.end[one] + 1] - sums[tree.start[one]] for one in (left[-1], right[-1])]
        found.append(_cosine(*sides))
    return np.array(found, np.float64)


def _chain(parent: npt.NDArray[np.int32], node: int) -> list[int]:
    """The node and all above it."""
    found = []
    while node >= 0:
        found.append(node)
        node = int(parent[node])
    return found


def _tiled(rows: FloatArray) -> Variants:
    found: Variants = {}
    for block in BLOCKS:
        found |= _scaled(f"{block} turns", _depths(_across(rows, block)))
    return found


def _scaled(name: str, strengths: Strengths) -> Variants:
    """As they are, and standardised within the dialogue."""
    named = f"{name}, " if name else ""
    return {name or "as it is": strengths, f"{named}standardised": _standardised(strengths)}


def _standardised(strengths: Strengths) -> Strengths:
    standard: Strengths = (strengths - strengths.mean()) / max(float(strengths.std()), 1e-9)
    return standard


def _across(rows: FloatArray, block: int) -> Strengths:
    """The cosine of what stands before and after each gap."""
    places = range(1, len(rows))
    return np.array(
        [
            _cosine(rows[max(place - block, 0) : place].sum(0), rows[place : place + block].sum(0))
            for place in places
        ],
        np.float64,
    )


def _cosine(one: FloatArray, other: FloatArray) -> float:
    return float(one @ other / max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-9))


def _depths(scores: Strengths) -> Strengths:
    """TextTiling's depth: from each valley up to the nearest peak to the left and to the right; 0 on slopes,
    so that one change of topic is one boundary."""
    depths = np.zeros(scores.size)
    for place, score in enumerate(scores):
        if score > scores[max(place - 1, 0) : place + 2].min():
            continue
        for side in (scores[place::-1], scores[place:]):
            falls = np.flatnonzero(np.diff(side) < 0)
            depths[place] += side[falls[0] if falls.size else -1] - score
    return depths


# -- measuring ---------------------------------------------------------------------------------------


def figures_of(gold: Cuts, cut: Cuts) -> dict[str, float]:
    """Pk, WindowDiff and F1 of one dialogue, the first two as `nltk.metrics.segmentation` counts them."""
    turns, segments = gold.size + 1, int(gold.sum()) + 1
    window = min(max(round(turns / segments / 2), 1), gold.size)
    inside = [np.convolve(row, np.ones(window, np.int64), "valid") for row in (gold, cut)]
    wrong = [(inside[0] > 0) != (inside[1] > 0), inside[0] != inside[1]]
    met, wanted, made = int((gold & cut).sum()), int(gold.sum()), int(cut.sum())
    f1 = 2 * met / (wanted + made) if wanted + made else 1.0
    return {"Pk": float(wrong[0].mean()), "WindowDiff": float(wrong[1].mean()), "F1": f1}


def measure(dialogues: Sequence[Dialogue], encoder: Encoder) -> list[dict[str, Any]]:
    """A row of figures a method, on the dialogues that nothing was chosen on."""
    vectors = [
        encoder.embed(list(one.turns)).astype(np.float16).astype(np.float32)  # as a memory rounds them
        for one in dialogues
    ]
    tuned = [place for place, one in enumerate(dialogues) if one.tuning]
    asked = [place for place, one in enumerate(dialogues) if not one.tuning]
    rows = []
    for name, method in METHODS.items():
        found = [method(one, matrix) for one, matrix in zip(dialogues, vectors, strict=True)]
        choices = []
        for variant in found[0]:
            pairs = [(dialogues[place].gold, found[place][variant]) for place in tuned]
            choices += [(_mean(pairs, limit)["score"], variant, limit) for limit in _candidates(pairs)]
        _, variant, threshold = max(choices, key=lambda one: one[0])
        figures = _mean([(dialogues[place].gold, found[place][variant]) for place in asked], threshold)
        rows.append(_row(name, variant, round(threshold, 4), len(asked), figures))
    never = [(dialogues[place].gold, np.zeros(len(dialogues[place].turns) - 1)) for place in asked]
    rows.append(_row("no cut", "", None, len(asked), _mean(never, 1.0)))
    return rows


def _row(
    method: str, variant: str, threshold: float | None, dialogues: int, figures: dict[str, float]
) -> dict[str, Any]:
    return {"method": method, "variant": variant, "threshold": threshold, "dialogues": dialogues} | figures


def _candidates(found: Sequence[Pair]) -> list[float]:
    strengths = np.concatenate([strength for _, strength in found])
    limits: list[float] = np.unique(np.quantile(strengths, np.linspace(0, 1, 60))).tolist()
    return limits


def _mean(found: Sequence[Pair], threshold: float) -> dict[str, float]:
    figures = [figures_of(gold, strength >= threshold) for gold, strength in found]
    means = {name: fmean(of[name] for of in figures) for name in FIGURES[:-1]}
    score = (2 * means["F1"] + (1 - means["Pk"]) + (1 - means["WindowDiff"])) / 4
    return {name: round(value, 4) for name, value in {**means, "score": score}.items()}


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments.parser("segmentation", __doc__)
    parser.add_argument("files", type=Path, nargs="+", help="tiage.json, dialseg_711.json")
    arguments.add_common(parser, baselines=(), split=False)
    options = parser.parse_args(given)
    began = time.perf_counter()
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
    report["seconds"] = round(time.perf_counter() - began, 1)
    columns = ["data", "method", "variant", "threshold", "dialogues", *FIGURES]
    print(markdown(columns, [[row[name] for name in columns] for row in report["rows"]]))
    arguments.write(options.json, report)


if __name__ == "__main__":
    main()
