"""The options of `bench.quality.locomo` that read with a model, or with a judge in place of one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.quality import answering, guided
from bench.quality.answers import Record, Settings
from bench.quality.guided import READINGS
from bench.quality.judges import Judge
from bench.quality.locomo_data import Conversation
from bench.quality.protocol import SHOWN
from hmem_core.embedding.base import Encoder
from hmem_core.options import LLM, Budget

__all__ = ["add_options", "check", "run"]

WORK = Path(".cache") / "answers"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let a parser know them."""
    group = parser.add_argument_group(
        "guided reading", "instead of views: what a language model, or a judge in its place, makes of them"
    )
    group.add_argument("--llm", action="store_true", help="read and answer with a language model")
    group.add_argument(
        "--judge",
        choices=("oracle", "noisy"),
        help="no model: the evidence decides what a model would be asked, rightly or with errors",
    )
    group.add_argument(
        "--readings",
        type=_readings,
        help=f"some of {'; '.join(READINGS)}, with semicolons between; default: guided with --llm, else all",
    )
    group.add_argument("--miss", type=_rate, default=0.2, help="noisy: share of evidence missed; 0.2")
    group.add_argument("--wrong", type=_rate, default=0.05, help="noisy: share of other turns kept; 0.05")
    group.add_argument("--seed", type=int, default=0, help="noisy: for its errors; 0")
    group.add_argument("--model", help="with --llm: the model's name")
    group.add_argument(
        "--base-url", help="with --llm: its server; default: OpenAI's. The key: OPENAI_API_KEY"
    )
    group.add_argument("--concurrency", type=int, default=8, help="with --llm: requests at once; 8")
    group.add_argument("--timeout", type=float, default=120.0, help="with --llm: seconds for a question; 120")
    group.add_argument("--calls", type=int, help="with --llm: stop after so many calls in a conversation")
    group.add_argument(
        "--events", choices=("cosine", "model"), default="cosine", help="with --llm: who builds the events"
    )
    group.add_argument("--k", type=int, default=SHOWN, help=f"with --llm: turns an answer sees; {SHOWN}")
    group.add_argument("--no-grades", action="store_true", help="with --llm: do not let it grade answers")
    group.add_argument("--questions", type=int, help="with --llm: so many of each conversation; default: all")
    group.add_argument(
        "--work", type=Path, default=WORK, help=f"with --llm: replies and answers of earlier runs; {WORK}"
    )


def _readings(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(";")))
    for name in names:
        if name not in READINGS:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {'; '.join(READINGS)}")
    return names


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 <= rate <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a rate from 0 to 1")
    return rate


def check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    if options.llm and options.judge:
        parser.error("--llm asks a model, --judge asks none; leave out one")
    if options.llm and not options.model:
        parser.error("--llm needs the name of a model: --model")


def run(
    conversations: Sequence[Conversation], encoder: Encoder, options: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """The report and its tables.

    Raises:
        HmemError: the model failed; a later run goes on from there.
    """
    if options.judge:
        errors = {"miss": options.miss, "wrong": options.wrong} if options.judge == "noisy" else {}
        judge = Judge(**errors, seed=options.seed)
        found = guided.measure(
            conversations, encoder, judge, options.readings or tuple(READINGS), options.split
        )
        return found, guided.tables(found)
    options.work.mkdir(parents=True, exist_ok=True)
    budget = None if options.calls is None else Budget(calls=options.calls)
    llm = LLM(
        model=options.model,
        base_url=options.base_url,
        concurrency=options.concurrency,
        timeout=options.timeout,
        budget=budget,
        cache=options.work / "replies.sqlite",
    )
    reports, tables = [], []
    record = Record(options.work / "answers.jsonl")
    try:
        for reading in options.readings or ("guided",):
            print(f"{reading}:", file=sys.stderr)
            settings = Settings(
                llm=llm,
                reading=reading,
                k=options.k,
                events=options.events,
                judge=not options.no_grades,
                questions=options.questions,
            )
            reports.append(answering.measure(conversations, encoder, settings, record, options.split))
            tables += [f"{reading}, {llm.model}", *answering.tables(reports[-1])]
    finally:
        record.close()
    return {"readings": reports}, tables
