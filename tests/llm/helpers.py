"""Short ways to ask a server through the official client."""

from __future__ import annotations

from typing import Any

from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from openai.types.chat import ChatCompletion

from tests.llm.scripted import ScriptedServer

MODEL = "scripted"


def connect(server: ScriptedServer | None, **options: Any) -> AsyncOpenAI:
    """A client that tries once. It does not read certificates, which takes longer than most tests."""
    where = {} if server is None else {"base_url": server.url}
    settings = {"api_key": "test", "max_retries": 0, "timeout": 5.0, **where, **options}
    return AsyncOpenAI(http_client=DefaultAsyncHttpxClient(verify=False), **settings)


async def ask(
    client: AsyncOpenAI, text: str = "Where does Ann live?", model: str = MODEL, **options: Any
) -> ChatCompletion:
    completion: ChatCompletion = await client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": text}], **options
    )
    return completion


def schema(name: str = "place") -> dict[str, Any]:
    """A response format with a JSON schema."""
    form = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return {"type": "json_schema", "json_schema": {"name": name, "schema": form}}
