"""Methods that are written as programs, so that their object chooses how they are run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from hmem_core.effects import Priority, Program

__all__ = ["Run", "Written", "program", "written"]

P = ParamSpec("P")
T = TypeVar("T")


class Run(Protocol):
    """Runs a program to its end and returns its result."""

    def __call__(self, program: Program[T], priority: Priority) -> T: ...


class Runner(Protocol):
    """An object with such methods."""

    @property
    def _run(self) -> Run: ...


R = TypeVar("R", bound=Runner)


class Written(NamedTuple):
    """A method as it was written: it returns a program that nobody has begun."""

    method: Callable[..., Program[Any]]
    priority: Priority


def program(
    priority: Priority,
) -> Callable[[Callable[Concatenate[R, P], Program[T]]], Callable[Concatenate[R, P], T]]:
    """Make of a method that is a program one that runs it to its end and returns its result."""

    def decorate(method: Callable[Concatenate[R, P], Program[T]]) -> Callable[Concatenate[R, P], T]:
        @functools.wraps(method)
        def call(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return self._run(method(self, *args, **kwargs), priority)

        # For the reader of `help`, it is the result that is returned.
        call.__annotations__["return"] = call.__annotations__["return"].removeprefix("Program[")[:-1]
        _written[call] = Written(method, priority)
        return call

    return decorate


def written(method: Callable[..., Any]) -> Written:
    """What `program` made `method` of."""
    return _written[method]


_written: dict[Callable[..., Any], Written] = {}
