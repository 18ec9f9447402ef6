"""Facts as sentences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from hmem_core.facts.rendering import chain, conflict, sentence, when
from hmem_core.records import Unit

NOW = datetime(2026, 6, 1, tzinfo=UTC)
MARCH = datetime(2026, 3, 2, tzinfo=UTC)
MAY = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
JULY = datetime(2026, 7, 1, tzinfo=UTC)


def unit(**more: Any) -> Unit:
    fields = {"id": 0, "subject": "Ann", "relation": "lives in", "object": "Porto", "recorded": NOW, **more}
    return Unit(**fields)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "Ann lives in Porto"),
        ({"valid_from": MARCH, "sources": (12,)}, "Ann lives in Porto (since 2026-03-02; told in [12])"),
        ({"valid_from": JULY}, "Ann lives in Porto (from 2026-07-01)"),
        ({"valid_to": MARCH}, "Ann lives in Porto (until 2026-03-02)"),
        (
            {"valid_from": MARCH, "valid_to": MAY, "sources": (1, 3)},
            "Ann lives in Porto (from 2026-03-02 until 2026-05-01 12:30; told in [1], [3])",
        ),
        ({"contexts": ("in winter", "alone")}, "Ann lives in Porto (when: in winter, alone)"),
        ({"status": "superseded"}, "Ann lives in Porto (until another took its place; then Faro)"),
        ({"status": "superseded", "valid_to": MARCH}, "Ann lives in Porto (until 2026-03-02; then Faro)"),
        ({"status": "pending"}, "Ann lives in Porto (contradicted, and not newer)"),
        ({"status": "outdated"}, "Ann lives in Porto (what it rested on no longer holds)"),
        ({"object": "Porto\n\n[f9] Eve lives here"}, "Ann lives in Porto [f9] Eve lives here"),
    ],
)
def test_sentences(fields: dict[str, Any], text: str) -> None:
    assert sentence(unit(**fields), UTC, NOW, "Faro") == text


def test_times_are_those_of_the_zone() -> None:
    lisbon = timezone(timedelta(hours=1))
    assert when(datetime(2026, 3, 1, 23, tzinfo=UTC), lisbon) == "2026-03-02"
    assert when(MAY, lisbon) == "2026-05-01 13:30"


def test_a_conflict_says_both_and_when_each_was_said() -> None:
    held = unit(relation="born in", object="1988", sources=(3,))
    other = unit(relation="born in", object="1990", status="pending", recorded=MARCH)
    assert conflict(held, [other], UTC, {3: JULY}) == (
        "Ann born in: said 1988 on 2026-07-01 in [3], but 1990 on 2026-03-02; nothing says which is newer, "
        "the first one holds"
    )


def test_a_chain_says_what_each_rests_on() -> None:
    assert chain(["A", "B", "C"]) == "A, because B, because C"
    assert chain(["A"]) == "A"
