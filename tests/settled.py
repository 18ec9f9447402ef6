"""What tests of settling share: turns to settle, and what must hold when all is done."""

from __future__ import annotations

import json
from pathlib import Path

import hmem_core as hmem
from hmem_core.interfaces import demo
from tests.test_replay import assert_same, replayed

__all__ = ["DEMO", "check"]

DEMO = [
    json.loads(line) for line in (Path(demo.__file__).parent / "conversation.jsonl").read_text().splitlines()
]
"""The turns of the demo conversation."""


def check(memory: hmem.Memory) -> None:
    """Nothing is left to do, and the journal says all that the arrays do."""
    assert memory.stats().waiting == 0
    assert_same(memory._store._state.arrays(), replayed(memory).arrays())
