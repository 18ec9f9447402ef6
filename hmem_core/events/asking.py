"""One question about several turns, asked in parts where a model does not answer all of it (ours)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from hmem_core.effects import Program
from hmem_core.errors import LLMError, LLMRefused, MalformedReply
from hmem_core.llm.prompts.rendering import ShownTurn

__all__ = ["in_parts"]

T = TypeVar("T")

_log = logging.getLogger("hmem.llm")


def in_parts(
    turns: Sequence[ShownTurn], ask: Callable[[Sequence[ShownTurn]], Program[Mapping[int, T]]]
) -> Program[dict[int, T | None]]:
    """What `ask` finds for each of `turns`, by id; None for a turn about which no reply can be used.

    Turns that a reply lacks are asked about once more. A question whose reply cannot be used at all, or that
    is refused as a whole (it may be too long for the model), is asked in halves. So n turns take 2n - 1
    questions at most, however bad the model is, and one turn that it will not speak of costs no other turn.
    A turn is missing from the result if asking failed for a reason that may pass.

    Args:
        ask: finds something for some of the turns it is given, by id.

    Raises:
        LLMError: asking failed before there was anything to keep.
    """
    found: dict[int, T | None] = {}
    waiting = [list(turns)] if turns else []
    while waiting:
        part = waiting.pop()
        try:
            got = yield from ask(part)
        except MalformedReply as error:
            _log.warning("a question about %d turns got no reply that can be used: %s", len(part), error)
            got = {}
        except LLMError as error:
            if not isinstance(error, LLMRefused) or len(part) == 1:
                if found:
                    _log.warning("%d turns stay undecided for now: %s", len(turns) - len(found), error)
                    return found
                raise
            got = {}
        found.update(got)
        missing = [turn for turn in part if turn.id not in got]
        if got or len(missing) == 1:
            if got and missing:
                waiting.append(missing)
            elif missing:
                found[missing[0].id] = None
        elif missing:
            half = len(missing) // 2
            waiting += [missing[half:], missing[:half]]
    return found
