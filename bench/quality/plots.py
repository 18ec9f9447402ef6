"""Plots of measurements, as SVG: the same figures make the same file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["curves_plot"]

_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "hmem",
    "svg.fonttype": "none",
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "figure.facecolor": "white",
}


def curves_plot(report: Mapping[str, Any], split: str, path: Path) -> None:
    """The curves of `bench.quality.curves`: recall by turns, recall by tokens, and precision by recall."""
    import matplotlib
    from matplotlib.figure import Figure

    rows = [row for row in report["rows"] if row["split"] == split]
    views = list(dict.fromkeys(row["view"] for row in rows))
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(11, 3.6), layout="constrained")
        by_turns, by_tokens, by_recall = figure.subplots(1, 3)
        for number, view in enumerate(views):
            colour = f"C{number}"
            of_view = [row for row in rows if row["view"] == view]
            turns = [row for row in of_view if row["by"] == "k"]
            tokens = [row for row in of_view if row["by"] == "tokens"]
            auto = [row for row in of_view if row["by"] == "auto"]
            recall = [row["recall"] for row in turns]
            by_turns.plot([row["turns"] for row in turns], recall, color=colour, marker=".", label=view)
            by_tokens.plot(
                [row["tokens"] for row in tokens],
                [row["recall"] for row in tokens],
                color=colour,
                marker=".",
            )
            by_recall.plot(recall, [row["precision"] for row in turns], color=colour, marker=".")
            for row in auto:
                by_turns.plot(row["turns"], row["recall"], color=colour, marker="*", markersize=10)
                by_recall.plot(row["recall"], row["precision"], color=colour, marker="*", markersize=10)
        by_turns.set(xlabel="turns shown (★: k = auto)", ylabel="recall of evidence", ylim=(0, 1))
        by_tokens.set(xlabel="tokens of context", ylabel="recall of evidence", ylim=(0, 1))
        by_recall.set(xlabel="recall of evidence", ylabel="precision", xlim=(0, 1))
        by_turns.legend(frameon=False, loc="lower right")
        figure.savefig(path, format="svg", metadata={"Date": None})
