"""HTTP/1.1 over asyncio streams: requests in, answers out, and the ways in which an answer can break off."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

LINE = re.compile(r"([A-Z]+) (\S+) HTTP/1\.([01])")
HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
HEAD_LIMIT = 1 << 16


class Malformed(Exception):
    """A request that is no HTTP; the connection is closed after the answer."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Reader(asyncio.StreamReader):
    """A stream that also says, without being read, that the other side has gone."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=HEAD_LIMIT, loop=loop)
        self.gone = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.gone.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.gone.set()


@dataclass(frozen=True)
class Received:
    """A request as it was sent; names of headers are in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    keep_alive: bool


@dataclass(frozen=True)
class Response:
    """An answer before it is on the wire."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"

    @classmethod
    def of(cls, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
        return cls(status, json.dumps(value).encode(), headers or {})

    @classmethod
    def error(
        cls,
        status: int,
        message: str,
        *,
        type: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Response:
        """An error in the form of the API."""
        error = {"message": message, "type": type, "param": param, "code": code}
        return cls.of({"error": error}, status, headers)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def head(self, *, close: bool) -> bytes:
        """The status line and the headers; the length is that of the whole body, whatever is sent of it."""
        try:
            phrase = HTTPStatus(self.status).phrase
        except ValueError:
            phrase = "Unknown"
        headers = {"content-type": self.content_type, "content-length": str(len(self.body)), **self.headers}
        if close:
            headers["connection"] = "close"
        lines = [f"HTTP/1.1 {self.status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def receive(reader: Reader, writer: asyncio.StreamWriter) -> Received | None:
    """The next request of a connection, or None where there is no other.

    Raises:
        Malformed: What came is no request.
        asyncio.IncompleteReadError: The connection ended within a body.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise Malformed("the request ends within its head") from None
        return None
    except asyncio.LimitOverrunError:
        raise Malformed("the head of the request is too long", 431) from None
    first, *rest = head.decode("latin-1").strip("\r\n").split("\r\n")
    line = LINE.fullmatch(first)
    if line is None:
        raise Malformed(f"no request line: {first[:80]!r}")
    headers: dict[str, str] = {}
    for entry in rest:
        match = HEADER.fullmatch(entry)
        if match is None:
            raise Malformed(f"no header: {entry[:80]!r}")
        name = match[1].lower()
        headers[name] = f"{headers[name]}, {match[2]}" if name in headers else match[2]
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    method, target, minor = line.groups()
    url = urlsplit(target)
    wish = headers.get("connection", "").lower()
    return Received(
        method=method,
        path=unquote(url.path),
        query=dict(parse_qsl(url.query)),
        headers=headers,
        body=await read_body(reader, headers),
        keep_alive="close" not in wish and (minor == "1" or "keep-alive" in wish),
    )


async def read_body(reader: Reader, headers: dict[str, str]) -> bytes:
    length, coding = headers.get("content-length"), headers.get("transfer-encoding")
    if coding is not None:
        if length is not None:
            raise Malformed("both Content-Length and Transfer-Encoding")
        if coding.lower() != "chunked":
            raise Malformed(f"unknown Transfer-Encoding {coding!r}", 501)
        return await read_chunks(reader)
    if length is None:
        return b""
    if not re.fullmatch("[0-9]+", length):
        raise Malformed(f"Content-Length is no number: {length!r}")
    return await reader.readexactly(int(length))


async def read_chunks(reader: Reader) -> bytes:
    body = bytearray()
    while True:
        size = (await read_line(reader)).split(b";")[0].strip()
        if not re.fullmatch(b"[0-9a-fA-F]+", size):
            raise Malformed(f"no size of a chunk: {size[:20]!r}")
        if int(size, 16) == 0:
            while await read_line(reader):  # trailers
                pass
            return bytes(body)
        body += await reader.readexactly(int(size, 16))
        if await reader.readexactly(2) != b"\r\n":
            raise Malformed("a chunk is longer than it said")


async def read_line(reader: Reader) -> bytes:
    try:
        return (await reader.readuntil(b"\r\n"))[:-2]
    except asyncio.LimitOverrunError:
        raise Malformed("a line of a chunked body is too long") from None


@dataclass(frozen=True)
class Part:
    """One field of a form; `filename` is None for plain fields."""

    content: bytes
    filename: str | None


def multipart(content_type: str, body: bytes) -> dict[str, Part]:
    """The fields of a multipart form.

    Raises:
        ValueError: It is none.
    """
    boundary = re.search(r'boundary="?([^";]+)"?', content_type)
    if not content_type.lower().startswith("multipart/form-data") or boundary is None:
        raise ValueError(f"no multipart form: {content_type!r}")
    parts: dict[str, Part] = {}
    mark = b"\r\n--" + boundary[1].encode("latin-1")
    _, *pieces, end = (b"\r\n" + body).split(mark)
    if not end.startswith(b"--"):
        raise ValueError("the form has no end")
    for piece in pieces:
        head, separator, content = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        text = head.decode("utf-8", "replace")
        name = re.search(r'(?<![a-z])name="([^"]*)"', text)
        if not separator or name is None:
            raise ValueError("a field of the form has no name")
        filename = re.search(r'filename="([^"]*)"', text)
        parts[name[1]] = Part(content, filename and filename[1])
    return parts
