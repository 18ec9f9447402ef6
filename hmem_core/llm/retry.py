"""Which failures may pass, and how long to wait before the next attempt."""

from __future__ import annotations

import email.utils
import math
import random
import re
from collections.abc import Mapping

from hmem_core.errors import LLMError, LLMRefused, LLMUnavailable

__all__ = ["Failure", "backoff", "concerns_all", "error_of", "may_pass", "retry_after"]

_FIRST, _LONGEST = 0.5, 30.0
"""Seconds of the first back-off, and of the longest."""


class Failure(Exception):
    """A request got no reply.

    Args:
        message: what the server or the network said.
        status: of HTTP; None where there was no answer, or none that can be read.
        code: the server's name for the error.
        headers: of the answer, with names in lower case.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.headers = headers or {}


def may_pass(failure: Failure) -> bool:
    """Whether the same request may succeed later."""
    wish = failure.headers.get("x-should-retry")
    if wish in ("true", "false"):
        return wish == "true"
    if failure.code in ("insufficient_quota", "billing_hard_limit_reached"):
        return False  # sent with 429, like a limit on the rate
    return failure.status is None or failure.status in (408, 409, 425, 429) or failure.status >= 500


def concerns_all(failure: Failure) -> bool:
    """Whether other requests would fare the same now."""
    return failure.status == 429 or (failure.status == 503 and "retry-after" in failure.headers)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds for which the server asks to be left alone; None if it does not say.

    Args:
        headers: of its answer, with names in lower case.
        now: seconds since 1970, for a server that names a date.
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if re.fullmatch(r"[0-9]+(\.[0-9]*)?", text):
            return float(text) * unit
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, date.timestamp() - now)
    except (TypeError, ValueError, OverflowError):
        return None


def backoff(attempt: int, chance: random.Random) -> float:
    """Seconds to wait after the `attempt`-th failure (from 0), between half and all of a doubling span."""
    span = min(_LONGEST, math.ldexp(_FIRST, min(attempt, 16)))
    return span * chance.uniform(0.5, 1.0)


def error_of(failure: Failure, model: str) -> LLMError:
    """What a failure that stays means to the caller."""
    status = "" if failure.status is None else f" ({failure.status})"
    if may_pass(failure):
        return LLMUnavailable(f"{model} cannot be reached now{status}: {failure.message}")
    return LLMRefused(f"{model} refuses the request{status}: {failure.message}")
