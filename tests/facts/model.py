"""A model that reads facts by a rule: a turn says `subject | relation | object`, several with `;`, and more
of one after further bars, as in `since=now` or `because=Ann`."""

from __future__ import annotations

from typing import Any

import hmem_core as hmem
from hmem_core.effects import Ask
from hmem_core.llm.prompts.fact_consistency import Verdict, Verdicts
from hmem_core.llm.prompts.fact_extraction import Extracted, Extraction
from hmem_core.llm.prompts.question_facts import Asked, Sought
from tests.events.judge import Driver, Record, sections
from tests.helpers import open_memory

__all__ = ["CONTRADICTING", "TURNS", "Reader", "by_status", "told", "with_reader"]

NO_SEGMENTS = hmem.SegmentOptions(summarise=False)
NO_EVENTS = hmem.EventOptions(affiliation="cosine", describe=False)


class Reader:
    """Says what turns say, and decides what contradicts by `verdict`."""

    def __init__(self, verdict: str = "unclear") -> None:
        self.verdict = verdict

    def __call__(self, ask: Ask) -> Any:
        return getattr(self, ask.purpose)(dict(sections(ask)))

    def fact_extraction(self, shown: dict[str, list[Record]]) -> Extraction:
        found: list[Extracted] = []
        for turn in shown["The turns to read:"]:
            for told in turn["text"].split(";"):
                parts = [part.strip() for part in told.split(" | ")]
                if len(parts) >= 3:
                    found.append(self.fact(turn, parts, f"f{len(found) + 1}", shown, found))
        return Extraction(found)

    def fact(
        self,
        turn: Record,
        parts: list[str],
        name: str,
        shown: dict[str, list[Record]],
        before: list[Extracted],
    ) -> Extracted:
        more: dict[str, Any] = dict(part.split("=") for part in parts[3:])
        if (reason := more.pop("because", None)) is not None:
            known = [one["known"] for one in shown.get("Known facts:", ()) if one["object"] == reason]
            more["because"] = [*known, *(one.id for one in before if one.object == reason)]
        return Extracted(turn["id"], *parts[:3], id=name, **more)

    def fact_consistency(self, shown: dict[str, list[Record]]) -> Verdicts:
        pairs = [record["pair"] for records in shown.values() for record in records if "pair" in record]
        return Verdicts([Verdict(pair, self.verdict) for pair in pairs])

    def question_facts(self, shown: dict[str, list[Record]]) -> Asked:
        words = shown["The question:"][0]["question"].rstrip("?").split()
        return Asked([Sought(subject=words[-2], relation=words[-1], object="?", at="")])


def with_reader(driver: Driver, location: Any = None, **facts: Any) -> hmem.Memory:
    """A memory that asks `driver` for facts alone."""
    options = hmem.FactOptions(**{"extract": True, **facts})
    memory = open_memory(
        location, encoder=driver.encoder, facts=options, segments=NO_SEGMENTS, events=NO_EVENTS
    )
    memory._driver = driver  # type: ignore[assignment]
    return memory


CONTRADICTING = ["Ann | lives in | Porto", "Ann | lives in | Lisbon"]
TURNS = [
    "Ann | lives in | Porto | since=2026-01-01",
    "Bo | knows | Ann",
    "nothing to learn",
    "Ann | takes | the tram | because=Porto",
    "Bo | has | a boat ; Bo | has | a dog",
    "Ann | lives in | Lisbon | since=2026-02-01",
    "Cleo | works at | the mill",
    "Cleo | lives in | Porto",
]


def told(memory: hmem.Memory, include: Any = "active") -> set[str]:
    return {str(unit) for unit in memory.facts.find(include=include)}


def by_status(memory: hmem.Memory) -> dict[str, str]:
    return {str(unit): unit.status for unit in memory.facts.find(include="all")}
