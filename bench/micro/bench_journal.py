"""How long a journal takes. Entries as of a turn of a conversation: 200 bytes of text, 384 float16."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hmem_core.journal.entries import Name, TurnAdded
from hmem_core.journal.sqlite import SqliteJournal, Synchronous

TURN = TurnAdded(
    recorded=1_772_445_600_000_000,
    at=1_772_445_600_000_000,
    id=1000,
    role=Name(0, "user"),
    session=Name(3, "s4"),
    text="We moved to Porto last week. " * 7,
    vector=bytes(range(256)) * 3,
    height=2,
)


@pytest.fixture(params=["full", "normal"])
def synchronous(request: pytest.FixtureRequest) -> Synchronous:
    return request.param


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(tmp_path / "journal", create=True)) as journal:
        yield journal


def test_append_one(benchmark: Any, tmp_path: Path, synchronous: Synchronous) -> None:
    heads = itertools.count()
    with closing(SqliteJournal(tmp_path / "journal", create=True, synchronous=synchronous)) as journal:
        benchmark(lambda: journal.append(next(heads), [TURN]))


def test_append_a_thousand(benchmark: Any, tmp_path: Path, synchronous: Synchronous) -> None:
    heads = itertools.count(step=1000)
    turns = [TURN] * 1000
    with closing(SqliteJournal(tmp_path / "journal", create=True, synchronous=synchronous)) as journal:
        benchmark.pedantic(lambda: journal.append(next(heads), turns), rounds=20, warmup_rounds=1)


def test_read_ten_thousand(benchmark: Any, journal: SqliteJournal) -> None:
    journal.append(0, [TURN] * 10_000)
    benchmark(lambda: sum(1 for _ in journal.read()))


def test_position(benchmark: Any, journal: SqliteJournal) -> None:
    journal.append(0, [TURN] * 1000)
    benchmark(journal.position)


def test_scrub_ten_thousand(benchmark: Any, journal: SqliteJournal) -> None:
    """After one entry was rewritten."""
    heads = itertools.count(10_000)
    journal.append(0, [TURN] * 10_000)
    benchmark.pedantic(
        journal.scrub,
        setup=lambda: [journal.append(next(heads), [TURN], rewrite={1: TURN}), None][1],
        rounds=5,
    )
