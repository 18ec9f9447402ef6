"""What became of a question so far, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from hmem_core.effects import Ask, Message
from hmem_core.errors import MalformedReply
from hmem_core.llm.replies import parse_reply, repair_messages
from hmem_core.llm.retry import Failure, error_of, may_pass
from hmem_core.llm.transport import Completion
from hmem_core.reports import Usage

__all__ = ["Line", "Outcome", "follow"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request for a reply, and what came of it: a completion, or a failure."""

    completion: Completion | None = None
    message: str = ""
    status: int | None = None
    code: str | None = None
    usage: Usage = Usage()

    @classmethod
    def of(cls, result: Completion | Failure, usage: Usage) -> Outcome:
        if isinstance(result, Completion):
            return cls(completion=result, usage=usage)
        return cls(message=result.message, status=result.status, code=result.code, usage=usage)

    @property
    def failure(self) -> Failure:
        return Failure(self.message, status=self.status, code=self.code)


class Line(msgspec.Struct, frozen=True):
    """A request that is still to be made for a question."""

    messages: tuple[Message, ...]
    max_tokens: int
    lost: int = 0
    """How many got no completion."""
    last: Failure | None = None
    """Why the last of those did not."""


def follow(ask: Ask, outcomes: Sequence[Outcome], model: str) -> Any:
    """What `outcomes`, in order, mean for a question: its reply, the `LLMError` that stands for it, or the
    `Line` to send next.

    Depends on nothing else: what was recorded means the same whenever it is read. A reply that does not fit
    is asked for once more.
    """
    line = Line(ask.messages, ask.max_tokens)
    mended = False
    for outcome in outcomes:
        if outcome.completion is None:
            failure = outcome.failure
            if not may_pass(failure):
                return error_of(failure, model)
            line = msgspec.structs.replace(line, lost=line.lost + 1, last=failure)
            continue
        try:
            return _parse(outcome.completion, ask.schema)
        except MalformedReply as error:
            if mended or not error.repairable:
                return error
            mended = True
            line = _repaired(line, ask, outcome.completion, error)
    return line


def _repaired(line: Line, ask: Ask, completion: Completion, error: MalformedReply) -> Line:
    if completion.finish_reason == "length":
        return msgspec.structs.replace(line, max_tokens=line.max_tokens * 2)
    messages = repair_messages(ask.messages, completion.text, error)
    return msgspec.structs.replace(line, messages=messages)


def _parse(completion: Completion, schema: type[Any]) -> Any:
    return parse_reply(
        completion.text, schema, finish_reason=completion.finish_reason, refusal=completion.refusal
    )
