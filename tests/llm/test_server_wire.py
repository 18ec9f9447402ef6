"""The protocol below the client: what a raw connection sends and gets."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.llm.scripted import (
    Fault,
    ScriptedServer,
    dropped,
    dropped_after_headers,
    hanging,
    rate_limited,
    truncated,
)
from tests.llm.scripted.wire import multipart

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
LENGTH = f"content-length: {len(BODY)}\r\n".encode()
CHUNKED = b"transfer-encoding: chunked\r\n"
CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"


class Raw:
    """A connection without a client."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self._got = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self) -> tuple[int, dict[str, str], bytes]:
        """One whole answer: status, headers, body."""
        status = self._got.readline().split()[1]
        headers = {}
        while (line := self._got.readline().decode().strip()) != "":
            name, value = line.split(": ", 1)
            headers[name] = value
        length = int(headers.get("content-length", 0))
        body = self._got.read(length)
        assert len(body) == length
        return int(status), headers, body

    def rest(self) -> bytes:
        """All that comes until the other side ends the connection."""
        return self._got.read()

    def close(self) -> None:
        self._got.close()
        self.socket.close()


@pytest.fixture
def raw(scripted_server: ScriptedServer) -> Iterator[Raw]:
    with closing(Raw(scripted_server.port)) as connection:
        yield connection


def test_keeps_a_connection_alive(scripted_server: ScriptedServer, raw: Raw) -> None:
    raw.send((CHAT + LENGTH + b"\r\n" + BODY) * 2)  # the second before the first is answered
    for _ in range(2):
        status, headers, body = raw.read()
        assert (status, headers["content-type"]) == (200, "application/json")
        assert json.loads(body)["choices"][0]["message"]["content"] == "ok"
        assert "connection" not in headers
    raw.send(CHAT + b"connection: close\r\n" + LENGTH + b"\r\n" + BODY)
    assert raw.read()[1]["connection"] == "close"
    assert raw.rest() == b""
    assert {arrived.connection for arrived in scripted_server.asks} == {0}


def test_reads_a_body_in_chunks(scripted_server: ScriptedServer, raw: Raw) -> None:
    raw.send(CHAT + CHUNKED + b"\r\n5;note=1\r\n" + BODY[:5] + b"\r\n")
    raw.send(f"{len(BODY) - 5:X}\r\n".encode() + BODY[5:] + b"\r\n0\r\ntrailer: 1\r\n\r\n")
    assert raw.read()[0] == 200
    assert scripted_server.asks[0].body == BODY


def test_tells_a_client_to_go_on(raw: Raw) -> None:
    raw.send(CHAT + b"Expect: 100-continue\r\n" + LENGTH + b"\r\n")
    assert raw.read()[0] == 100
    raw.send(BODY)
    assert raw.read()[0] == 200


def test_closes_after_an_answer_to_an_older_protocol(raw: Raw) -> None:
    raw.send(CHAT.replace(b"1.1", b"1.0") + LENGTH + b"\r\n" + BODY)
    assert raw.read()[0] == 200
    assert raw.rest() == b""


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (CHAT + b"no header\r\n\r\n", 400),
        (CHAT + b"content-length: +5\r\n\r\n", 400),
        (CHAT + LENGTH + CHUNKED + b"\r\n", 400),
        (CHAT + b"transfer-encoding: gzip\r\n\r\n", 501),
        (CHAT + CHUNKED + b"\r\n-1\r\n", 400),
        (CHAT + CHUNKED + b"\r\n2\r\nabc\r\n", 400),
        (CHAT + CHUNKED + b"\r\n" + b"1" * 70_000, 400),
        (CHAT + b"long: " + b"x" * 70_000 + b"\r\n\r\n", 431),
    ],
)
def test_ends_what_is_no_request(scripted_server: ScriptedServer, raw: Raw, sent: bytes, status: int) -> None:
    raw.send(sent)
    got, headers, body = raw.read()
    assert (got, headers["connection"]) == (status, "close")
    assert json.loads(body)["error"]["message"]
    assert scripted_server.requests() == []


def test_a_request_that_breaks_off_never_arrived(scripted_server: ScriptedServer) -> None:
    for part in (CHAT, CHAT + LENGTH + b"\r\n" + BODY[:-1], b""):
        with closing(Raw(scripted_server.port)) as connection:
            connection.send(part)
            connection.socket.shutdown(socket.SHUT_WR)
            connection.rest()
    assert scripted_server.requests() == []


def test_answers_in_the_form_of_the_api_to_what_is_wrong(scripted_server: ScriptedServer, raw: Raw) -> None:
    for head, body, status in [
        (b"GET /v1/chat/completions HTTP/1.1\r\n", b"", 405),
        (b"DELETE /v1/files HTTP/1.1\r\n", b"", 405),
        (b"POST /v1/files HTTP/1.1\r\n", b"", 400),
        (b"GET /v2/chat HTTP/1.1\r\n", b"", 404),
        (CHAT, b"[1]", 400),
        (CHAT, b'{"model"', 400),
        (CHAT, b'{"messages": []}', 400),
        (b"POST /v1/embeddings HTTP/1.1\r\n", b'{"model": "m", "input": []}', 400),
        (b"POST /v1/batches HTTP/1.1\r\n", b"", 400),
    ]:
        raw.send(head + f"content-length: {len(body)}\r\n\r\n".encode() + body)
        got, _, answer = raw.read()
        assert got == status, (head, body)
        assert set(json.loads(answer)["error"]) == {"message", "type", "param", "code"}
    assert scripted_server.paid == 0


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (dropped(), rb""),
        (dropped_after_headers(), rb"HTTP/1.1 200 OK\r\n.*content-length: (\d+)\r\n\r\n"),
        (truncated(), rb"HTTP/1.1 200 OK\r\n.*content-length: (\d+)\r\n\r\n(.+)"),
    ],
)
def test_breaks_an_answer_off(
    scripted_server: ScriptedServer, raw: Raw, fault: Fault, expected: bytes
) -> None:
    scripted_server.faults.add(fault)
    raw.send(CHAT + LENGTH + b"\r\n" + BODY)
    match = re.fullmatch(expected, raw.rest(), re.DOTALL)
    assert match is not None
    if match.groups()[1:]:
        assert len(match[2]) == int(match[1]) // 2


def test_resets_a_connection(scripted_server: ScriptedServer, raw: Raw) -> None:
    scripted_server.faults.add(dropped(reset=True))
    raw.send(CHAT + LENGTH + b"\r\n" + BODY)
    with pytest.raises(ConnectionResetError):
        raw.rest()


@pytest.mark.parametrize("after_headers", [False, True])
def test_hangs_until_the_client_leaves(
    scripted_server: ScriptedServer, raw: Raw, after_headers: bool
) -> None:
    scripted_server.faults.add(hanging(after_headers=after_headers))
    raw.send(CHAT + LENGTH + b"\r\n" + BODY)
    if after_headers:
        assert raw.socket.recv(1 << 16).endswith(b"\r\n\r\n")
    raw.socket.settimeout(0.02)
    with pytest.raises(TimeoutError):
        raw.socket.recv(1)
    assert scripted_server.in_flight == 1
    raw.close()
    scripted_server.wait(lambda: scripted_server.asks[0].disconnected)
    assert scripted_server.in_flight == 0


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        (lambda: rate_limited(after=2), {"retry-after": "2"}),
        (lambda: rate_limited(after=0.25), {"retry-after": "0.25"}),
        (lambda: rate_limited(after=0.25, form="milliseconds"), {"retry-after-ms": "250"}),
        (lambda: rate_limited(after=None), {}),
    ],
)
def test_says_how_long_to_wait(
    scripted_server: ScriptedServer, raw: Raw, fault: Callable[[], Fault], shown: dict[str, str]
) -> None:
    scripted_server.faults.add(fault())
    raw.send(CHAT + LENGTH + b"\r\n" + BODY)
    status, headers, _ = raw.read()
    assert status == 429
    assert {name: value for name, value in headers.items() if name.startswith("retry")} == shown


def test_reads_forms() -> None:
    body = (
        b'--b1\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        b'--b1\r\nContent-Disposition: form-data; filename="a.jsonl"; name="file"\r\n'
        b"Content-Type: application/octet-stream\r\n\r\n\r\n{}\r\n\x00\xff\r\n\r\n"
        b"--b1--\r\n"
    )
    parts = multipart('multipart/form-data; boundary="b1"', body)
    assert parts["purpose"].content == b"batch"
    assert parts["purpose"].filename is None
    assert (parts["file"].filename, parts["file"].content) == ("a.jsonl", b"\r\n{}\r\n\x00\xff\r\n")
    for kind, broken in [
        ("application/json", b"{}"),
        ("multipart/form-data; boundary=b", b"--b\r\n\r\nno name\r\n--b--"),
        ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="n"\r\n\r\nno end'),
    ]:
        with pytest.raises(ValueError):
            multipart(kind, broken)
