"""From the text of a reply to a value of the type that was asked for, or to `MalformedReply`.

Reading is tolerant (`loose`), a value is bent to the type where only one meaning is possible
(`fitting`), and what comes out is validated strictly. Of several values in a reply:

- An object with a field of the type, or a list where a list is wanted, is an answer; of several, the last
  decides, valid or not, since models think first and answer last. Only where there is none, a value that
  can be unwrapped is one: the last that validates.
- A list counts only on lines of its own, since prose cites "[12]".
- What was written in thinking tags never counts, and a thought that does not end is no answer, except
  where the server says that the reply is whole and it ends in a value.

A reply that ends inside a structure is refused, even if another value stood before it; so is one that the
server says was cut, unless it begins with its only value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from hmem_core.effects import Message
from hmem_core.errors import MalformedReply
from hmem_core.llm.fitting import as_id, fit, fits_shape, unwrap
from hmem_core.llm.loose import Broken, Found, Reader, Unclosed
from hmem_core.llm.text import shorten, whole_characters

__all__ = ["offered", "parse_reply", "repair_messages"]

T = TypeVar("T")

SHOWN = 2000
"""Characters of a reply that are kept in an error, and shown to the model again."""

_CLOSER = re.compile(
    r"^[ \t]*(?:</(?:think|thinking|thought|reasoning)>|\[/THINK\])", re.IGNORECASE | re.MULTILINE
)
_WRAPPING = re.compile(r"[`~]{3,}[ \t]*\w*|</?\w{1,40}>|\[/?THINK\]|\bjson\b", re.IGNORECASE)
_CONTENT = re.compile(r"[^\W_]|[{}\[\]]")
_WORDS = re.compile(r"[^\W_]")
_CUT = "the reply ends before its JSON does: it was cut off; answer again, shorter, and close every bracket"


class _Unusable(Exception):
    """Why there is no value in the reply, and of which kind of `MalformedReply` that is."""

    def __init__(self, problem: str, kind: str) -> None:
        super().__init__(problem)
        self.kind = kind


def parse_reply(
    text: str | None, schema: type[T], *, finish_reason: str | None = None, refusal: str | None = None
) -> T:
    """The `schema` that a reply of a model states. Raises `MalformedReply`, and nothing else.

    `finish_reason` and `refusal` are what the server said beside the text.
    """
    raw = whole_characters(text or "")
    try:
        if refusal and refusal.strip():
            raise _Unusable(
                f"the model refused: {shorten(whole_characters(refusal.strip()), 200)}", "refused"
            )
        if finish_reason == "content_filter":
            raise _Unusable("the server's content filter withheld the reply", "filtered")
        if not _CONTENT.search(raw):
            raise _Unusable("the reply is empty", "empty")
        wanted = inspect.type_info(schema)
        return _choose(_candidates(raw, wanted, finish_reason), wanted, schema)
    except Unclosed:
        problem, kind = _CUT, "cut"
    except Broken as broken:
        problem, kind = f"the reply is not JSON: {broken}", "broken"
    except _Unusable as unusable:
        problem, kind = str(unusable), unusable.kind
    raise MalformedReply(problem, kind, shorten(raw, SHOWN, SHOWN // 4))


def offered(ids: Iterable[object] | None, allowed: Collection[int]) -> list[int]:
    """Those of `ids` that are in `allowed`, in order, each once. "12", "#12" and "turn 12" count as 12."""
    known = frozenset(allowed)
    numbers = (as_id(one) for one in ids or ())
    return list(dict.fromkeys(number for number in numbers if number in known and number is not None))


def repair_messages(
    messages: tuple[Message, ...], raw: str | None, error: MalformedReply
) -> tuple[Message, ...]:
    """The prompt for one more attempt: `messages`, the reply they got, and what was wrong with it."""
    reply = shorten(whole_characters(raw or ""), SHOWN, SHOWN // 4).strip()
    complaint = (
        f"Your reply cannot be used: {error}\n"
        "Answer the same question again. Reply with the corrected JSON only: no other text, no code fence."
    )
    return (*messages, Message("assistant", reply or "(no reply)"), Message("user", complaint))


def _choose(found: list[Any], wanted: inspect.Type, schema: type[T]) -> T:
    """The value among those `found` that is the answer, as `schema`."""
    direct = [value for value in found if fits_shape(value, wanted)][-1:]
    error: Exception | None = None
    for value in direct or [unwrap(value, wanted, _nested) for value in reversed(found)]:
        try:
            return msgspec.convert(fit(value, wanted, _nested), schema, str_keys=True)
        except (msgspec.ValidationError, OverflowError) as problem:
            error = error or problem
    if error is None:
        raise _Unusable("there is no JSON of the kind asked for in the reply", "broken")
    raise _Unusable(f"the JSON in the reply does not fit: {error}", "invalid")


def _candidates(text: str, wanted: inspect.Type, finish_reason: str | None, depth: int = 0) -> list[Any]:
    """The values in `text` that may be the answer, in order."""
    body = _unfenced(text)
    if body[:1] not in ("{", "["):
        try:
            value = Reader(body).scalar().value
        except (Broken, Unclosed):
            pass
        else:
            if isinstance(value, str) and not fits_shape(value, wanted) and depth == 0:
                return _candidates(value, wanted, finish_reason, depth + 1)
            if finish_reason == "length" and not isinstance(value, str):
                raise Unclosed
            return [value]
    reader = Reader(text)
    try:
        found = reader.structures()
    except (Broken, Unclosed):
        # Servers that open the thought themselves leave us its end alone.
        ends = [match.end() for match in _CLOSER.finditer(text)]
        if not ends:
            raise
        text = text[ends[-1] :]
        reader = Reader(text)
        found = reader.structures()
    if reader.thinking:
        found = Reader(text).structures(thoughts=False)[-1:]
        if finish_reason != "stop" or not found or not _is_wrapping(text[found[0].end :]):
            raise _Unusable("the reply ends before its thinking does, and holds no answer", "cut")
    elif finish_reason == "length" and found:
        if len(found) > 1 or not _is_wrapping(text[reader.resumed : found[0].start]):
            raise Unclosed
    elif finish_reason == "length":
        raise Unclosed
    return [one.value for one in found if not isinstance(one.value, list) or _on_its_own(text, one)]


def _nested(text: str) -> Any:
    """The object or array that `text` is the JSON of; else `text`."""
    body = _unfenced(text)
    if body[:1] in ("{", "["):
        try:
            found = Reader(body).structures(thoughts=False)
        except (Broken, Unclosed):
            return text
        if len(found) == 1 and found[0].start == 0 and found[0].end == len(body):
            return found[0].value
    return text


def _unfenced(text: str) -> str:
    """`text` without blanks and one code fence around it."""
    body = text.strip("\ufeff\u200b\u2060 \t\r\n")
    if body.startswith(("```", "~~~")):
        body = body.partition("\n")[2].rstrip("`~ \t\r\n")
    return body


def _on_its_own(text: str, found: Found) -> bool:
    """Whether nothing but wrapping stands on the lines where `found` begins and ends."""
    before = text[max(found.start - 200, 0) : found.start].rpartition("\n")[2]
    after = text[found.end : found.end + 200].partition("\n")[0]
    return _is_wrapping(before) and _is_wrapping(after)


def _is_wrapping(text: str) -> bool:
    """Whether `text` is only blanks, marks, fences and tags."""
    return not _WORDS.search(_WRAPPING.sub("", text))
