"""Replies that are known are not paid for again."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

import hmem_core as hmem
from hmem_core.effects import Ask
from hmem_core.llm.cache import ReplyCache, fingerprint
from hmem_core.llm.driver import AsyncDriver
from hmem_core.llm.schemas import json_schema
from hmem_core.reports import Usage
from tests.helpers import files_holding, open_memory
from tests.llm.programs import Encoder, Said, ask, asking, echo, model
from tests.llm.scripted import ScriptedServer


@pytest.fixture
def server(scripted_server: ScriptedServer) -> ScriptedServer:
    scripted_server.answer = echo
    return scripted_server


def answers(server: ScriptedServer, *texts: str, **options: Any) -> tuple[list[Any], Usage]:
    async def scenario() -> tuple[list[Any], Usage]:
        async with AsyncDriver(Encoder().embed, model(server, **options)) as driver:
            results = [await driver.run(asking(text)) for text in texts]
            return results, driver.ledger.snapshot().total

    return asyncio.run(scenario())


def test_a_question_is_paid_for_once(server: ScriptedServer, tmp_path: Path) -> None:
    cache = tmp_path / "new" / "replies.sqlite"
    results, usage = answers(server, "a", "a", "b", cache=cache)
    assert (results, usage.calls, usage.saved) == (["a", "a", "b"], 2, 1)
    results, usage = answers(server, "a", "b", "c", cache=cache)
    assert (results, usage.calls, usage.saved) == (["a", "b", "c"], 1, 2)
    assert len(server.asks) == 3


def test_replies_that_are_not_valid_are_not_kept(server: ScriptedServer, tmp_path: Path) -> None:
    server.answer = lambda request: "no" if len(server.asks) < 3 else {"text": "ok"}
    cache = tmp_path / "replies.sqlite"
    with pytest.raises(hmem.MalformedReply):
        answers(server, "a", cache=cache)
    assert answers(server, "a", cache=cache)[0] == ["ok"]


def test_a_kept_reply_that_is_no_longer_valid_is_asked_for_anew(
    server: ScriptedServer, tmp_path: Path
) -> None:
    cache = tmp_path / "replies.sqlite"
    answers(server, "a", cache=cache)
    with sqlite3.connect(cache) as db:
        db.execute("UPDATE replies SET reply = 'nonsense'")
    db.close()
    assert answers(server, "a", cache=cache)[0] == ["a"]
    assert len(server.asks) == 2


class Other(msgspec.Struct):
    text: str
    more: int = 0


def test_what_makes_questions_the_same() -> None:
    def mark(one: Ask = ask("a"), **options: Any) -> bytes:  # noqa: B008
        return fingerprint(one, model(**options), json_schema(one.schema))

    same = mark()
    assert same == mark(ask("a", "another purpose", max_tokens=5)) == mark(concurrency=1)
    different = [
        mark(ask("b")),
        mark(model="other"),
        mark(temperature=1.0),
        mark(extra={"seed": 1}),
        mark(Ask("test", ask("a").messages, Other)),
        mark(Ask("test", ask("a").messages[::-1], Said)),
    ]
    assert len({same, *different}) == 1 + len(different)


@pytest.mark.parametrize("damage", ["garbage", "directory"])
def test_a_cache_that_cannot_be_used_costs_only_money(
    server: ScriptedServer, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    cache = tmp_path / "replies.sqlite"
    cache.mkdir() if damage == "directory" else cache.write_bytes(b"garbage" * 1000)
    with caplog.at_level(logging.WARNING, "hmem.llm"):
        assert answers(server, "a", "a", cache=cache)[0] == ["a", "a"]
    assert len(server.asks) == 2
    assert len(caplog.records) == 1


def test_forgetting_erases_the_replies(server: ScriptedServer, tmp_path: Path) -> None:
    cache = tmp_path / "replies.sqlite"
    llm = model(server, cache=cache)
    with open_memory(tmp_path / "m", llm=llm) as memory:
        memory.add("a secret of Ann")
        assert memory._run(asking("a secret of Ann"), 0) == "a secret of Ann"
        assert files_holding(tmp_path, "secret of Ann")
        memory.forget(0)
        assert files_holding(tmp_path, "secret of Ann") == []
        memory._run(asking("a secret of Ann"), 0)
    assert len(server.asks) == 2


def test_a_reply_that_was_under_way_when_the_cache_was_cleared_is_not_kept(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies.sqlite")
    before = cache.generation
    cache.clear()
    cache.put(b"key", "reply", before)
    assert cache.get(b"key") is None
    cache.put(b"key", "reply", cache.generation)
    assert cache.get(b"key") == "reply"
    cache.close()


def test_a_cache_that_cannot_be_erased_says_so(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    path.write_bytes(b"garbage" * 1000)
    with pytest.raises(hmem.StorageError, match="delete it"):
        ReplyCache(path).clear()
