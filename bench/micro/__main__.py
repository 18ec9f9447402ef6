"""Run the micro-benchmarks and print their tables: ``python -m bench.micro [--write] [pytest arguments]``.

``--write`` also puts the tables into docs/performance.md. ``HMEM_BENCH_LARGE=1`` adds the largest sizes.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "performance.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


def duration(seconds: float) -> str:
    """`seconds` with three significant digits in a fitting unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.2g} ns"


def tables(report: dict[str, Any]) -> str:
    """The report of pytest-benchmark as Markdown: a table a group, with ratios to its first row."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for benchmark in report["benchmarks"]:
        groups.setdefault(benchmark["group"] or benchmark["name"], []).append(benchmark)
    parts = []
    for group, rows in groups.items():
        first = rows[0]["stats"]["median"]
        lines = [f"### {group}", "", "| | median | fastest | median ÷ first row's |", "|---|--:|--:|--:|"]
        for row in rows:
            stats = row["stats"]
            name = row["name"].removeprefix("test_")
            times = f"{duration(stats['median'])} | {duration(stats['min'])}"
            lines.append(f"| {name} | {times} | {stats['median'] / first:.2f} |")
        for row in rows:
            if row["extra_info"]:
                shown = ", ".join(f"{name}: {value:,}" for name, value in row["extra_info"].items())
                lines += ["", f"{row['name'].removeprefix('test_')}: {shown}"]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def main() -> int:
    arguments = sys.argv[1:]
    write = "--write" in arguments
    arguments = [argument for argument in arguments if argument != "--write"]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "report.json"
        status = pytest.main(
            [
                *(arguments or [str(HERE)]),
                *("-q", "-p", "no:cacheprovider", "-o", "python_files=bench_*.py", "-o", "timeout=3600"),
                *("--benchmark-only", "--benchmark-disable-gc", f"--benchmark-json={path}"),
                *("--benchmark-columns=median,min,rounds", "--benchmark-sort=name"),
            ]
        )
        if status or not path.exists():
            return int(status) or 1
        shown = tables(json.loads(path.read_text()))
    print(shown)
    if write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n\n{shown}\n\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
