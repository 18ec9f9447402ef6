"""The pipeline from files to a memory."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest

import hmem_core as hmem
from hmem_core.embedding.function import FunctionEncoder
from hmem_core.ingest.bulk import Ingested, ingest
from hmem_core.ingest.readers import read
from hmem_core.ingest.source import Item
from tests.helpers import hashed, open_memory


def items(messages: list[Any]) -> list[Item]:
    data = "".join(json.dumps(message) + "\n" for message in messages).encode()
    return list(read(io.BytesIO(data), "chat.jsonl").items)


def numbered(count: int) -> list[Any]:
    return [{"content": f"turn number {number}", "session": "s"} for number in range(count)]


def test_importing_again_adds_nothing_and_embeds_nothing(tmp_path: Path) -> None:
    texts: list[str] = []

    def embed(batch: list[str]) -> Any:
        texts.extend(batch)
        return hashed(batch)

    encoder = FunctionEncoder(embed, name="counted", dimension=32)
    with hmem.open(tmp_path, encoder=encoder) as memory:
        assert ingest(memory, items(numbered(50)), batch=7) == Ingested(added=50)
    with hmem.open(tmp_path, encoder=encoder) as memory:
        assert ingest(memory, items(numbered(50)), batch=7) == Ingested(known=50)
        assert ingest(memory, items(numbered(52)), batch=7) == Ingested(added=2, known=50)
        assert [turn.text for turn in memory.turns()][-1] == "turn number 51"
    assert len(texts) == 52


def test_a_known_import_is_quick() -> None:
    with open_memory() as memory:
        many = items(numbered(5000))
        ingest(memory, many)
        begun = time.perf_counter()
        assert ingest(memory, many).known == 5000
        assert time.perf_counter() - begun < 5


def test_what_is_no_turn_is_skipped_and_counted() -> None:
    with open_memory() as memory:
        messages = [{"role": "system", "content": "be kind"}, {"content": "  "}, {"content": "hello"}]
        assert ingest(memory, items(messages)) == Ingested(added=1, skipped=2)
        assert ingest(memory, items(messages), system=True) == Ingested(added=1, known=1, skipped=1)


def test_progress_tells_the_totals_after_each_batch() -> None:
    seen: list[int] = []
    with open_memory() as memory:
        ingest(memory, items(numbered(10)), batch=4, progress=lambda done: seen.append(done.messages))
    assert seen == [4, 8, 10]


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        ({"content": "a", "mood": 1}, "line 6 of chat.jsonl has the field 'mood'"),
        ({"content": 5}, "content of line 6 of chat.jsonl is a int"),
        ({"content": "a", "at": "soon"}, "at of line 6 of chat.jsonl='soon' is not an ISO 8601 time"),
        ({"content": "a", "key": 5}, "key of line 6 of chat.jsonl is 5"),
        ({"content": "a", "metadata": [1]}, "metadata of line 6 of chat.jsonl"),
    ],
)
def test_a_bad_message_stops_after_everything_before_it(bad: Any, complaint: str) -> None:
    with open_memory() as memory:
        with pytest.raises(hmem.InvalidInput, match=complaint) as caught:
            ingest(memory, items([*numbered(5), bad, *numbered(3)]), batch=3)
        assert memory.stats().turns == 5
        (note,) = caught.value.__notes__
        assert note.startswith("5 messages before it were dealt with: 5 added, 0 known, 0 skipped")


def test_an_encoder_that_fails_stops_in_a_state_to_go_on_from(tmp_path: Path) -> None:
    healthy = False

    def embed(batch: list[str]) -> Any:
        if not healthy and any("number 6" in text for text in batch):
            raise RuntimeError("no more")
        return hashed(batch)

    encoder = FunctionEncoder(embed, name="flaky", dimension=32)
    with hmem.open(tmp_path, encoder=encoder) as memory:
        with pytest.raises(hmem.EncoderError) as caught:
            ingest(memory, items(numbered(10)), batch=4)
        assert "4 added" in caught.value.__notes__[0]
        healthy = True
        assert ingest(memory, items(numbered(10)), batch=4) == Ingested(added=6, known=4)
        assert [turn.text for turn in memory.turns(session="s")] == [
            message["content"] for message in numbered(10)
        ]
