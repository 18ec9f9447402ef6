"""The first turns of the demo conversation, their events made by a real model, and a few questions whose
reading it guides: what it was asked, what its replies broke, and what came of it.

    python -m bench.live.events --base-url http://127.0.0.1:8080/v1 [--turns 40] [--questions 5] [--log FILE]

A small model on a CPU takes some minutes for 40 turns. With `--log`, every request and reply is written down.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

import hmem_core as hmem
from hmem_core.embedding.base import states_of
from hmem_core.interfaces import demo
from hmem_core.llm.threads import ThreadDriver
from hmem_core.llm.transport import Completion, OpenAITransport

CONVERSATION = Path(demo.__file__).parent / "conversation.jsonl"
QUESTIONS = CONVERSATION.with_name("questions.json")


class Recorder:
    """Sends requests, counts how their replies ended, and writes both down."""

    def __init__(self, llm: hmem.LLM, log: Path | None) -> None:
        self._inner = OpenAITransport(llm)
        self._log = log
        self.ends: Counter[str] = Counter()

    async def complete(self, body: Mapping[str, Any]) -> Completion:
        started = time.monotonic()
        try:
            completion = await self._inner.complete(body)
        except BaseException as error:  # a deadline cancels
            self._write({"request": body, "error": repr(error), "seconds": time.monotonic() - started})
            self.ends[type(error).__name__] += 1
            raise
        seconds = time.monotonic() - started
        self._write({"request": body, "reply": msgspec.to_builtins(completion), "seconds": seconds})
        self.ends[completion.finish_reason or "unknown"] += 1
        return completion

    async def close(self) -> None:
        await self._inner.close()

    def _write(self, record: dict[str, Any]) -> None:
        if self._log is not None:
            with self._log.open("a") as file:
                file.write(json.dumps(record, default=repr, ensure_ascii=False) + "\n")


class Warnings(logging.Handler):
    """Keeps what the engine says it had to cope with."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", default="any")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--questions", type=int, default=5)
    parser.add_argument("--batch", type=int, default=hmem.EventOptions().batch)
    parser.add_argument("--faithful", action="store_true")
    parser.add_argument("--timeout", type=float, default=1200.0)
    parser.add_argument("--log", type=Path)
    given = parser.parse_args()

    warnings = Warnings()
    logging.getLogger("hmem.llm").addHandler(warnings)
    llm = hmem.LLM(model=given.model, base_url=given.base_url, concurrency=1, timeout=given.timeout)
    recorder = Recorder(llm, given.log)
    turns = [json.loads(line) for line in CONVERSATION.read_text().splitlines()[: given.turns]]
    options = hmem.EventOptions(batch=given.batch, faithful=given.faithful)
    segments = hmem.SegmentOptions(summarise=False)
    with hmem.open(events=options, segments=segments) as memory:
        encoder = memory._encoder
        driver = ThreadDriver(encoder.embed, llm, transport=lambda: recorder, embed_states=states_of(encoder))
        memory._driver = driver
        started = time.monotonic()
        for turn in turns:
            memory.add(turn)
        memory.settle()
        report(memory, len(turns), time.monotonic() - started)
        ask(memory, given.questions)
    print("\nreplies by how they ended:", dict(recorder.ends))
    print("what the engine had to cope with:", *(warnings.said or ["nothing"]), sep="\n  ")


def ask(memory: hmem.Memory, questions: int) -> None:
    """Put questions whose evidence is there, and print what the stages of guided reading did."""
    keys = {turn.key: turn.id for turn in memory.turns()}
    known = [
        one
        for one in json.loads(QUESTIONS.read_text())
        if one["evidence"] and set(one["evidence"]) <= set(keys)
    ]
    for one in known[:questions]:
        started = time.monotonic()
        found = memory.guided(one["question"])
        gold = sorted(keys[key] for key in one["evidence"])
        shown = sorted(turn for piece in found.evidence for turn in piece.turns)
        print(f"\n{one['question']}\n   evidence {gold}, shown {shown}, {time.monotonic() - started:.0f} s")
        for stage in found.stages:
            print(f"   {stage.name}: {stage.asks} asks, {stage.failed} failed, turns {list(stage.turns)}")
    stats = memory.stats()
    assert stats.llm is not None
    for purpose, usage in stats.llm.purposes.items():
        if purpose in ("question_keywords", "turn_prediction", "turn_filter"):
            tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
            print(
                f"{purpose}: {usage.calls} replies, {usage.failures} failed, {tokens}, {usage.seconds:.0f} s"
            )


def report(memory: hmem.Memory, turns: int, seconds: float) -> None:
    """Print what was asked, and the events."""
    stats = memory.stats()
    assert stats.llm is not None
    print(f"{turns} turns in {seconds:.0f} s; {stats.waiting} pieces of work wait\n")
    print(f"{'stage':20}{'replies':>9}{'failed':>9}{'tokens in':>11}{'tokens out':>12}{'seconds':>9}")
    for purpose, usage in {**stats.llm.purposes, "all": stats.llm.total}.items():
        tokens = f"{usage.input_tokens:>11,}{usage.output_tokens:>12,}"
        print(f"{purpose:20}{usage.calls:>9}{usage.failures:>9}{tokens}{usage.seconds:>9.0f}")
    print(f"\n{stats.llm.total.calls / turns:.2f} replies a turn")
    view = memory._store.view().events
    analysed = [view.analysis_of(turn) for turn in range(turns)]
    print(f"{sum(one is not None and bool(one.context) for one in analysed)} turns have a context")
    print(f"{view.links.events} events, {len(view.links.turn)} links")
    for event in range(view.links.events):
        told = view.descriptions_of(event)
        summaries = [entry.summary for entry in told if entry.summary]
        facts = sum(len(entry.timeline) for entry in told)
        print(f"\n{event}: turns {view.links.turns_of(event).tolist()}, {facts} facts")
        print(f"   {summaries[-1] if summaries else '(no summary)'}")


if __name__ == "__main__":
    main()
