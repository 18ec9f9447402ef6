"""The first turns of the demo conversation, their facts read by a real model: what it was asked, what its
replies broke, and what came of it.

    python -m bench.live.facts --base-url http://127.0.0.1:8080/v1 [--turns 10] [--batch 3] [--log FILE]

With `--log`, every request and reply is written down.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from pathlib import Path

import hmem_core as hmem
from bench.live.events import CONVERSATION, Recorder, Warnings
from hmem_core.llm.threads import ThreadDriver


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", default="any")
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--batch", type=int, default=hmem.FactOptions().batch)
    parser.add_argument("--timeout", type=float, default=600.0)
    parser.add_argument("--question", default="Where does Maya live?")
    parser.add_argument("--log", type=Path)
    given = parser.parse_args()

    warnings = Warnings()
    logging.getLogger("hmem.llm").addHandler(warnings)
    llm = hmem.LLM(model=given.model, base_url=given.base_url, concurrency=1, timeout=given.timeout)
    recorder = Recorder(llm, given.log)
    turns = [json.loads(line) for line in CONVERSATION.read_text().splitlines()[: given.turns]]
    facts = hmem.FactOptions(extract=True, batch=given.batch)
    events = hmem.EventOptions(affiliation="cosine", describe=False)
    with hmem.open(facts=facts, events=events, segments=hmem.SegmentOptions(summarise=False)) as memory:
        memory._driver = ThreadDriver(memory._encoder.embed, llm, transport=lambda: recorder)
        started = time.monotonic()
        for turn in turns:
            memory.add(turn)
        memory.settle()
        report(memory, len(turns), time.monotonic() - started)
        try:
            print(f"\n{given.question}")
            print(*memory.facts.parse(given.question), sep="\n")
        except hmem.LLMError as error:
            print(error)
    print("\nreplies by how they ended:", dict(recorder.ends))
    print("what the engine had to cope with:", *(warnings.said or ["nothing"]), sep="\n  ")


def report(memory: hmem.Memory, turns: int, seconds: float) -> None:
    """Print what was asked, and the facts."""
    stats = memory.stats()
    assert stats.llm is not None
    print(f"{turns} turns in {seconds:.0f} s; {stats.waiting} pieces of work wait\n")
    for purpose, usage in stats.llm.purposes.items():
        tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
        print(f"{purpose}: {usage.calls} replies, {usage.failures} failed, {tokens}, {usage.seconds:.0f} s")
    for unit in memory.facts.find(include="all"):
        since = "" if unit.valid_from is None else f" since {unit.valid_from:%Y-%m-%d}"
        until = "" if unit.valid_to is None else f" until {unit.valid_to:%Y-%m-%d}"
        rests = f", because of {unit.supports}" if unit.supports else ""
        context = f" ({', '.join(unit.contexts)})" if unit.contexts else ""
        print(f"{unit.id:3} {unit.status:10} {unit.confidence:.2f} {unit}{context}{since}{until}", end="")
        print(f", {unit.category}, turns {unit.sources}{rests}")


if __name__ == "__main__":
    main()
