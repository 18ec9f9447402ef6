"""What can go wrong with a request, and the plan that says with which.

A fault answers with an error, changes the answer, or breaks the connection. Those that change or cut an
answer do the work first: a batch whose answer was cut off has been created, a completion has been paid for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from email.utils import formatdate
from hashlib import blake2b
from typing import Any, Literal

from tests.llm.scripted.models import prompt_tokens, spans
from tests.llm.scripted.records import Arrived
from tests.llm.scripted.wire import Response

Test = Callable[[Arrived], bool]


@dataclass(frozen=True)
class Fault:
    """One way to fail. `sent` is how much of the answer goes out, `then` what happens to the connection."""

    name: str
    delay: float = 0.0
    error: Callable[[], Response] | None = None
    edit: Callable[[Any], Any] | None = None
    rewrite: Callable[[Response], Response] | None = None
    sent: Literal["all", "nothing", "headers", "half"] = "all"
    then: Literal["keep", "close", "reset", "hang"] = "keep"
    done: bool = True
    applies: Test | None = None

    @property
    def only_slow(self) -> bool:
        return self == slow(self.delay)

    def changed(self, response: Response) -> Response:
        """The answer that is sent instead of `response`."""
        if self.edit is not None and response.status == 200:
            response = replace(response, body=Response.of(self.edit(response.json)).body)
        return response if self.rewrite is None else self.rewrite(response)


def slow(seconds: float) -> Fault:
    """Later; it adds to whatever else befalls a request."""
    return Fault("slow", delay=seconds)


def failing(name: str, status: int, message: str, applies: Test | None = None, **said: Any) -> Fault:
    return Fault(name, error=lambda: Response.error(status, message, **said), done=False, applies=applies)


def rate_limited(
    after: float | None = 1.0, form: Literal["seconds", "date", "milliseconds"] = "seconds"
) -> Fault:
    """429, with the time to wait in one of its three forms, or unsaid."""

    def error() -> Response:
        headers = {}
        if after is not None and form == "seconds":
            headers["retry-after"] = f"{after:g}"
        elif after is not None and form == "date":
            headers["retry-after"] = formatdate(math.ceil(time.time() + after), usegmt=True)
        elif after is not None:
            headers["retry-after-ms"] = f"{after * 1000:g}"
        return Response.error(
            429, "Rate limit reached", type="requests", code="rate_limit_exceeded", headers=headers
        )

    return Fault("rate_limited", error=error, done=False)


def quota_exceeded() -> Fault:
    """A 429 that no waiting helps."""
    said = "You exceeded your current quota"
    return failing("quota_exceeded", 429, said, type="insufficient_quota", code="insufficient_quota")


def unavailable(status: int = 503) -> Fault:
    return failing("unavailable", status, "The server is overloaded or not ready yet", type="server_error")


def unauthorized() -> Fault:
    return failing("unauthorized", 401, "Incorrect API key provided", code="invalid_api_key")


def unsupported(form: str = "json_schema") -> Fault:
    """400 to whoever asks for this form of reply, as of a server that does not know it."""
    return failing(
        "unsupported",
        400,
        f"Invalid parameter: 'response_format' of type '{form}' is not supported with this model.",
        applies=lambda arrived: arrived.chat.response_format.get("type") == form,
        param="response_format",
    )


def too_long(over: int = 0) -> Fault:
    """400 to every prompt of more tokens than this."""
    return failing(
        "too_long",
        400,
        f"This model's maximum context length is {over} tokens.",
        applies=lambda arrived: prompt_tokens(arrived.chat) > over,
        param="messages",
        code="context_length_exceeded",
    )


def malformed() -> Fault:
    """A whole answer that holds half of its JSON."""
    return Fault(
        "malformed", rewrite=lambda answer: replace(answer, body=answer.body[: len(answer.body) // 2])
    )


def wrong_type() -> Fault:
    """200 with the page of some proxy."""
    page = b"<html><body>Please log in to the network.</body></html>"
    return Fault("wrong_type", rewrite=lambda _: Response(200, page, content_type="text/html"))


def truncated() -> Fault:
    """The connection ends in the middle of the body."""
    return Fault("truncated", sent="half", then="close")


def dropped(*, reset: bool = False, done: bool = False) -> Fault:
    """The connection ends before the answer, by a reset or in order; `done`: after the work."""
    return Fault("dropped", sent="nothing", then="reset" if reset else "close", done=done)


def dropped_after_headers() -> Fault:
    return Fault("dropped_after_headers", sent="headers", then="close")


def hanging(*, after_headers: bool = False) -> Fault:
    """There is no answer, or no end of it, until the client leaves or the server ends."""
    sent: Literal["headers", "nothing"] = "headers" if after_headers else "nothing"
    return Fault("hanging", sent=sent, then="hang", done=after_headers)


def edited(edit: Callable[[Any], Any], name: str = "edited") -> Fault:
    """An answer whose JSON is changed by a function."""
    return Fault(name, edit=edit)


def _choices(
    name: str, finish_reason: str | None, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> Fault:
    def edit(answer: Any) -> Any:
        for choice in answer["choices"]:
            choice["message"].update(change(choice["message"]))
            choice["finish_reason"] = finish_reason or choice["finish_reason"]
        return answer

    return edited(edit, name)


def null_content() -> Fault:
    return _choices("null_content", None, lambda _: {"content": None})


def empty_content() -> Fault:
    return _choices("empty_content", None, lambda _: {"content": ""})


def no_choices() -> Fault:
    return edited(lambda answer: {**answer, "choices": []}, "no_choices")


def no_usage() -> Fault:
    """An answer that does not say what it cost, as of many local servers."""
    return edited(lambda answer: {k: v for k, v in answer.items() if k != "usage"}, "no_usage")


def refused(text: str = "I'm sorry, I can't assist with that request.") -> Fault:
    return _choices("refused", None, lambda _: {"content": None, "refusal": text})


def cut_off() -> Fault:
    """The model ran out of tokens: half of the content, and `finish_reason` says "length"."""

    def half(message: dict[str, Any]) -> dict[str, Any]:
        content = message["content"] or ""
        ends = [end for _, end in spans(content)]
        return {"content": content[: ends[len(ends) // 2 - 1]] if len(ends) > 1 else ""}

    return _choices("cut_off", "length", half)


def filtered() -> Fault:
    """The provider's filter took the content away."""
    return _choices("filtered", "content_filter", lambda _: {"content": None})


@dataclass
class Rule:
    fault: Fault
    on: str | None
    at: Collection[int] | None
    when: Test | None
    chance: float
    seed: int
    left: float  # infinity: no bound

    def matches(self, arrived: Arrived) -> bool:
        return (
            self.left > 0
            and (self.on is None or self.on == arrived.kind)
            and (self.at is None or arrived.number in self.at)
            and (self.when is None or self.when(arrived))
            and (self.fault.applies is None or self.fault.applies(arrived))
            and (self.chance >= 1 or self._drawn(arrived) < self.chance)
        )

    def _drawn(self, arrived: Arrived) -> float:
        said = f"{self.seed} {self.fault.name} {arrived.attempt} {arrived.path} ".encode() + arrived.body
        return int.from_bytes(blake2b(said, digest_size=6).digest()) / (1 << 48)


class FaultPlan:
    """Which request meets which fault: the first rule that matches, and every `slow` one on top of it."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def add(
        self,
        fault: Fault,
        *,
        on: str | None = "chat",
        at: int | Collection[int] | None = None,
        when: Test | None = None,
        chance: float = 1.0,
        seed: int = 0,
        times: int | None = None,
    ) -> None:
        """Add a rule.

        Args:
            on: The kind of request: "chat", "embeddings", "files", "batches", "models"; None is all of them.
            at: The numbers of the requests, counted from 0 within their kind.
            when: A test of the request.
            chance: How probable it is. What is drawn depends on the seed, what the request says and how often
                it was said before; so the same work meets the same faults in whatever order it arrives.
            times: How often at most.
        """
        at = (at,) if isinstance(at, int) else at
        self._rules.append(Rule(fault, on, at, when, chance, seed, math.inf if times is None else times))

    def clear(self) -> None:
        self._rules.clear()

    def pick(self, arrived: Arrived) -> Fault | None:
        """What befalls a request."""
        chosen: Fault | None = None
        delay = 0.0
        for rule in list(self._rules):
            if (chosen is not None and not rule.fault.only_slow) or not rule.matches(arrived):
                continue
            rule.left -= 1
            delay += rule.fault.delay
            if not rule.fault.only_slow:
                chosen = rule.fault
        if chosen is None:
            return slow(delay) if delay else None
        return replace(chosen, delay=delay)
