"""Effects: what an algorithm asks of the world, as values.

An algorithm that needs a model is a *program*: a generator that yields effects and is sent their
replies. It performs no I/O itself, so that the same code runs blocking, asynchronously, in offline
batches, or in a test that answers by hand. Programs compose with ``yield from``::

    def embed_query(query: str) -> Program[FloatArray]:
        vectors = yield Embed((query,))
        return vectors[0]

    vector = drive(embed_query("where do they live?"), encoder.answer)

and side by side with `gather`, which yields what all of them wait for at once::

    verdicts = yield from gather(judge(turn, segment) for segment in candidates)
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, overload

import msgspec
import numpy as np
import numpy.typing as npt

__all__ = [
    "Ask",
    "Effect",
    "Embed",
    "Embedded",
    "Message",
    "Priority",
    "Program",
    "Rank",
    "Run",
    "Single",
    "States",
    "Together",
    "drive",
    "gather",
    "together",
]

T = TypeVar("T")


class Message(msgspec.Struct, frozen=True):
    """One message of a prompt."""

    role: str
    content: str


class Embed(msgspec.Struct, frozen=True):
    """Turn `texts` into vectors. Reply: float32 array of shape (len(texts), dimension), unit rows; or, if
    `states`, an `Embedded`."""

    texts: tuple[str, ...]
    states: bool = False
    """Whether the states of the texts' tokens are wanted too."""


class States(NamedTuple):
    """What a model made of the tokens of one text."""

    vectors: npt.NDArray[np.float32]
    """Shape (tokens, width), rows of length 1."""
    tokens: tuple[str, ...]
    """The text of each token."""


class Embedded(NamedTuple):
    """The vectors of texts, and the states of their tokens from the same run of the model."""

    vectors: npt.NDArray[np.float32]
    """Shape (texts, dimension), unit rows."""
    states: tuple[States, ...] | None
    """One a text; None if the encoder has no states."""


class Ask(msgspec.Struct, frozen=True):
    """Put `messages` to a language model. Reply: a `schema`, validated."""

    purpose: str
    """What the ledger counts it under."""
    messages: tuple[Message, ...]
    schema: type[Any]
    max_tokens: int = 1024
    """Length of the reply at most."""


class Rank(msgspec.Struct, frozen=True):
    """Let a reranker read `query` beside each of `texts`. Reply: float32 array of shape (len(texts),), the
    greater the better; only differences mean something."""

    query: str
    texts: tuple[str, ...]


Single: TypeAlias = Embed | Ask | Rank
"""An effect that has one reply."""


class Together(msgspec.Struct, frozen=True):
    """Several effects that do not depend on one another.

    Reply: a list in their order. Where one failed, its exception stands in the list, so that one failure
    does not lose the replies that were paid for.
    """

    effects: tuple[Single, ...]


Effect: TypeAlias = Single | Together
"""Every kind of effect a driver must be able to answer."""

Program = Generator[Effect, Any, T]
"""A generator that yields effects, is sent their replies, and returns a `T`."""


class Priority(enum.IntEnum):
    """How urgent a program is; the lower the sooner."""

    SEARCH = 0
    """Somebody waits for the answer."""
    WRITE = 1
    BACKGROUND = 2


class Run(Generic[T]):
    """A program that was begun, for those who drive it: they answer `effects` until it is `done`.

    ::

        run = Run(program)
        while not run.done:
            run.resume([answer(effect) for effect in run.effects])
        return run.result()
    """

    def __init__(self, program: Program[T]) -> None:
        self.effects: tuple[Single, ...] = ()
        """What the program waits for; may be empty."""
        self.done = False
        self._program = program
        self._together = False
        self._error: Exception | None = None
        self._value: T
        self._step(program.send, None)

    def resume(self, replies: Sequence[Any]) -> None:
        """Hand back the replies to `effects`, in order; an exception among them is one that failed."""
        if self._together:
            self._step(self._program.send, list(replies))
        elif isinstance(replies[0], BaseException):
            self.throw(replies[0])
        else:
            self._step(self._program.send, replies[0])

    def throw(self, error: BaseException) -> None:
        """Raise `error` inside the program, where it waits."""
        self._step(self._program.throw, error)

    @property
    def outcome(self) -> T | Exception:
        """What the program returned, or what it raised."""
        return self._value if self._error is None else self._error

    def result(self) -> T:
        """What the program returned.

        Raises:
            Exception: what it raised.
        """
        if self._error is not None:
            raise self._error
        return self._value

    def close(self) -> None:
        """Give the program up where it waits. Does nothing to one that ended."""
        self._program.close()

    def _step(self, step: Callable[[Any], Effect], given: Any) -> None:
        self.effects = ()
        try:
            effect = step(given)
        except StopIteration as end:
            self.done, self._value = True, end.value
        except Exception as error:
            self.done, self._error = True, error
        else:
            self._together = isinstance(effect, Together)
            self.effects = effect.effects if isinstance(effect, Together) else (effect,)


def drive(program: Program[T], answer: Callable[[Single], Any]) -> T:
    """Run `program` to its end, answering each effect in turn with ``answer(effect)``.

    An exception raised by `answer` is thrown into the program at the ``yield`` that asked, so that a
    program can handle it; if it does not, it reaches the caller. For one of several effects yielded
    together it is the reply.
    """
    run = Run(program)
    while not run.done:
        try:
            replies = [_attempt(answer, effect) for effect in run.effects]
        except BaseException as error:  # an interrupt
            run.throw(error)
        else:
            run.resume(replies)
    return run.result()


def _attempt(answer: Callable[[Single], Any], effect: Single) -> Any:
    try:
        return answer(effect)
    except Exception as error:
        return error


@overload
def gather(
    programs: Iterable[Program[T]], *, return_exceptions: Literal[False] = False
) -> Program[list[T]]: ...


@overload
def gather(
    programs: Iterable[Program[T]], *, return_exceptions: Literal[True]
) -> Program[list[T | Exception]]: ...


def gather(programs: Iterable[Program[T]], *, return_exceptions: bool = False) -> Program[list[Any]]:
    """Run independent programs side by side; returns their results, in order.

    What they wait for is yielded as one `Together`, round by round, so that n programs take as many rounds
    as the longest of them. Gathers nest: an inner one's effects join the outer one's.

    Each program runs to its own end whatever becomes of the others. Then, if any failed, the exception of
    the first in order is raised; with `return_exceptions` exceptions stand in the list instead.
    """
    waiting = list(programs)
    runs: list[Run[T]] = []
    try:
        for program in waiting:
            runs.append(Run(program))
        while open_runs := [run for run in runs if not run.done]:
            replies = iter((yield from together(effect for run in open_runs for effect in run.effects)))
            for run in open_runs:
                run.resume([next(replies) for _ in run.effects])
    finally:
        for program in waiting:
            program.close()
    if return_exceptions:
        return [run.outcome for run in runs]
    return [run.result() for run in runs]


def together(effects: Iterable[Single]) -> Program[list[Any]]:
    """The replies to `effects`, in order; a failed one's is its exception."""
    asked = tuple(effects)
    try:
        replies: list[Any] = yield Together(asked)
    except Exception as error:  # the driver failed as a whole
        return [error] * len(asked)
    return replies
