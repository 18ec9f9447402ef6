"""Importing many conversations offline, and being killed meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hmem_core as hmem
from hmem_core.errors import LLMRefused, LLMUnavailable
from hmem_core.ingest.bulk import Ingested
from hmem_core.ingest.offline import Imported, import_offline
from hmem_core.ingest.source import Item
from tests.faults.harness import Nursery
from tests.helpers import hashed
from tests.ingest.offline_tasks import CONVERSATIONS, TURNS, bring_in, conversations, encoder, messages
from tests.llm.scripted import Arrived, ChatRequest, Progress, ScriptedServer, slow, unauthorized, unavailable


def answer(request: ChatRequest) -> Any:
    """A turn belongs to the narrowest segment that has its topic."""
    shown = [
        json.loads(line) for line in request.messages[-1]["content"].splitlines() if line.startswith("{")
    ]
    if "summary" in request.messages[0]["content"]:
        return {"summary": f"{len(shown)} parts, from {shown[0]['text'][:40]}"}
    topic = shown[-1]["text"].split()[0]
    return {"height": next((one["height"] for one in shown[:-1] if topic in one["text"]), None)}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(answer) as server:
        yield server


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery(bring_in) as nursery:
        yield nursery


def bodies(server: ScriptedServer) -> list[str]:
    return [json.dumps(arrived.json, sort_keys=True) for arrived in server.asks]


def polls(arrived: Arrived) -> bool:
    return arrived.kind == "batches" and arrived.method == "GET"


def deletes(arrived: Arrived) -> bool:
    return arrived.method == "DELETE"


# The first process dies while its batch is under way; the second when replies are recorded, but neither
# used nor their files deleted.
@pytest.mark.parametrize("mode", ["cosine", "batch"])
def test_killed_twice_each_ask_is_sent_once_and_each_turn_stored_once(
    server: ScriptedServer, nursery: Nursery, tmp_path: Path, mode: str
) -> None:
    def killed(kind: str, when: Callable[[Arrived], bool]) -> None:
        seen = sum(map(when, server.requests()))
        server.faults.add(slow(10), on=kind, when=when, times=1)
        child = nursery.start(bring_in, server.url, str(tmp_path), mode)
        server.wait(lambda: sum(map(when, server.requests())) > seen)
        child.kill()
        child.said()
        assert child.status == -9
        server.faults.clear()

    killed("batches", polls)
    killed("files", deletes)
    said = nursery.run(bring_in, server.url, str(tmp_path), mode)
    assert all(waiting == 0 for *_, waiting in said)
    assert {added + known for added, known, *_ in said} == {TURNS}
    assert server.paid == len(server.asks) == len(set(bodies(server)))
    assert server.files == {}
    for number, place in enumerate(conversations(tmp_path)):
        with hmem.open(place, create=False, encoder=encoder()) as memory:
            assert [turn.text for turn in memory.turns()] == [one["content"] for one in messages(number)]
            assert memory.segments.root().text.endswith("remark 0")
    segments = hmem.SegmentOptions(compatibility=mode, summarise_from=2)  # type: ignore[arg-type]
    llm = hmem.LLM(model="scripted", base_url=server.url, api_key="test")
    with hmem.open(encoder=encoder(), segments=segments, llm=llm) as online:
        online.add(messages(1))
        heights = online._store.view().narrow["height"].tolist()
    with hmem.open(tmp_path / "memory 1", encoder=encoder()) as memory:
        assert memory._store.view().narrow["height"].tolist() == heights


def run(
    server: ScriptedServer, directory: Path, given: dict[Any, Any], **options: Any
) -> dict[Any, Imported | Exception]:
    llm = hmem.LLM(model="scripted", base_url=server.url, api_key="test", retries=0, **options.pop("llm", {}))
    settings = {"encoder": encoder(), "poll": 0.01, "segments": hmem.SegmentOptions(summarise_from=2)}
    return import_offline(given, llm, directory / "record", **{**settings, **options})


def test_turns_of_all_memories_are_embedded_together_and_summaries_are_one_batch(
    server: ScriptedServer, tmp_path: Path
) -> None:
    sizes: list[int] = []

    def embed(texts: Any) -> Any:
        sizes.append(len(texts))
        return hashed(texts)

    given = conversations(tmp_path)
    rounds: list[int] = []
    done = run(server, tmp_path, given, encoder=encoder(embed), progress=rounds.append)
    assert list(done) == list(given)
    assert all(isinstance(one, Imported) and one.waiting == 0 for one in done.values())
    assert sizes[0] == CONVERSATIONS * TURNS
    assert len(sizes) == 2  # and the summaries
    assert rounds == [len(batch.lines) for batch in server.batches.values()]
    assert len(rounds) == 1
    asked = len(server.asks)
    again = run(server, tmp_path, given)
    assert {one.ingested for one in again.values() if isinstance(one, Imported)} == {Ingested(known=TURNS)}
    assert len(server.asks) == asked


def test_memories_beyond_those_that_may_be_open_come_after_them(
    server: ScriptedServer, tmp_path: Path
) -> None:
    given = dict(list(conversations(tmp_path).items())[:5])
    done = run(server, tmp_path, given, together=2)
    assert {one.ingested.added for one in done.values() if isinstance(one, Imported)} == {TURNS}
    assert len(server.batches) == 3


def test_what_one_memory_cannot_do_keeps_no_other_from_it(server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    bad = [Item("line 1", {"content": "fine"}), Item("line 2", {"role": "user", "content": 7})]
    given = {
        tmp_path / "file": [Item("line 1", {"content": "x"})],
        tmp_path / "bad": bad,
        **dict(list(conversations(tmp_path).items())[:1]),
    }
    file, wrong, good = run(server, tmp_path, given).values()
    assert isinstance(file, hmem.StorageError)
    assert isinstance(wrong, hmem.InvalidInput)
    assert "line 2" in str(wrong)
    assert isinstance(good, Imported)
    assert good.waiting == 0


def test_a_model_that_gives_no_replies_costs_summaries_alone(server: ScriptedServer, tmp_path: Path) -> None:
    given = dict(list(conversations(tmp_path).items())[:2])
    server.progress = Progress(("validating", "failed"), failure=("invalid_model", "no such model"))
    done = run(server, tmp_path, given)
    for one in done.values():
        assert isinstance(one, Imported)
        assert (one.ingested.added, one.summarised) == (TURNS, 0)
        assert one.waiting > 0
        assert "no such model" in str(one.problem)


def test_a_budget_is_for_the_whole_run(server: ScriptedServer, tmp_path: Path) -> None:
    given = dict(list(conversations(tmp_path).items())[:4])
    done = run(server, tmp_path, given, llm={"budget": hmem.Budget(calls=3)})
    assert server.paid == 3
    assert sum(one.summarised for one in done.values() if isinstance(one, Imported)) == 3


def test_a_server_without_batches_stops_the_run_which_goes_on_later(
    server: ScriptedServer, tmp_path: Path
) -> None:
    given = dict(list(conversations(tmp_path).items())[:2])
    server.faults.add(unavailable(), on="files")
    with pytest.raises(LLMUnavailable) as caught:
        run(server, tmp_path, given)
    assert "goes on" in caught.value.__notes__[0]
    server.faults.clear()
    server.faults.add(unauthorized(), on="batches", times=1)
    with pytest.raises(LLMRefused):
        run(server, tmp_path, given)
    done = run(server, tmp_path, given)
    assert all(isinstance(one, Imported) and one.waiting == 0 for one in done.values())
    assert server.paid == len(set(bodies(server)))


@pytest.mark.parametrize("wrong", [{"together": 0}, {"batch": 0}, {"tries": 0}])
def test_options_without_meaning_are_refused(
    server: ScriptedServer, tmp_path: Path, wrong: dict[str, int]
) -> None:
    with pytest.raises(hmem.InvalidInput, match=next(iter(wrong))):
        run(server, tmp_path, conversations(tmp_path), **wrong)
    with pytest.raises(hmem.InvalidInput, match="one location"):
        run(server, tmp_path, {"a": [], Path("a"): []})
