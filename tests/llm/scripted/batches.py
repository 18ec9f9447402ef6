"""Files and batches. A batch moves on when somebody looks at it: polls are counted, no clock runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.llm.scripted.models import CREATED
from tests.llm.scripted.wire import Response

ENDED = ("completed", "failed", "expired", "cancelled")
ENDPOINTS = ("/v1/chat/completions", "/v1/embeddings")

# Answers one line; None where it never gets an answer.
Run = Callable[[str, str, dict[str, Any]], Response | None]


@dataclass(frozen=True)
class Progress:
    """What becomes of a batch.

    Attributes:
        states: What it says when it is created, and at each poll after that; the last one stays.
        lines: How many lines are answered at each poll that says "in_progress"; None: all at the first.
            A batch that ends in "completed" has answered all, one that expires leaves the rest unanswered.
        failure: The code and the message of a batch that fails.
        edit: Changes the bytes of the output, to lose or damage a line.
    """

    states: tuple[str, ...] = ("validating", "in_progress", "finalizing", "completed")
    lines: int | None = None
    failure: tuple[str, str] = ("token_limit_exceeded", "Enqueued token limit reached")
    edit: Callable[[bytes], bytes] | None = None


@dataclass
class File:
    id: str
    created: int
    filename: str
    purpose: str
    content: bytes

    def shown(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.content),
            "created_at": self.created,
            "filename": self.filename,
            "purpose": self.purpose,
            "status": "processed",
        }


@dataclass
class Batch:
    id: str
    created: int
    input_file_id: str
    endpoint: str
    window: str
    metadata: dict[str, str] | None
    progress: Progress
    coming: Iterator[str]
    lines: list[dict[str, Any]] = field(default_factory=list)
    status: str = "validating"
    times: dict[str, int] = field(default_factory=dict)
    errors: list[dict[str, Any]] = field(default_factory=list)
    output: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)
    answered: int = 0
    output_file_id: str | None = None
    error_file_id: str | None = None

    def shown(self) -> dict[str, Any]:
        completed = len(self.output)
        failed = len(self.failed)
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": self.endpoint,
            "errors": {"object": "list", "data": self.errors} if self.errors else None,
            "input_file_id": self.input_file_id,
            "completion_window": self.window,
            "status": self.status,
            "output_file_id": self.output_file_id,
            "error_file_id": self.error_file_id,
            "created_at": self.created,
            "expires_at": self.created + 86_400,
            **{f"{state}_at": time for state, time in self.times.items()},
            "request_counts": {"total": len(self.lines), "completed": completed, "failed": failed},
            "metadata": self.metadata,
        }


def checked(content: bytes, endpoint: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The lines of an input, and what is wrong with them."""
    lines: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    names: set[str] = set()

    def wrong(number: int, code: str, message: str, param: str | None = None) -> None:
        errors.append({"code": code, "line": number, "message": message, "param": param})

    for number, text in enumerate(content.split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            name, url, body = line["custom_id"], line["url"], line["body"]
        except (ValueError, KeyError, TypeError):
            wrong(number, "invalid_json_line", "This line is not parseable as valid JSON.")
            continue
        if not isinstance(name, str) or name in names:
            wrong(number, "duplicate_custom_id", f"The custom_id {name!r} is not unique.", "custom_id")
        if url != endpoint or line.get("method") != "POST":
            wrong(number, "mismatched_endpoint", f"The batch is for POST {endpoint}.", "url")
        if not isinstance(body, dict) or (lines and body.get("model") != lines[0]["body"].get("model")):
            wrong(number, "mismatched_model", "All lines must name the same model.", "body.model")
        else:
            names.add(str(name))
            lines.append(line)
    if not lines and not errors:
        errors.append({"code": "empty_file", "line": None, "message": "The input is empty.", "param": None})
    return lines, errors


class Store:
    """All files and batches; the newest is last."""

    def __init__(self, run: Run) -> None:
        self.files: dict[str, File] = {}
        self.batches: dict[str, Batch] = {}
        self._run = run
        self._clock = CREATED
        self._count = 0

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def keep(self, filename: str, purpose: str, content: bytes) -> File:
        self._count += 1
        file = File(f"file-{self._count}", self._tick(), filename, purpose, content)
        self.files[file.id] = file
        return file

    def create(self, body: dict[str, Any], progress: Progress) -> Batch | Response:
        source = self.files.get(str(body.get("input_file_id")))
        endpoint = str(body.get("endpoint"))
        if source is None or source.purpose != "batch":
            return Response.error(400, "no such file with purpose 'batch'", param="input_file_id")
        if endpoint not in ENDPOINTS:
            return Response.error(400, f"Invalid value: {endpoint!r}", param="endpoint")
        lines, errors = checked(source.content, endpoint)
        batch = Batch(
            id=f"batch_{len(self.batches) + 1}",
            created=self._tick(),
            input_file_id=source.id,
            endpoint=endpoint,
            window=str(body.get("completion_window")),
            metadata=body.get("metadata"),
            progress=progress,
            coming=iter(("validating", "failed") if errors else progress.states),
            lines=lines,
            errors=errors,
        )
        self.batches[batch.id] = batch
        self._move(batch)
        return batch

    def poll(self, batch: Batch) -> Batch:
        """Look at a batch, which moves it on by one state."""
        self._move(batch)
        return batch

    def cancel(self, batch: Batch) -> Batch | Response:
        if batch.status in ENDED:
            return Response.error(409, f"Cannot cancel a batch with status '{batch.status}'.")
        batch.coming = iter(("cancelling", "cancelled"))
        self._move(batch)
        return batch

    def _move(self, batch: Batch) -> None:
        state = next(batch.coming, None)
        if state is None:
            return
        batch.status = state
        batch.times[state] = self._tick()
        if state == "in_progress":
            self._answer(batch, batch.progress.lines)
        elif state in ("finalizing", "completed") and "expired" not in batch.progress.states:
            self._answer(batch, None)
        if state == "failed" and not batch.errors:
            code, message = batch.progress.failure
            batch.errors.append({"code": code, "line": None, "message": message, "param": None})
        elif state in ENDED and state != "failed":
            self._finish(batch)

    def _answer(self, batch: Batch, most: int | None) -> None:
        end = len(batch.lines) if most is None else batch.answered + most
        for line in batch.lines[batch.answered : end]:
            batch.answered += 1
            self._note(batch, line, self._run(batch.id, batch.endpoint, line["body"]))

    def _note(self, batch: Batch, line: dict[str, Any], response: Response | None) -> None:
        if response is None:
            self._fail(batch, line, "request_timeout", "The request timed out.")
            return
        number = batch.answered
        noted = {
            "id": f"batch_req_{batch.id}_{number}",
            "custom_id": line["custom_id"],
            "response": {
                "status_code": response.status,
                "request_id": f"req_{batch.id}_{number}",
                "body": response.json,
            },
            "error": None,
        }
        (batch.output if response.status == 200 else batch.failed).append(noted)

    def _fail(self, batch: Batch, line: dict[str, Any], code: str, message: str) -> None:
        batch.failed.append(
            {
                "id": f"batch_req_{batch.id}_{line['custom_id']}",
                "custom_id": line["custom_id"],
                "response": None,
                "error": {"code": code, "message": message},
            }
        )

    def _finish(self, batch: Batch) -> None:
        """Write the files. Lines stand in another order than they were given in: nobody promised that one."""
        for line in batch.lines[batch.answered :]:
            self._fail(batch, line, f"batch_{batch.status}", "This request could not be executed in time.")
        if batch.output:
            content = jsonl(reversed(batch.output))
            edit = batch.progress.edit
            file = self.keep(f"{batch.id}_output.jsonl", "batch_output", edit(content) if edit else content)
            batch.output_file_id = file.id
        if batch.failed:
            file = self.keep(f"{batch.id}_error.jsonl", "batch_output", jsonl(reversed(batch.failed)))
            batch.error_file_id = file.id


def jsonl(values: Iterator[Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)
