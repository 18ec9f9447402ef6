"""A judge in the place of a language model: it answers every question on events by a rule, from what the
prompt shows, and so does the same each time. Tests, and measurements of what the structure can deliver."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import hmem_core as hmem
from hmem_core.columns.events import EventView
from hmem_core.effects import Ask, Embed, Single, drive
from hmem_core.errors import LLMUnavailable
from hmem_core.llm.prompts.event_affiliation import Affiliated, Affiliations
from hmem_core.llm.prompts.event_description import Description
from hmem_core.llm.prompts.event_timeline import Item, Timeline
from hmem_core.llm.prompts.segment_summary import Summary
from hmem_core.llm.prompts.turn_analysis import Analyses, Analysis
from tests.helpers import hashing_encoder, open_memory

__all__ = [
    "MARK",
    "TURNS",
    "Driver",
    "Judge",
    "by_word",
    "events",
    "records",
    "sections",
    "turns_of",
    "with_judge",
]

MARK = "about "
"""Before the topics in a summary that a judge writes, by which it knows the event again."""

KNOWN = 60
"""Characters by which a turn is known again, as prompts show long ones in part."""

Record = dict[str, Any]
NO_SEGMENTS = hmem.SegmentOptions(summarise=False)


def records(ask: Ask) -> list[Record]:
    """The records that a prompt shows."""
    return [record for _, shown in sections(ask) for record in shown]


def sections(ask: Ask) -> list[tuple[str, list[Record]]]:
    """The records that a prompt shows, under the lines above them."""
    found: list[tuple[str, list[Record]]] = []
    for line in ask.messages[1].content.splitlines():
        if line.startswith("{"):
            found[-1][1].append(json.loads(line))
        elif line:
            found.append((line, []))
    return found


class Judge:
    """Knows the topics of every turn, and decides by them alone.

    Args:
        topics: the topics of a turn, by its record; a turn belongs to the event of each.
    """

    def __init__(self, topics: Callable[[Record], Iterable[str]]) -> None:
        self.topics = topics

    @classmethod
    def by_session(cls, turns: Iterable[Record]) -> Judge:
        """For whom each session of `turns`, as records of a conversation file, is an event."""
        session = {turn["content"][:KNOWN]: turn["session"] for turn in turns}
        return cls(lambda turn: [session[turn["text"][:KNOWN]]])

    def __call__(self, ask: Ask) -> Any:
        """The reply to a question on events or segments."""
        return getattr(self, ask.purpose)(dict(sections(ask)))

    def segment_summary(self, shown: dict[str, list[Record]]) -> Summary:
        return Summary("a segment")

    def turn_analysis(self, shown: dict[str, list[Record]]) -> Analyses:
        return Analyses(
            [
                Analysis(one["id"], f"{one.get('speaker')} speaks", sorted(self.topics(one)), ["tag"])
                for one in shown["The turns to analyse:"]
            ]
        )

    def event_affiliation(self, shown: dict[str, list[Record]]) -> Affiliations:
        known: dict[str, int | str] = {}
        for event in shown.get("The events:", ()):
            told = event.get("summary", "").partition(MARK)[2].strip(".").split(", ")
            for topic in filter(None, told):
                known.setdefault(topic, event["event"])
            if not any(told):  # not described yet: its latest turns tell
                for text in event["latest"]:
                    for topic in self.topics({"text": text.partition(": ")[2]}):
                        known.setdefault(topic, event["event"])
        replies = []
        for turn in shown["The new turns:"]:
            events = []
            for topic in sorted(self.topics(turn)):
                fresh = f"new{1 + sum(isinstance(one, str) for one in known.values())}"
                events.append(known.setdefault(topic, fresh))
            replies.append(Affiliated(turn["id"], list(dict.fromkeys(events))))
        return Affiliations(replies)

    def event_description(self, shown: dict[str, list[Record]]) -> Description:
        known = shown.get("The event so far:", [{}])[0].get("summary", "").partition(MARK)[2].strip(".")
        told = [topic for topic in known.split(", ") if topic]
        counts: dict[str, int] = {}
        for turn in [*shown.get("Turns that were read before:", ()), *shown["The new turns:"]]:
            for topic in self.topics(turn):
                counts[topic] = counts.get(topic, 0) + 1
        most = max(counts.values(), default=0)
        best = told or sorted(topic for topic, count in counts.items() if count == most)
        return Description(
            f"This is {MARK}{', '.join(best)}.", best, ["tag"], [], self._items(shown["The new turns:"])
        )

    def event_timeline(self, shown: dict[str, list[Record]]) -> Timeline:
        return Timeline(self._items(shown["The new turns:"]))

    def _items(self, turns: list[Record]) -> list[Item]:
        return [Item(turn["id"], f"{turn.get('speaker')} said: {turn['text'][:80]}") for turn in turns]


class Driver:
    """Drives programs with a judge for their questions; keeps and counts what was asked."""

    def __init__(self, judge: Callable[[Ask], Any]) -> None:
        self.judge = judge
        self.encoder = hashing_encoder()
        self.asks: Counter[str] = Counter()
        self.asked: list[Ask] = []
        self.down = False
        self.ledger = self

    def snapshot(self) -> None:
        return None

    def forget(self) -> None:
        pass

    def close(self) -> None:
        pass

    def run(self, program: Any, priority: object) -> Any:
        return drive(program, self.answer)

    def answer(self, effect: Single) -> Any:
        if isinstance(effect, Embed):
            return self.encoder.embed(effect.texts)
        if self.down:
            raise LLMUnavailable("the model is down")
        self.asks[effect.purpose] += 1
        self.asked.append(effect)
        return self.judge(effect)

    @property
    def longest(self) -> int:
        """Characters of the longest prompt."""
        return max(sum(len(message.content) for message in ask.messages) for ask in self.asked)


def with_judge(driver: Driver, location: Any = None, **events: Any) -> hmem.Memory:
    """A memory that asks `driver` about events, whatever the cosines are, and nothing about segments."""
    events = {"sure": 2.0, "far": -1.0, **events}
    memory = open_memory(
        location, encoder=driver.encoder, events=hmem.EventOptions(**events), segments=NO_SEGMENTS
    )
    memory._driver = driver  # type: ignore[assignment]
    return memory


def by_word(turn: Record) -> list[str]:
    """A turn's topics: the words that begin with "topic"."""
    return re.findall(r"topic(\w+)", turn["text"])


def events(memory: hmem.Memory) -> EventView:
    return memory._store.view().events


def turns_of(memory: hmem.Memory, event: int) -> list[int]:
    return sorted(events(memory).links.turns_of(event).tolist())


TURNS = [f"topic{name} number {i}" for name in "abcab" for i in range(6)]
