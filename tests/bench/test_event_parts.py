"""The parts of an event's score, measured apart, add up to what the engine finds."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

import hmem_core as hmem
from bench.quality import event_parts, locomo_data
from bench.quality.protocol import fill
from tests.bench.locomo import LOCOMO
from tests.helpers import hashing_encoder


def test_the_default_parts_are_the_event_view(tmp_path: Path) -> None:
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO))
    conversation = locomo_data.load(tmp_path / "locomo.json")[0]
    encoder = hashing_encoder()
    found = event_parts.measure(conversation, encoder)
    assert set(found) == set(event_parts.ROWS)
    with hmem.open(encoder=encoder) as memory:
        fill(memory, conversation)
        keys = {turn.id: turn.key for turn in memory.turns()}
        recalls = []
        for question in conversation.questions:
            if question.evidence:
                hits = memory.search(question.text, event_parts.SHOWN, view="events")
                shown = {keys[hit.turns[0]] for hit in hits}
                recalls.append(len(shown & set(question.evidence)) / len(question.evidence))
    assert fmean(found["turns", "centroid", "coverage"]) == pytest.approx(fmean(recalls))
