from __future__ import annotations

import pytest
from hypothesis import settings

from hmem_core.journal.entries import encode
from hmem_core.journal.volatile import VolatileJournal
from tests.journal.contract import JournalContract, Open, check_against_a_list, turn


def fresh() -> Open:
    journal = VolatileJournal()
    return lambda: journal


class TestVolatile(JournalContract):
    @pytest.fixture
    def open(self) -> Open:
        return fresh()


def test_behaves_like_a_list() -> None:
    check_against_a_list(fresh, settings(max_examples=30, deadline=None))


def test_counts_the_bytes_of_its_entries() -> None:
    journal = VolatileJournal()
    journal.append(0, [turn(0), turn(1)])
    assert journal.nbytes() == len(encode(turn(0))) + len(encode(turn(1)))
