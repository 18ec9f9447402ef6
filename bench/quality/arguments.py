"""What the commands of this package have in common on the command line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.quality import locomo_data
from bench.quality.baselines import BASELINES
from bench.quality.locomo_data import Conversation
from bench.quality.protocol import SPLITS

__all__ = ["CACHE", "add_common", "conversations", "names_among", "parser", "write"]

CACHE = Path(".cache") / "quality"


def parser(module: str, text: str | None) -> argparse.ArgumentParser:
    """For `python -m bench.quality.<module>`."""
    return argparse.ArgumentParser(
        prog=f"python -m bench.quality.{module}",
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_common(
    of: argparse.ArgumentParser, *, baselines: Iterable[str] = tuple(BASELINES), split: bool = True
) -> None:
    """Encoder, cache, JSON, and where they have a meaning halves and baselines."""
    if split:
        of.add_argument("--split", choices=SPLITS, default="all", help="the half to ask")
    if names := tuple(baselines):
        of.add_argument(
            "--baselines",
            type=names_among(names),
            default=(),
            metavar="NAMES",
            help=f"beside the views: all, or some of {','.join(names)}; default: none",
        )
    of.add_argument("--encoder", help="a model directory; default: the model hmem uses")
    of.add_argument("--cache", type=Path, default=CACHE, help=f"embeddings of earlier runs; default: {CACHE}")
    of.add_argument("--json", type=Path, help="write all figures there")


def names_among(known: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """A type of argument: names with commas between, or ``all``."""
    allowed = tuple(known)

    def read(text: str) -> tuple[str, ...]:
        if text == "all":
            return allowed
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(allowed)}")
        return names

    return read


def conversations(of: argparse.ArgumentParser, path: Path, json_path: Path | None) -> list[Conversation]:
    """LoCoMo's; ends the command where they cannot be read, or where figures could not be written."""
    if json_path and not json_path.parent.is_dir():
        of.error(f"--json {json_path}: there is no directory {json_path.parent}")
    try:
        return locomo_data.load(path)
    except OSError as error:
        of.error(f"{path} cannot be read: {error}")
    except (KeyError, TypeError, ValueError) as error:
        of.error(f"{path} is not in LoCoMo's format: {error!r}")


def write(path: Path | None, report: Mapping[str, Any]) -> None:
    """The figures as JSON, if they are wanted."""
    if path:
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"All figures: {path}")
