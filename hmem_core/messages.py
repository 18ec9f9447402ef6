"""Reading what users hand to `add`: strings, chat messages, turns, and lists of them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from hmem_core.errors import InvalidInput
from hmem_core.records import Skipped, Turn, index_text
from hmem_core.times import TimeLike, micros

__all__ = ["MAX_TEXT_BYTES", "Defaults", "Draft", "Message", "clean", "read_message", "read_messages"]

Message = str | Mapping[str, Any] | Turn
"""One thing to remember."""

MAX_TEXT_BYTES = 16 * 1024 * 1024
"""The longest text of one turn, in bytes of UTF-8."""

NO_TEXT = "no text"

_OWN = {"speaker", "session", "at", "key", "part", "metadata"}
_OPENAI = {"role", "content", "name", "tool_calls", "function_call", "refusal"}
# Fields that servers put beside the text of a message and that say nothing to remember.
_IGNORED = {"id", "type", "status", "annotations", "audio", "tool_call_id", "reasoning_content", "phase"}


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A turn about to be added, checked and cleaned."""

    text: str
    role: str
    speaker: str | None
    session: str | None
    at: int | None
    key: str | None
    part: int
    metadata: dict[str, Any]

    @property
    def index_text(self) -> str:
        """What is embedded: the text, with who said it."""
        return index_text(self.text, self.speaker)


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """Values for what a message does not say itself."""

    role: str = "user"
    speaker: str | None = None
    session: str | None = None
    at: TimeLike | None = None
    key: str | None = None
    metadata: Mapping[str, Any] | None = None
    system: bool = False


def clean(text: str) -> str:
    """`text` as valid Unicode: surrogate pairs are joined, lone surrogates become U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def read_messages(
    given: Message | Iterable[Message], defaults: Defaults, tz: dt.tzinfo
) -> tuple[list[Draft], list[Skipped]]:
    """Drafts of what was given, and what is not worth a turn.

    Raises:
        InvalidInput: something is no message; none of the messages is stored then.
    """
    single = isinstance(given, (str, Mapping, Turn))
    if not single and not isinstance(given, Iterable):
        raise InvalidInput(
            f"cannot remember a {type(given).__name__}; give text, a message, a Turn, or a list of them"
        )
    messages: list[Any] = [given] if single else list(cast("Iterable[Any]", given))
    drafts: list[Draft] = []
    skipped: list[Skipped] = []
    for index, message in enumerate(messages):
        where = "the message" if single else f"message {index}"
        read = read_message(message, index, where, defaults, tz)
        if isinstance(read, Draft):
            drafts.append(read)
        elif single and read.reason == NO_TEXT:
            raise InvalidInput("the message has no text; there is nothing to remember")
        else:
            skipped.append(read)
    return drafts, skipped


def read_message(message: Any, index: int, where: str, defaults: Defaults, tz: dt.tzinfo) -> Draft | Skipped:
    """The draft of one message, or why it is not worth a turn. Errors call the message `where`.

    Raises:
        InvalidInput: it is no message.
    """
    fields = _fields(message, where)
    role = _string(fields.get("role"), f"role of {where}") or defaults.role
    text = clean(_text(fields, where))
    if role in ("system", "developer") and not defaults.system:
        return Skipped(index, f"{role} prompts are not memories; system=True stores them")
    if not text.strip():
        return Skipped(index, NO_TEXT)
    return _draft(fields, text, role, index, where, defaults, tz)


def _draft(
    fields: Mapping[str, Any],
    text: str,
    role: str,
    index: int,
    where: str,
    defaults: Defaults,
    tz: dt.tzinfo,
) -> Draft:
    if (size := len(text.encode())) > MAX_TEXT_BYTES:
        raise InvalidInput(
            f"{where} has {size:,} bytes of text, the limit is {MAX_TEXT_BYTES:,}; split it up"
        )
    own_key = _string(fields.get("key"), f"key of {where}")
    at = fields.get("at")
    if at is None:
        at = defaults.at
    speaker = _string(fields.get("speaker") or fields.get("name"), f"speaker of {where}")
    part = fields.get("part", 0)
    if not isinstance(part, int) or isinstance(part, bool) or not 0 <= part < 2**31:
        raise InvalidInput(f"part of {where} is {part!r}; it counts messages under one key, from 0")
    own_metadata = fields.get("metadata") or {}
    for metadata in (defaults.metadata or {}, own_metadata):
        if not isinstance(metadata, Mapping):
            raise InvalidInput(f"metadata of {where} is {metadata!r}; give a dict")
    metadata = {**(defaults.metadata or {}), **own_metadata}
    return Draft(
        text=text,
        role=role,
        speaker=speaker or _string(defaults.speaker, "speaker"),
        session=_string(fields.get("session"), f"session of {where}") or _string(defaults.session, "session"),
        at=None if at is None else micros(at, tz, f"at of {where}"),
        key=own_key or _string(defaults.key, "key"),
        part=part if own_key else index,
        metadata=_plain(metadata, f"metadata of {where}"),
    )


def _fields(message: Any, where: str) -> Mapping[str, Any]:
    if isinstance(message, str):
        return {"content": message}
    if isinstance(message, Turn):
        fields = {name: getattr(message, name) for name in ("role", *_OWN)}
        return {**fields, "content": message.text}
    if not isinstance(message, Mapping):
        raise InvalidInput(
            f"{where} is a {type(message).__name__}; give text, a message with 'content', or a Turn"
        )
    unknown = set(message) - _OWN - _OPENAI - _IGNORED
    if unknown:
        raise InvalidInput(
            f"{where} has the field {min(map(str, unknown))!r}, which would be lost; the fields are "
            f"{', '.join(sorted(_OWN | _OPENAI))}, and anything else belongs under 'metadata'"
        )
    return message


def _string(value: Any, what: str) -> str | None:
    if value is None or isinstance(value, str):
        return clean(value) if value else None
    raise InvalidInput(f"{what} is {value!r}; it must be text")


def _text(fields: Mapping[str, Any], where: str) -> str:
    parts = [_content(fields.get("content"), where)]
    if refusal := fields.get("refusal"):
        parts.append(str(refusal))
    calls = fields.get("tool_calls") or []
    if not isinstance(calls, (list, tuple)):
        raise InvalidInput(f"tool_calls of {where} is a {type(calls).__name__}; it must be a list")
    calls = list(calls)
    if single := fields.get("function_call"):
        calls.append({"function": single})
    for call in calls:
        function = call.get("function") or {} if isinstance(call, Mapping) else {}
        parts.append(f"{function.get('name', 'tool')}({function.get('arguments', '')})")
    return "\n".join(part for part in parts if part)


def _content(content: Any, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        raise InvalidInput(f"content of {where} is a {type(content).__name__}; give text or a list of parts")
    return "\n".join(filter(None, (_part(part, where) for part in content)))


def _part(part: Any, where: str) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise InvalidInput(
            f"a part of the content of {where} is a {type(part).__name__}; give text or a part object"
        )
    for name in ("text", "refusal"):
        if isinstance(part.get(name), str):
            return str(part[name])
    # An image or a sound has no text, but a reader should know that it was there.
    kind = str(part.get("type", "attachment")).removeprefix("input_").removesuffix("_url")
    return f"[{kind}]"


def _plain(value: Any, what: str) -> Any:
    """`value` checked to be what MessagePack and JSON can both hold."""
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return value
        raise InvalidInput(f"{what} holds the number {value}, beyond 64 bits; store it as text")
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise InvalidInput(f"{what} holds {value}, which no filter can compare; leave it out or use None")
    if isinstance(value, (list, tuple)):
        return [_plain(item, what) for item in value]
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise InvalidInput(f"{what} has the field name {name!r}; field names are text")
        return {clean(name): _plain(item, f"{what} field {name!r}") for name, item in value.items()}
    raise InvalidInput(
        f"{what} holds a {type(value).__name__}; use text, numbers, booleans, None, lists and dicts"
    )
