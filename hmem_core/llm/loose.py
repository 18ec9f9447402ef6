"""Reading JSON as models write it.

The grammar is JSON, and besides: comments, trailing commas, single and typographic quotes, keys without
quotes, Python's literals, control characters and unknown escapes inside strings, invisible characters
between tokens. NaN and infinities, which are no values, read as null. Values are found anywhere in a
text: fences and prose around them are skipped, and so is what a model wrote while thinking.

Nothing is ever guessed: not where a string ends, not a missing comma, above all not the rest of a
structure that the text ends in. Prose may hold brackets; they are taken for prose only while no quoted
string was read inside them, so that a failed attempt at JSON is an error and never "no JSON here".

The position only moves forward, and nothing recurses: work is linear in the text, whatever it holds.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any

import msgspec

__all__ = ["DEPTH", "Broken", "Found", "Reader", "Unclosed"]

DEPTH = 64
"""Structures within structures, at most."""
KEPT = 64
"""Values of one text that are kept: the last ones."""

PROSE = 256
"""Brackets that are prose, at most: a text with more is noise."""

_BLANK = re.compile("[\\s\u00ad\u200b-\u200f\u2060\ufeff]*")
_WORD = re.compile("[^\\s,:\\[\\]{}()\"'`“”„‟‘’‚‛<>/\\\\\u00ad\u200b-\u200f\u2060\ufeff]+")
_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d{0,299}|(?=\.\d))(\.\d{0,300})?([eE][+-]?\d{1,6})?", re.ASCII)
_KEY = re.compile(r"[\w$#.-]+")
_LITERALS = {"true": True, "false": False, "null": None, "none": None, "undefined": None}
_NO_NUMBERS = {"nan", "inf", "infinity"}
_RUNS = {
    '"': ('"', re.compile(r'[^"\\]*')),
    "'": ("'", re.compile(r"[^'\\]*")),
    **dict.fromkeys("“”„‟", ("“”„‟", re.compile('[^“”„‟"\\\\]*'))),
    **dict.fromkeys("‘’‚‛", ("‘’‚‛", re.compile(r"[^‘’‚‛\\]*"))),
}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_UNICODE = re.compile(r"(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4}))")
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_STOP = re.compile(r"<(/?)(think|thinking|thought|reasoning)>|\[(/?)(THINK)\]|[{\[]", re.IGNORECASE)


class Broken(Exception):
    """What was read is not JSON, even loosely; as a string, it says where and why."""

    def __init__(self, problem: str, text: str, position: int) -> None:
        super().__init__(problem, position)
        self.problem = problem
        self.text = text
        self.position = position

    def __str__(self) -> str:
        line = self.text.count("\n", 0, self.position) + 1
        before = self.text[max(self.position - 24, 0) : self.position]
        after = self.text[self.position : self.position + 24]
        return f"line {line} has {self.problem} at the place marked ⟨here⟩: …{before}⟨here⟩{after}…"


class Unclosed(Exception):
    """The text ends before the value does."""


class Found(msgspec.Struct, frozen=True):
    """A value, and where in the text it stands."""

    value: Any
    start: int
    end: int


class Reader:
    """Reads values from `text`, once, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.steps = 0
        """Tokens looked at so far."""
        self.thinking = False
        """True after `structures` if the text began to think and never stopped: nothing after was read."""
        self.resumed = 0
        """Where the text goes on after its last thought."""
        self._inside = False
        self._quoted = False

    def structures(self, thoughts: bool = True) -> list[Found]:
        """Every object and array that stands in the text itself, in order; at most the last `KEPT`.

        What was found before the end of a thought is dropped, with the thought. With ``thoughts=False``
        thinking tags are plain text. Raises `Broken` or `Unclosed`.
        """
        found: deque[Found] = deque(maxlen=KEPT)
        prose = 0
        while stop := _STOP.search(self.text, self.position):
            self.steps += 1
            name = stop[2] or stop[4]
            if not name:
                start = self.position = stop.start()
                try:
                    found.append(Found(self._structure(), start, self.position))
                except Broken:
                    prose += 1
                    if self._quoted or prose > PROSE:
                        raise
                continue
            self.position = stop.end()
            if not thoughts:
                continue
            if stop[1] or stop[3]:
                found.clear()
                self.resumed = self.position
                continue
            end = re.compile(rf"</{name}>|\[/{name}\]", re.IGNORECASE).search(self.text, self.position)
            if end is None:
                self.thinking = not found
                break
            self.resumed = self.position = end.end()
        return list(found)

    def scalar(self) -> Found:
        """The string, number or literal that is the whole text. Raises `Broken` or `Unclosed`."""
        self._blank()
        start = self.position
        self._here()
        value = self._scalar()
        end = self.position
        self._blank()
        if self.position < len(self.text):
            raise self._broken("more text")
        return Found(value, start, end)

    def _structure(self) -> Any:
        """The object or array that begins here."""
        self._inside = True
        self._quoted = False
        stack: list[tuple[Any, str]] = []
        container, closer = self._open()
        key = ""
        while True:
            self._blank()
            char = self._here()
            if char == closer:
                self.position += 1
                if not stack:
                    return container
                value = container
                container, key = stack.pop()
                closer = "}" if isinstance(container, dict) else "]"
            else:
                if closer == "}":
                    key = self._key()
                if self._here() in "{[":
                    if len(stack) + 1 >= DEPTH:
                        raise self._broken(f"more than {DEPTH} structures within each other")
                    stack.append((container, key))
                    container, closer = self._open()
                    continue
                value = self._scalar()
            if isinstance(container, list):
                container.append(value)
            elif key in container and container[key] != value:
                raise self._broken(f"a second value for {key!r}")
            else:
                container[key] = value
            self._blank()
            char = self._here()
            if char == ",":
                self.position += 1
            elif char != closer:
                hint = ' (inside a string, a quotation mark is written \\")' if self._quoted else ""
                raise self._broken(f"no ',' or '{closer}' after a value{hint}")

    def _open(self) -> tuple[Any, str]:
        char = self.text[self.position]
        self.position += 1
        return ({}, "}") if char == "{" else ([], "]")

    def _here(self) -> str:
        if self.position >= len(self.text):
            raise Unclosed
        return self.text[self.position]

    def _blank(self) -> None:
        """Move past white space, invisible characters and comments."""
        text = self.text
        while True:
            self.steps += 1
            match = _BLANK.match(text, self.position)
            assert match is not None
            self.position = match.end()
            two = text[self.position : self.position + 2]
            if two == "/*":
                end = text.find("*/", self.position + 2)
                self.position = end + 2 if end >= 0 else len(text)
            elif two == "//" or (two[:1] == "#" and not two[1:].isdecimal()):  # #12 is an id
                end = text.find("\n", self.position)
                self.position = end if end >= 0 else len(text)
            else:
                return

    def _key(self) -> str:
        """A key with its colon; the position is then at its value."""
        if self._here() in _RUNS:
            key = self._string()
        else:
            match = _KEY.match(self.text, self.position)
            if match is None:
                raise self._broken("no key")
            key = match[0]
            self.position = match.end()
        self._blank()
        if self._here() != ":":
            raise self._broken("no ':' after a key")
        self.position += 1
        self._blank()
        return key

    def _scalar(self) -> Any:
        self.steps += 1
        if self._here() in _RUNS:
            return self._string()
        match = _WORD.match(self.text, self.position)
        if match is None:
            raise self._broken("no value")
        word = match[0]
        if match.end() == len(self.text) and self._inside:
            raise Unclosed  # it may go on: tru, 12
        if word.casefold() in _LITERALS:
            value: Any = _LITERALS[word.casefold()]
        elif word.lstrip("+-").casefold() in _NO_NUMBERS:
            value = None
        elif number := _NUMBER.fullmatch(word):
            value = float(word) if number[1] or number[2] else int(word)
            value = None if value in (float("inf"), float("-inf")) else value
        elif word[0] == "#" and word[1:].isdecimal():
            value = word
        else:
            raise self._broken("no value")
        self.position = match.end()
        return value

    def _string(self) -> str:
        """The string that begins here. It ends where its quotation mark comes again, and nowhere else."""
        text = self.text
        closers, run = _RUNS[text[self.position]]
        self._quoted = True
        self.position += 1
        parts: list[str] = []
        while True:
            self.steps += 1
            match = run.match(text, self.position)
            assert match is not None
            parts.append(match[0])
            self.position = match.end()
            char = self._here()
            if char in closers:
                self.position += 1
                return "".join(parts)
            if char != "\\":
                raise self._broken("a straight quotation mark between typographic ones")
            parts.append(self._escape())

    def _escape(self) -> str:
        self.position += 1
        char = self._here()
        if match := _UNICODE.match(self.text, self.position):
            self.position = match.end()
            code = int(match[1] or match[2] or match[3], 16)
            if 0xD800 <= code < 0xDC00 and (low := _LOW_SURROGATE.match(self.text, self.position)):
                self.position = low.end()
                code = 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00
            return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
        self.position += 1
        # An unknown escape of a letter is a backslash that was not doubled: C:\Users, \alpha.
        return _ESCAPES.get(char, f"\\{char}" if char.isalnum() else char)

    def _broken(self, problem: str) -> Broken:
        return Broken(problem, self.text, self.position)
