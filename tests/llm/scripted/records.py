"""What the server is asked, what it answers, and what it notes down about both."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.llm.scripted.faults import Fault

PURPOSE = "x-hmem-purpose"


@dataclass
class Arrived:
    """One request, and what became of it.

    `number` counts the requests of its kind from 0, `attempt` those that said the very same before it. Lines
    of a batch are noted like requests of their own, with the batch's id and no connection.
    """

    kind: str
    number: int
    method: str
    path: str
    body: bytes = b""
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    attempt: int = 0
    arrived: float = 0.0
    in_flight: int = 0  # of its kind, with itself, when it arrived
    connection: int | None = None
    batch: str | None = None
    finished: float | None = None
    status: int | None = None
    fault: str | None = None
    paid: bool = False  # the script was asked for a reply, whether or not it got through
    answered: bool = False  # a whole answer with status 200 was sent
    disconnected: bool = False  # the client left before there was an answer

    @property
    def purpose(self) -> str | None:
        """What the request is for, where its client says so in a header."""
        return self.headers.get(PURPOSE)

    @cached_property
    def json(self) -> Any:
        """The body read as JSON; None where it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @cached_property
    def chat(self) -> ChatRequest:
        body = self.json if isinstance(self.json, dict) else {}
        return ChatRequest(self.number, self.attempt, body, self.headers, self.batch)


@dataclass(frozen=True)
class ChatRequest:
    """What a script sees of a request for a completion."""

    number: int
    attempt: int
    body: dict[str, Any]
    headers: dict[str, str]
    batch: str | None = None

    @property
    def model(self) -> str:
        return str(self.body.get("model"))

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [message for message in self.body.get("messages") or [] if isinstance(message, dict)]

    @property
    def prompt(self) -> str:
        """The text of all messages."""
        return "\n".join(f"{message.get('role')}: {text_of(message)}" for message in self.messages)

    @property
    def text(self) -> str:
        """The text of the last message."""
        return text_of(self.messages[-1])

    @property
    def response_format(self) -> dict[str, Any]:
        """What `response_format` says; empty where it is left out."""
        return self.body.get("response_format") or {}

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema that the reply is to follow, if there is one."""
        return (self.response_format.get("json_schema") or {}).get("schema")

    @property
    def purpose(self) -> str | None:
        return self.headers.get(PURPOSE)


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


@dataclass(frozen=True)
class Reply:
    """A completion. Content that is no text is sent as JSON; tokens are counted unless they are given."""

    content: Any = ""
    refusal: str | None = None
    finish_reason: str = "stop"
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    delay: float = 0.0
    fault: Fault | None = None
