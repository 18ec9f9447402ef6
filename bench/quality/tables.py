"""Reports as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bench.quality.locomo_data import CATEGORIES

__all__ = ["locomo_tables", "markdown"]


def markdown(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table that also reads well as plain text; its first column is aligned left, the others right."""
    cells = [list(head), *([_shown(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [
        " | ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (cells[0], rule, *cells[1:])
    ]
    return "\n".join(f"| {line} |" for line in lines)


def _shown(cell: Any) -> str:
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:.3f}" if abs(cell) <= 1 else f"{cell:.2f}" if abs(cell) < 100 else f"{cell:.0f}"


def locomo_tables(report: dict[str, Any], figures: Sequence[str]) -> list[str]:
    """The report of `bench.quality.locomo`: views by split, recall at 8 by category, and the trees."""
    rows = report["rows"]
    overall = [row for row in rows if row["category"] == "all"]
    tables = [
        markdown(
            ["view", "split", "questions", *figures],
            (
                [row["view"], row["split"], row["questions"], *(row[name] for name in figures)]
                for row in overall
            ),
        )
    ]
    widest = overall[0]["split"] if overall else "all"
    by_category = [row for row in rows if row["split"] == widest and row["category"] != "all"]
    counts = {row["category"]: row["questions"] for row in by_category}
    tables.append(
        markdown(
            ["recall@8", *(f"{CATEGORIES[category]} ({count})" for category, count in counts.items())],
            (
                [view, *(row["recall@8"] for row in by_category if row["view"] == view)]
                for view in dict.fromkeys(row["view"] for row in by_category)
            ),
        )
    )
    if report["tree"]:
        tables.append(markdown(list(report["tree"][0]), (tree.values() for tree in report["tree"])))
    return tables
