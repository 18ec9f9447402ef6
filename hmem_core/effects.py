"""Effects: what an algorithm asks of the world, as values.

An algorithm that needs a model is a *program*: a generator that yields effects and is sent their
replies. It performs no I/O itself, so that the same code runs blocking, asynchronously, in offline
batches, or in a test that answers by hand. Programs compose with ``yield from``::

    def embed_query(query: str) -> Program[FloatArray]:
        vectors = yield Embed((query,))
        return vectors[0]

    vector = drive(embed_query("where do they live?"), encoder.answer)
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

import msgspec

__all__ = ["Ask", "Effect", "Embed", "Message", "Program", "drive"]

T = TypeVar("T")


class Embed(msgspec.Struct, frozen=True):
    """Turn `texts` into vectors. Reply: float32 array of shape (len(texts), dimension), unit rows."""

    texts: tuple[str, ...]


class Message(msgspec.Struct, frozen=True):
    """One message of a prompt."""

    role: str
    content: str


class Ask(msgspec.Struct, frozen=True):
    """Ask a language model. Reply: an instance of `schema`."""

    purpose: str
    """What the ledger counts the call under."""
    messages: tuple[Message, ...]
    schema: type[Any]
    max_tokens: int = 1024


Effect = Embed
"""Every kind of effect a driver must be able to answer."""

Program = Generator[Effect, Any, T]
"""A generator that yields effects, is sent their replies, and returns a `T`."""


def drive(program: Program[T], answer: Callable[[Effect], Any]) -> T:
    """Run `program` to its end, answering each effect in turn with ``answer(effect)``.

    An exception raised by `answer` is thrown into the program at the ``yield`` that asked, so that a
    program can handle it; if it does not, it reaches the caller.
    """
    try:
        effect = next(program)
        while True:
            try:
                reply = answer(effect)
            except BaseException as error:
                effect = program.throw(error)
            else:
                effect = program.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result
