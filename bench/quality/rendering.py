"""The tables of docs/quality.md, from the figures of the commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from bench.quality import ablation, curves, longmemeval, memconflict, realmem, segmentation, shuffling
from bench.quality.finding import FIGURES
from bench.quality.locomo_data import CATEGORIES
from bench.quality.protocol import SHOWN
from bench.quality.tables import markdown

__all__ = ["BLOCKS", "Block"]

Report = Mapping[str, Any]


class Block(NamedTuple):
    """One table."""

    command: str
    """Whose figures it shows."""
    render: Callable[[Report], str]


def _views(report: Report, split: str) -> str:
    rows = [row for row in report["rows"] if (row["split"], row["category"]) == (split, "all")]
    return markdown(["view", *FIGURES], [[row["view"], *(row[name] for name in FIGURES)] for row in rows])


def _categories(report: Report, view: str) -> str:
    """A view by category: all, and recall in the halves."""
    found = {
        (row["category"], row["split"]): row
        for row in report["rows"]
        if row["view"] == view and row["category"] != "all"
    }
    recall = f"recall@{SHOWN}"
    columns = (recall, "recall@20", f"precision@{SHOWN}", "tokens")
    head = ["category", "questions", recall, "dev half", "test half", *columns[1:]]
    rows = []
    for category, name in CATEGORIES.items():
        if row := found.get((category, "all")):
            halves = [found.get((category, half), {}).get(recall, "–") for half in ("dev", "test")]
            rest = (row[of] for of in columns[1:])
            rows.append([name, row["questions"], row[recall], *halves, *rest])
    return markdown(head, rows)


def _recalls(report: Report, split: str) -> str:
    """Recall at the cut of all views and baselines by category."""
    rows = [row for row in report["rows"] if row["split"] == split and row["category"] != "all"]
    counts = {row["category"]: row["questions"] for row in rows}
    return markdown(
        [f"recall@{SHOWN}", *(f"{CATEGORIES[category]} ({count})" for category, count in counts.items())],
        [
            [view, *(row[f"recall@{SHOWN}"] for row in rows if row["view"] == view)]
            for view in dict.fromkeys(row["view"] for row in rows)
        ],
    )


def _trees(report: Report) -> str:
    return markdown(list(report["tree"][0]), (tree.values() for tree in report["tree"]))


def _sessions(report: Report) -> str:
    """RealMem: halves side by side."""
    rows = [row for row in report["rows"] if row["persona"] == "all"]
    splits = [split for split in ("all", "dev", "test") if any(row["split"] == split for row in rows)]
    columns = ["view", "split", "questions", *realmem.FIGURES]
    ordered = sorted(rows, key=lambda row: splits.index(row["split"]))
    return markdown(columns, [[row[name] for name in columns] for row in ordered])


def _people(report: Report) -> str:
    """RealMem: recall of sessions by person."""
    rows = [row for row in report["rows"] if row["persona"] != "all"]
    people = list(dict.fromkeys(row["persona"] for row in rows))
    figure = realmem.FIGURES[1]
    return markdown(
        [figure, *people],
        [
            [view, *(row[figure] for row in rows if row["view"] == view)]
            for view in dict.fromkeys(row["view"] for row in rows)
        ],
    )


def _curve(report: Report, place: int) -> str:
    splits = list(dict.fromkeys(row["split"] for row in report["rows"]))
    return curves.tables(report, splits[-1])[place]


def _long(report: Report) -> str:
    columns = ("view", "category", "questions", *longmemeval.FIGURES)
    return markdown(columns, [[row.get(name, "–") for name in columns] for row in report["rows"]])


def _segments(report: Report) -> str:
    columns = ("data", "method", "variant", "threshold", "dialogues", *segmentation.FIGURES)
    return markdown(
        columns, [["–" if row[name] is None else row[name] for name in columns] for row in report["rows"]]
    )


BLOCKS = {
    **{f"locomo-{split}": Block("locomo", partial(_views, split=split)) for split in ("all", "dev", "test")},
    "locomo-categories": Block("locomo", partial(_recalls, split="all")),
    "locomo-fused": Block("locomo", partial(_categories, view="fused")),
    "locomo-tree": Block("locomo", _trees),
    "ablation": Block("ablation", ablation.table),
    "curve-turns": Block("curves", partial(_curve, place=0)),
    "curve-tokens": Block("curves", partial(_curve, place=1)),
    "context": Block("curves", partial(_curve, place=2)),
    "auto": Block("curves", partial(_curve, place=3)),
    "shuffling": Block("shuffling", shuffling.table),
    "realmem": Block("realmem", _sessions),
    "realmem-people": Block("realmem", _people),
    "segmentation": Block("segmentation", _segments),
    "longmemeval": Block("longmemeval", _long),
    "memconflict": Block("memconflict", memconflict.table),
}
"""By the name that stands in the document."""
