"""What a server understands: found out from what it refuses, and remembered.

"OpenAI-compatible" covers servers that take a JSON schema, that only know JSON as such, or neither; models
that want ``max_completion_tokens`` instead of ``max_tokens``; and models that take no temperature.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from hmem_core.effects import Message
from hmem_core.llm.retry import Failure
from hmem_core.options import LLM

__all__ = ["Dialect"]

_STRUCTURED = ("response_format", "json_schema", "json_object", "schema", "grammar", "guided", "structured")


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """How to speak to one model."""

    structured: Literal["json_schema", "json_object", "plain"] = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True

    @classmethod
    def first(cls, llm: LLM) -> Dialect:
        """What to try first."""
        return cls(structured="json_schema" if llm.structured == "auto" else llm.structured)

    def after(self, failure: Failure, llm: LLM) -> Dialect | None:
        """What to try after the model refused a request in this dialect; None if that was not the reason."""
        if failure.status not in (400, 422) or failure.code == "context_length_exceeded":
            return None
        said = failure.message.lower()
        if self.limit == "max_tokens" and "max_completion_tokens" in said:
            return msgspec.structs.replace(self, limit="max_completion_tokens")
        if self.temperature and llm.temperature is not None and "temperature" in said:
            return msgspec.structs.replace(self, temperature=False)
        if llm.structured == "auto" and any(word in said for word in _STRUCTURED):
            if self.structured == "json_schema":
                return msgspec.structs.replace(self, structured="json_object")
            if self.structured == "json_object":
                return msgspec.structs.replace(self, structured="plain")
        return None

    def request(
        self, llm: LLM, messages: Sequence[Message], schema: dict[str, Any], max_tokens: int
    ) -> dict[str, Any]:
        """The body of a request for a chat completion.

        Args:
            schema: the reply's, as `json_schema` makes it.
        """
        body: dict[str, Any] = {"model": llm.model, self.limit: max_tokens, **llm.extra}
        if self.temperature and llm.temperature is not None:
            body["temperature"] = llm.temperature
        if self.structured == "json_schema":
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        else:
            messages = _with_schema(messages, schema["schema"])
            if self.structured == "json_object":
                body["response_format"] = {"type": "json_object"}
        body["messages"] = [{"role": message.role, "content": message.content} for message in messages]
        return body


def _with_schema(messages: Sequence[Message], schema: dict[str, Any]) -> list[Message]:
    """The messages with the schema in words, in the first one: there it is a part of the prefix that many
    prompts share, and some models know no system message but the first."""
    written = msgspec.json.encode(schema, order="deterministic").decode()
    words = f"Reply with one JSON value that fits this JSON schema, and with nothing else:\n{written}"
    if messages[0].role == "system":
        return [Message("system", f"{messages[0].content}\n\n{words}"), *messages[1:]]
    return [Message("system", words), *messages]
