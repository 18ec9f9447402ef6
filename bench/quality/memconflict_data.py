"""MemConflict (arXiv 2605.20926): facts told session by session, and the questions that each session raises.

The data set is not part of this project. Of each persona it has dated sessions, with every change of the
persona's state annotated, statements that contradict earlier ones, preferences under conditions, and facts of
other people. There is no dialogue, so that facts are told as such.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

__all__ = ["Fact", "Persona", "Question", "Session", "leaves", "load"]

Kind = Literal["dynamic", "static", "conditional"]
Change = Literal["changed", "same", "gone", "began"]

_CONTAINER = "Social_Relationships"
"""The state has the social status in it, updates have it by itself."""


@dataclass(frozen=True)
class Fact:
    """One fact of a session."""

    subject: str
    relation: str
    object: str
    category: str
    context: str | None = None
    dated: bool = True
    """Whether it is told as true from the session's day on; if not, no valid time is told."""
    ended: bool = False
    """Whether it is told as true until the session's day."""

    def __str__(self) -> str:
        when = f" when: {self.context}" if self.context else ""
        return f"{self.subject}: {self.relation} {'is no longer' if self.ended else 'is'} {self.object}{when}"


@dataclass(frozen=True)
class Question:
    """What is asked right after a session."""

    kind: Kind
    template: str
    """What is asked, with the names of a relation and of a condition in braces."""
    subject: str
    relation: str
    value: str
    """The value that supports the answer: of a change the new one; of one that ended or stayed the value it
    had; of a contradiction the one that was told first; of a rule its item."""
    session: int
    """The session that told it."""
    change: Change | None = None
    before: str | None = None
    """Dynamic: the value before the session."""
    against: str | None = None
    """Static: the value that contradicts."""
    rules: tuple[tuple[str, str], ...] = ()
    """Conditional: (item, condition) of all rules of the preference so far, the one asked for last."""

    def text(self, *, scrambled: bool = False) -> str:
        """What is asked.

        Args:
            scrambled: with the words of relation and condition in reverse order, so that a name of several
                words does not stand in the question in one piece.
        """
        condition = self.rules[-1][1] if self.rules else ""
        names = {"relation": self.relation, "condition": condition}
        if scrambled:
            names = {slot: " ".join(reversed(name.split())) for slot, name in names.items()}
        return self.template.format(**names)


@dataclass(frozen=True)
class Session:
    """One sitting."""

    number: int
    at: datetime
    """The day, in UTC."""
    facts: tuple[Fact, ...]
    questions: tuple[Question, ...]

    @property
    def text(self) -> str:
        """What the facts are told in."""
        return f"Session {self.number}, {self.at:%Y-%m-%d}: {'; '.join(map(str, self.facts)) or 'small talk'}"


@dataclass(frozen=True)
class Persona:
    """The sessions of one person, in order."""

    name: str
    sessions: tuple[Session, ...]


def load(path: str | Path) -> list[Persona]:
    """All personas of a file with one on each line.

    Raises:
        KeyError, TypeError, ValueError: the file is not in the format of the data set.
    """
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [_persona(json.loads(line)) for line in lines if line.strip()]


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """The values of nested dicts, as text, with the keys that lead to them."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, (*path, str(key)))
    else:
        yield path, str(value)


def _words(*path: str) -> str:
    """A path of keys in words."""
    keys = path[1:] if path[0] == _CONTAINER and len(path) > 1 else path
    return " ".join(key.replace(".", " ").replace("_", " ") for key in keys).lower()


def _category(path: tuple[str, ...]) -> str:
    return _words(path[1] if path[0] == _CONTAINER and len(path) > 1 else path[0])


def _persona(record: Mapping[str, Any]) -> Persona:
    reader = _Reader(record["Fixed_Profile"]["Name"], record["Others_Profile"])
    return Persona(reader.name, tuple(reader.session(one) for one in record["Full_Session_Chain"]))


def _change(before: str, after: str | None) -> Change:
    if not before:
        return "began"
    return "gone" if after is None else "same" if after == before else "changed"


class _Reader:
    """Reads the sessions of one persona in order; what earlier ones said makes gold of later ones."""

    def __init__(self, name: str, others: Mapping[str, Any]) -> None:
        self.name = name
        self._others = others
        self._said: dict[str, tuple[str, int]] = {}  # static statements by their conflict: value, session
        self._rules: dict[str, list[tuple[str, str]]] = {}  # conditional ones: items and conditions

    def session(self, record: Mapping[str, Any]) -> Session:
        number = int(record["Session_ID"])
        parts = [
            self._state(number, record),
            *(self._static(number, one) for one in record["Static_Conflict_Information"]),
            *(self._conditional(number, one) for one in record["Conditional_Conflict_Information"]),
            *((self._of_others(one), []) for one in record["Others_Dynamic_Information"]),
        ]
        return Session(
            number,
            datetime.fromisoformat(record["Date"]).replace(tzinfo=UTC),
            tuple(fact for facts, _ in parts for fact in facts),
            tuple(question for _, questions in parts for question in questions),
        )

    def _fact(self, path: tuple[str, ...], value: str, **more: Any) -> Fact:
        return Fact(self.name, _words(*path), value, _category(path), **more)

    def _state(self, number: int, record: Mapping[str, Any]) -> tuple[list[Fact], list[Question]]:
        """Facts that are revealed, and all of an attribute that is updated; a value that the update no longer
        has, or has as an empty text, is told as ended. Every value before an update is asked for, empty ones
        too."""
        facts = [self._fact(path, value) for path, value in leaves(record.get("Revealed_Attributes") or {})]
        questions = []
        for update in record.get("Updated_Attributes") or ():
            root = (update["Attribute"],)
            before, after = dict(leaves(update["Before"], root)), dict(leaves(update["After"], root))
            facts += [self._fact(path, value) for path, value in after.items() if value]
            facts += [
                self._fact(path, value, dated=False, ended=True)
                for path, value in before.items()
                if value and not after.get(path)
            ]
            for path, value in before.items():
                new = after.get(path) or None
                questions.append(
                    Question(
                        kind="dynamic",
                        template=f"Has {self.name}'s {{relation}} changed, and from what to what?",
                        subject=self.name,
                        relation=_words(*path),
                        value=value if new is None else new,
                        session=number,
                        change=_change(value, new),
                        before=value,
                    )
                )
        return facts, questions

    def _static(self, number: int, record: Mapping[str, Any]) -> tuple[list[Fact], list[Question]]:
        path = tuple(record["Target_Field_Path"].split("."))
        conflict, value = record["Conflict_ID"], str(record["Value"])
        match record["Role"]:
            case "Point_A":
                self._said[conflict] = value, number
                return [self._fact(path, value)], []
            case "Point_B":
                truth, session = self._said[conflict]
                question = Question(
                    kind="static",
                    template=f"What is {self.name}'s {{relation}}?",
                    subject=self.name,
                    relation=_words(*path),
                    value=truth,
                    session=session,
                    against=value,
                )
                return [self._fact(path, value, dated=False)], [question]
            case _:
                return [Fact(self._person(record), _words(*path), value, _category(path))], []

    def _conditional(self, number: int, record: Mapping[str, Any]) -> tuple[list[Fact], list[Question]]:
        if record["Role"] == "Distractor":
            relation = f"{_words(record['Preference_Key'])} preference"
            fact = Fact(self._person(record), relation, record["Preference_Description"], "preferences")
            return [fact], []
        relation, item, condition = _words(record["Preference_Type"]), record["Item"], record["Condition"]
        rules = self._rules.setdefault(record["Conflict_ID"], [])
        rules.append((item, condition))
        fact = Fact(self.name, relation, item, "preferences", context=condition)
        if record["Role"] == "Point_A":
            return [fact], []
        question = Question(
            kind="conditional",
            template=f"What is {self.name}'s {{relation}} in this case: {{condition}}?",
            subject=self.name,
            relation=relation,
            value=item,
            session=number,
            rules=tuple(rules),
        )
        return [fact], [question]

    def _of_others(self, record: Mapping[str, Any]) -> list[Fact]:
        person = self._person(record)
        found = leaves(record["Value"], (record["Attribute"],))
        return [Fact(person, _words(*path), value, _category(path)) for path, value in found]

    def _person(self, record: Mapping[str, Any]) -> str:
        profile = self._others.get(record["Source_Person_ID"]) or {}
        return str(profile.get("Name") or f"{self.name}'s {record['Relationship_To_User']}")
