"""The API without the network: which request gets which answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.llm.scripted.batches import Batch, Progress, Store
from tests.llm.scripted.faults import Fault, FaultPlan
from tests.llm.scripted.models import (
    CREATED,
    Embedding,
    PrefixCache,
    completion,
    embedding,
    embeddings,
    refusal_to_complete,
)
from tests.llm.scripted.records import Arrived, ChatRequest, Reply
from tests.llm.scripted.wire import Response, multipart

Answer = Callable[[ChatRequest], Any]

ROUTES = {
    "chat": r"/v1/chat/completions",
    "embeddings": r"/v1/embeddings",
    "files": r"/v1/files(?:/(?P<id>[^/]+)(?P<part>/content)?)?",
    "batches": r"/v1/batches(?:/(?P<id>[^/]+)(?P<part>/cancel)?)?",
    "models": r"/v1/models(?:/(?P<id>.+))?",
}


def kind_of(path: str) -> str:
    """The kind of a request: the name of its route, or "other"."""
    return next((kind for kind, route in ROUTES.items() if re.fullmatch(route, path)), "other")


class Note(Protocol):
    """Notes down a line of a batch as a request of its own."""

    def __call__(self, kind: str, path: str, body: bytes, *, batch: str) -> Arrived: ...


@dataclass(frozen=True)
class Outcome:
    """An answer, when it is due, and what happens to it on its way."""

    response: Response
    delay: float = 0.0
    fault: Fault | None = None


class Api:
    """Answers requests by a script and a plan of faults."""

    def __init__(
        self,
        answer: Answer,
        *,
        note: Note,
        embed: Embedding = embedding,
        dimensions: int = 64,
        models: Sequence[str] = ("scripted",),
        api_key: str | None = None,
        cache_block: int = 32,
    ) -> None:
        self.answer = answer
        self.embed = embed
        self.faults = FaultPlan()
        self.progress: Progress | Callable[[int], Progress] = Progress()
        self.store = Store(self._line)
        self.errors: list[Exception] = []
        self._note = note
        self._dimensions = dimensions
        self._models = tuple(models)
        self._api_key = api_key
        self._cache = PrefixCache(cache_block)

    def handle(self, arrived: Arrived) -> Outcome:
        """The outcome of a request; an error in a script is answered with 500 and kept."""
        try:
            return self._handle(arrived)
        except Exception as error:
            self.errors.append(error)
            return Outcome(Response.error(500, f"the script raised {error!r}", type="server_error"))

    def _handle(self, arrived: Arrived) -> Outcome:
        fault = self.faults.pick(arrived)
        delay = 0.0
        if fault is not None:
            arrived.fault, delay = fault.name, fault.delay
            if fault.error is not None:
                return Outcome(fault.error(), delay, fault)
            if not fault.done:
                return Outcome(Response(), delay, fault)
        if not self._admits(arrived):
            return Outcome(Response.error(401, "Incorrect API key provided", code="invalid_api_key"), delay)
        if arrived.kind == "chat":
            response, reply = self._chat(arrived)
            delay += reply.delay
            if fault is None or fault.only_slow:
                fault = reply.fault or fault
            if fault is not None and fault is reply.fault:
                arrived.fault = fault.name
                delay += fault.delay
                response = response if fault.error is None else fault.error()
        else:
            response = self._other(arrived)
        return Outcome(response if fault is None else fault.changed(response), delay, fault)

    def _admits(self, arrived: Arrived) -> bool:
        given = arrived.headers.get("authorization")
        return self._api_key is None or arrived.batch is not None or given == f"Bearer {self._api_key}"

    def _chat(self, arrived: Arrived) -> tuple[Response, Reply]:
        refusal = self._wrong_method(arrived, "POST") or refusal_to_complete(arrived.json)
        if refusal is not None:
            return refusal, Reply()
        request = arrived.chat
        arrived.paid = True
        said = self.answer(request)
        reply = said if isinstance(said, Reply) else Reply(said)
        return Response.of(completion(request, reply, self._cache.hit(request.model, request.prompt))), reply

    def _other(self, arrived: Arrived) -> Response:
        match = re.fullmatch(ROUTES.get(arrived.kind, ".*"), arrived.path)
        named = match.groupdict() if match else {}
        name, part = named.get("id"), named.get("part")
        match arrived.kind:
            case "embeddings":
                refusal = self._wrong_method(arrived, "POST")
                return refusal or embeddings(arrived.json, self.embed, self._dimensions)
            case "files":
                return self._file(arrived, name, part)
            case "batches":
                return self._batch(arrived, name, part)
            case "models":
                return self._wrong_method(arrived, "GET") or self._model(name)
        return Response.error(404, f"Invalid URL ({arrived.method} {arrived.path})")

    @staticmethod
    def _wrong_method(arrived: Arrived, *allowed: str) -> Response | None:
        if arrived.method in allowed:
            return None
        said = f"Not allowed to {arrived.method} on {arrived.path}."
        return Response.error(405, said, headers={"allow": ", ".join(allowed)})

    def _model(self, name: str | None) -> Response:
        shown = [{"id": m, "object": "model", "created": CREATED, "owned_by": "tests"} for m in self._models]
        if name is None:
            return Response.of({"object": "list", "data": shown})
        if name not in self._models:
            return Response.error(404, f"The model '{name}' does not exist", code="model_not_found")
        return Response.of(shown[self._models.index(name)])

    def _file(self, arrived: Arrived, name: str | None, part: str | None) -> Response:
        files = self.store.files
        if name is None:
            refusal = self._wrong_method(arrived, "GET", "POST")
            if refusal is not None:
                return refusal
            if arrived.method == "GET":
                return page([file.shown() for file in reversed(files.values())], arrived.query)
            try:
                form = multipart(arrived.headers.get("content-type", ""), arrived.body)
                upload, purpose = form["file"], form["purpose"].content.decode()
            except (ValueError, KeyError) as error:
                return Response.error(400, f"no upload: {error}", param="file")
            return Response.of(self.store.keep(upload.filename or "upload", purpose, upload.content).shown())
        if name not in files:
            return Response.error(404, f"No such File object: {name}", param="id")
        if part is not None:
            refusal = self._wrong_method(arrived, "GET")
            return refusal or Response(body=files[name].content, content_type="application/octet-stream")
        refusal = self._wrong_method(arrived, "GET", "DELETE")
        if refusal is not None:
            return refusal
        if arrived.method == "GET":
            return Response.of(files[name].shown())
        del files[name]
        return Response.of({"id": name, "object": "file", "deleted": True})

    def _batch(self, arrived: Arrived, name: str | None, part: str | None) -> Response:
        batches = self.store.batches
        if name is None:
            refusal = self._wrong_method(arrived, "GET", "POST")
            if refusal is not None:
                return refusal
            if arrived.method == "GET":
                return page([batch.shown() for batch in reversed(batches.values())], arrived.query)
            if not isinstance(arrived.json, dict):
                return Response.error(400, "We could not parse the JSON body of your request.")
            progress = self.progress(len(batches)) if callable(self.progress) else self.progress
            return shown(self.store.create(arrived.json, progress))
        if name not in batches:
            return Response.error(404, f"No batch found with id '{name}'.", param="id")
        refusal = self._wrong_method(arrived, "GET" if part is None else "POST")
        if refusal is not None:
            return refusal
        batch = batches[name]
        return shown(self.store.poll(batch) if part is None else self.store.cancel(batch))

    def _line(self, batch: str, path: str, body: dict[str, Any]) -> Response | None:
        """The answer to a line of a batch; where a connection would break, there is none."""
        arrived = self._note(kind_of(path), path, json.dumps(body).encode(), batch=batch)
        outcome = self.handle(arrived)
        broken = outcome.fault is not None and outcome.fault.sent != "all"
        response = outcome.response
        try:
            response.json  # noqa: B018
        except ValueError:
            broken = True
        arrived.status = None if broken else response.status
        arrived.answered = arrived.status == 200
        arrived.finished = arrived.arrived
        return None if broken else response


def shown(batch: Batch | Response) -> Response:
    return batch if isinstance(batch, Response) else Response.of(batch.shown())


def page(items: list[dict[str, Any]], query: dict[str, str]) -> Response:
    """One page of a list: `limit` items, those that come after the one with the id `after`."""
    names = [item["id"] for item in items]
    start = names.index(query["after"]) + 1 if query.get("after") in names else 0
    end = start + int(query.get("limit", 20))
    data = items[start:end]
    return Response.of(
        {
            "object": "list",
            "data": data,
            "first_id": data[0]["id"] if data else None,
            "last_id": data[-1]["id"] if data else None,
            "has_more": end < len(items),
        }
    )
