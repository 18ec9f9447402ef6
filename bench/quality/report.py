"""Run the measurements whose data is there, and fill their tables into docs/quality.md.

    python -m bench.quality.report --data DIRECTORY [--only locomo,curves] [--figures DIRECTORY]
    python -m bench.quality.report                     # fill in what was measured before

DIRECTORY holds ``locomo/locomo10.json``, ``realmem/*_dialogues*.json``, ``segmentation/tiage.json``,
``segmentation/dialseg_711.json``, ``longmemeval/*.json`` and ``memconflict/step4_1.jsonl``, or some of them.
Every command writes its JSON among the figures. In the document a table stands between ``<!-- name -->`` and
``<!-- /name -->``; what stands elsewhere is left alone, and so is a table whose figures are not there.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.quality import (
    ablation,
    arguments,
    curves,
    locomo,
    longmemeval,
    memconflict,
    realmem,
    segmentation,
    shuffling,
)
from bench.quality.rendering import BLOCKS
from bench.quality.tables import markdown

__all__ = ["COMMANDS", "Command", "fill", "main"]

FIGURES = Path(".cache") / "quality" / "figures"
DOCUMENT = Path("docs") / "quality.md"
PLOT = "quality-curves.svg"
"""Beside the document."""
_BLOCK = re.compile(r"<!-- (?P<name>[\w-]+) -->\n.*?<!-- /(?P=name) -->", re.DOTALL)
_OPENED = re.compile(r"<!-- /?([\w-]+) -->")


@dataclass(frozen=True)
class Command:
    """One measurement."""

    main: Callable[[Sequence[str]], None]
    data: tuple[str, ...]
    """Patterns of the files that it is given; one for which there is no file is left out."""
    options: tuple[str, ...] = ()
    plot: bool = False


COMMANDS = {
    "locomo": Command(locomo.main, ("locomo/locomo10.json",), ("--baselines", "all")),
    "ablation": Command(ablation.main, ("locomo/locomo10.json",)),
    "curves": Command(curves.main, ("locomo/locomo10.json",), ("--baselines", "bm25,rrf,raptor"), plot=True),
    "shuffling": Command(shuffling.main, ("locomo/locomo10.json",)),
    "realmem": Command(realmem.main, ("realmem/*_dialogues*.json",), ("--baselines", "all")),
    "segmentation": Command(segmentation.main, ("segmentation/tiage.json", "segmentation/dialseg_711.json")),
    "longmemeval": Command(longmemeval.main, ("longmemeval/*.json",), ("--baselines", "all")),
    "memconflict": Command(memconflict.main, ("memconflict/step4_1.jsonl",)),
}
"""By the names of the files that they write."""


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments.parser("report", __doc__)
    parser.add_argument("--data", type=Path, help="measure what is there; default: measure nothing")
    parser.add_argument(
        "--only",
        type=arguments.names_among(COMMANDS),
        default=tuple(COMMANDS),
        help=f"some of {','.join(COMMANDS)}; default: all",
    )
    parser.add_argument("--figures", type=Path, default=FIGURES, help=f"the JSON of all; {FIGURES}")
    parser.add_argument("--document", type=Path, default=DOCUMENT, help=f"default: {DOCUMENT}")
    parser.add_argument("--encoder", help="a model directory; default: the model hmem uses")
    parser.add_argument("--cache", type=Path, default=arguments.CACHE, help="embeddings of earlier runs")
    options = parser.parse_args(given)
    if options.data is not None and not options.data.is_dir():
        parser.error(f"--data {options.data}: there is no such directory")
    if not options.document.is_file():
        parser.error(f"--document {options.document}: there is no such file")
    options.figures.mkdir(parents=True, exist_ok=True)
    if options.data is not None:
        print(markdown(["measured", "seconds"], _measured(options)))
    reports = {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name in COMMANDS
        if (path := options.figures / f"{name}.json").is_file()
    }
    text = options.document.read_text(encoding="utf-8")
    try:
        filled, left = fill(text, reports)
    except ValueError as error:
        parser.error(f"{options.document}: {error}")
    if filled != text:
        options.document.write_text(filled, encoding="utf-8")
    print(f"{options.document}: written" if filled != text else f"{options.document}: as it was")
    if left:
        print(f"Left as they were, for want of figures: {', '.join(left)}")


def _measured(options: argparse.Namespace) -> list[list[object]]:
    """Run the commands; the name and the seconds of each that had data."""
    rows: list[list[object]] = []
    for name in options.only:
        command = COMMANDS[name]
        files = [str(path) for pattern in command.data for path in sorted(options.data.glob(pattern))]
        if not files:
            print(f"{name}: not measured, {options.data} has no {' or '.join(command.data)}", file=sys.stderr)
            continue
        print(f"{name}:", file=sys.stderr)
        given = [*files, *command.options, "--cache", str(options.cache)]
        given += ["--json", str(options.figures / f"{name}.json")]
        if command.plot:
            given += ["--plot", str(options.document.parent / PLOT)]
        if options.encoder:
            given += ["--encoder", options.encoder]
        began = time.perf_counter()
        command.main(given)
        rows.append([name, round(time.perf_counter() - began)])
    return rows


def fill(text: str, reports: Mapping[str, Mapping[str, Any]]) -> tuple[str, list[str]]:
    """The document with its tables from these figures, and the names of tables that stayed as they were.

    Raises:
        ValueError: a table is not known, or not closed.
    """
    left: list[str] = []
    seen: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        name = match["name"]
        seen.append(name)
        block = BLOCKS.get(name)
        if block is None:
            raise ValueError(f"<!-- {name} --> is not one of {', '.join(BLOCKS)}")
        if block.command not in reports:
            left.append(name)
            return match[0]
        return f"<!-- {name} -->\n{block.render(reports[block.command])}\n<!-- /{name} -->"

    filled = _BLOCK.sub(replaced, text)
    for name in _OPENED.findall(text):
        if name not in seen:
            raise ValueError(f"<!-- {name} --> and <!-- /{name} --> must stand around a table")
    return filled, left


if __name__ == "__main__":
    main()
