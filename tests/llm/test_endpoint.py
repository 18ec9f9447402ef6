"""What a scripted and a real endpoint have in common."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.llm.helpers import ask, connect, schema
from tests.llm.scripted import ScriptedServer


@pytest.mark.timeout(600)
def test_answers_by_a_schema(endpoint: str, scripted_server: ScriptedServer) -> None:
    async def scenario() -> None:
        async with connect(scripted_server, base_url=endpoint, timeout=300.0) as client:
            model = (await client.models.list()).data[0].id
            asked = "Ann lives in Porto. Where does she live?"
            completion = await ask(client, asked, model, response_format=schema(), max_tokens=60)
        (choice,) = completion.choices
        assert choice.finish_reason == "stop"
        assert isinstance(json.loads(choice.message.content or "")["city"], str)
        assert completion.usage is not None
        assert completion.usage.prompt_tokens > 5
        assert completion.usage.completion_tokens > 3

    scripted_server.answer = lambda request: {"city": "Porto"}
    asyncio.run(scenario())
