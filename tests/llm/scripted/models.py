"""Completions and embeddings: what a model would say, counted and shaped as the API does."""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b, shake_128
from typing import Any

from tests.llm.scripted.records import ChatRequest, Reply
from tests.llm.scripted.wire import Response

TOKEN = re.compile(r"\w+|[^\w\s]")
CREATED = 1_700_000_000
MAX_INPUTS = 2048

Embedding = Callable[[str, int], Sequence[float]]


def spans(text: str) -> list[tuple[int, int]]:
    """Where the tokens are: words, and other characters one by one."""
    return [match.span() for match in TOKEN.finditer(text)]


def count(text: str) -> int:
    return len(spans(text))


def prompt_tokens(request: ChatRequest) -> int:
    return count(request.prompt)


class PrefixCache:
    """Which tokens at the head of a prompt an earlier one had already, in whole blocks."""

    def __init__(self, block: int) -> None:
        self._block = block
        self._seen: set[bytes] = set()

    def hit(self, model: str, prompt: str) -> int:
        tokens = TOKEN.findall(prompt)
        digest = blake2b(model.encode())
        cached, known = 0, True
        for end in range(self._block, len(tokens) + 1, self._block):
            block = "\0".join(["", *tokens[end - self._block : end]])
            digest.update(block.encode("utf-8", "surrogatepass"))
            known = known and digest.digest() in self._seen
            cached = end if known else cached
            self._seen.add(digest.digest())
        return cached


def refusal_to_complete(body: Any) -> Response | None:
    """The error for a request that cannot be completed."""
    if not isinstance(body, dict):
        return Response.error(400, "We could not parse the JSON body of your request.")
    if not isinstance(body.get("model"), str):
        return Response.error(400, "you must provide a model parameter", param="model")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        return Response.error(400, "'messages' must be a list of one message or more", param="messages")
    for option in ("stream", "tools", "functions"):
        if body.get(option):
            return Response.error(400, f"'{option}' is not scripted", param=option)
    return None


def completion(request: ChatRequest, reply: Reply, cached: int) -> dict[str, Any]:
    """The answer that carries a reply. A limit on tokens in the request cuts it, as it cuts a model's."""
    content, finish_reason = reply.content, reply.finish_reason
    if content is not None and not isinstance(content, str):
        content = json.dumps(content)
    limit = request.body.get("max_completion_tokens") or request.body.get("max_tokens")
    ends = [end for _, end in spans(content or "")]
    if limit is not None and len(ends) > limit:
        content, finish_reason, ends = (content or "")[: ends[limit - 1]], "length", ends[:limit]
    read = prompt_tokens(request) if reply.prompt_tokens is None else reply.prompt_tokens
    written = len(ends) if reply.completion_tokens is None else reply.completion_tokens
    message = {"role": "assistant", "content": content, "refusal": reply.refusal}
    return {
        "id": f"chatcmpl-{request.number}",
        "object": "chat.completion",
        "created": CREATED + request.number,
        "model": request.model,
        "choices": [
            {"index": index, "message": dict(message), "logprobs": None, "finish_reason": finish_reason}
            for index in range(request.body.get("n") or 1)
        ],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "prompt_tokens_details": {
                "cached_tokens": cached if reply.cached_tokens is None else reply.cached_tokens
            },
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


@lru_cache(1 << 14)
def _word(word: str, dimensions: int) -> tuple[float, ...]:
    return tuple(byte - 127.5 for byte in shake_128(word.encode("utf-8", "surrogatepass")).digest(dimensions))


def embedding(text: str, dimensions: int) -> list[float]:
    """A unit vector that depends on nothing but the words, so that texts with common words are alike."""
    words = TOKEN.findall(text.lower()) or [""]
    sums = [math.fsum(column) for column in zip(*(_word(word, dimensions) for word in words), strict=True)]
    norm = math.sqrt(math.fsum(x * x for x in sums))
    return [x / norm for x in sums]


def embeddings(body: Any, embed: Embedding, dimensions: int) -> Response:
    """The answer to a request for embeddings."""
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        return Response.error(400, "you must provide a model parameter", param="model")
    given = body.get("input")
    texts = given if isinstance(given, list) and not all(isinstance(x, int) for x in given) else [given]
    for text in texts:
        if not text or not isinstance(text, str | list):
            return Response.error(400, "'$.input' is invalid.", param="input")
    if len(texts) > MAX_INPUTS:
        return Response.error(400, f"'$.input' has more than {MAX_INPUTS} items.", param="input")
    data, tokens = [], 0
    for index, text in enumerate(texts):
        said = text if isinstance(text, str) else " ".join(map(str, text))
        packed = (
            struct.pack(f"<{len(v)}f", *v)
            if (v := embed(said, body.get("dimensions") or dimensions))
            else b""
        )
        vector: Any = list(struct.unpack(f"<{len(v)}f", packed))
        if body.get("encoding_format") == "base64":
            vector = base64.b64encode(packed).decode()
        data.append({"object": "embedding", "index": index, "embedding": vector})
        tokens += count(said)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return Response.of({"object": "list", "model": body["model"], "data": data, "usage": usage})
