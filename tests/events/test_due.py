"""What waits for a model, and which events are near a turn, held against slow ways to find it."""

from __future__ import annotations

import numpy as np
import pytest

import hmem_core as hmem
from hmem_core.columns.contexts import CONTEXT
from hmem_core.events import due
from hmem_core.events.nearness import nearness
from hmem_core.journal.entries import EventDescribed, TurnAnalysed, TurnsLinked, rests_on
from hmem_core.state import State, pack_vector
from hmem_core.store import Plan
from tests.events.judge import Driver, with_judge


def nothing(ask: object) -> None:
    raise AssertionError("nobody is asked")


def filled(rng: np.random.Generator, memory: hmem.Memory) -> None:
    """Random turns, links, analyses and descriptions; some turns are forgotten."""
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
    memory.add([{"role": "user", "content": " ".join(rng.choice(words, 4))} for _ in range(40)], session="s")

    def plan(state: State) -> Plan:
        links: list[tuple[int, tuple[int, ...]]] = [(turn, (turn,)) for turn in range(6)]
        for turn in range(6, 32):
            links.append((turn, tuple(rng.choice(6, rng.integers(1, 4), replace=False).tolist())))
        entries: list[TurnsLinked | TurnAnalysed | EventDescribed] = [
            TurnsLinked(recorded=0, links=tuple(links))
        ]
        for turn in rng.choice(40, 15, replace=False).tolist():
            entries.append(TurnAnalysed(recorded=0, turn=turn, read=(turn, int(rng.integers(40)))))
        for event in rng.choice(6, 12).tolist():
            read = tuple(rng.choice(40, rng.integers(1, 25), replace=False).tolist())
            summary = "one of the words" if rng.random() < 0.5 else None
            vector = pack_vector(memory._encoder.embed([str(rng.choice(words))])[0])
            entries.append(
                EventDescribed(
                    recorded=0, event=event, read=read, summary=summary, vector=vector if summary else None
                )
            )
        return Plan(entries)

    memory._store.commit(plan)
    if forgotten := rng.choice(40, int(rng.integers(5)), replace=False).tolist():
        memory.forget(forgotten)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_due(seed: int) -> None:
    driver = Driver(nothing)
    driver.down = True
    with with_judge(driver, batch=32) as memory:
        filled(np.random.default_rng(seed), memory)
        with memory._store.reading() as state:
            view, told = state.view(), due.told(state)
        live = {turn.id for turn in memory.turns()}
        links = view.events.links
        assert due.unlinked(view).tolist() == sorted(live - set(links.turn.tolist()))
        assert due.unanalysed(view).tolist() == sorted(
            turn for turn in live if view.events.analysis_of(turn) is None
        )
        expected = []
        for event in range(links.events):
            covered = {turn for entry in view.events.descriptions_of(event) for turn in rests_on(entry)}
            if (set(links.turns_of(event).tolist()) & live) - covered:
                expected.append(event)
        assert due.stale(view, told).tolist() == expected


@pytest.mark.parametrize("seed", range(6))
def test_nearness_is_the_cosine_with_the_description_or_the_sum(seed: int) -> None:
    driver = Driver(nothing)
    driver.down = True
    with with_judge(driver, batch=32) as memory:
        filled(np.random.default_rng(seed), memory)
        gone = list(memory._store.view().events.links.turns_of(0).tolist())
        memory.forget(gone)
        with memory._store.reading() as state:
            view = state.view()
            near = nearness(state, view, np.array([32, 39], np.int32))
        vectors = np.concatenate(view.vectors)

        def context(turn: int) -> np.ndarray:
            total = np.zeros(vectors.shape[1], np.float32)
            for weight in CONTEXT.tolist() if view.narrow["live"][turn] else ():
                if turn >= 0:
                    total += weight * vectors[turn]
                    turn = int(view.narrow["previous"][turn])
            return total / max(float(np.linalg.norm(total)), 1e-9)

        notes = view.events.descriptions
        described = dict(zip(notes.subjects.tolist(), notes.vector_rows.tolist(), strict=True))
        for row, turn in enumerate((32, 39)):
            for event in range(6):
                linked = view.events.links.turns_of(event).tolist()
                total = sum((context(one) for one in linked), np.zeros(vectors.shape[1]))
                if not total.any():
                    assert near.scores[row, event] == -np.inf
                    continue
                best = float(context(turn) @ total / np.linalg.norm(total))
                if event in described:
                    place = described[event]
                    best = max(best, float(context(turn) @ np.concatenate(notes.vectors)[place]))
                assert near.scores[row, event] == pytest.approx(best, abs=1e-5)
        assert near.likeness[0, 1] == pytest.approx(float(context(32) @ context(39)), abs=1e-5)


@pytest.mark.parametrize("options", [{"batch": 33}, {"batch": 0}, {"sure": "x"}, {"margin": 3}, {"far": -2}])
def test_options_without_meaning_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(hmem.InvalidInput, match=next(iter(options))):
        hmem.EventOptions(**options)  # type: ignore[arg-type]
