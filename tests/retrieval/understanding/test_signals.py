"""Columns of scores from what was understood."""

from __future__ import annotations

import numpy as np

from hmem_core.retrieval.understanding import resolve, roster_of
from hmem_core.retrieval.understanding.signals import period, speaker
from tests.helpers import open_memory


def test_speakers_and_periods() -> None:
    with open_memory() as memory:
        for day, who in enumerate(["Ida", "Zoé", "Ida", None, "Zoé"], 1):
            message = {"role": "user" if who else "assistant", "content": "hello"}
            memory.add([message | ({"speaker": who} if who else {})], session="s", at=f"2024-05-0{day}T12:00")
        view = memory._store.view()
        known = roster_of(view)
        column = speaker(view, known.find("What did Ida say?"))
        assert column.dtype == np.float32
        assert column.tolist() == [1, 0, 1, 0, 0]
        assert speaker(view, known.find("Ida and Zoé")).tolist() == [1, 1, 1, 0, 1]
        assert speaker(view, known.find("What did I say?")).tolist() == [1, 1, 1, 0, 1]
        assert speaker(view, known.find("What did the assistant say?")).tolist() == [0, 0, 0, 1, 0]
        assert speaker(view, ()).tolist() == [0] * 5

        near = period(view, resolve("on 2024-05-03", "2024-05-15"))
        assert near.dtype == np.float32
        assert near[2] == 1
        assert near[0] < near[1] < 1
        assert near[4] < near[3] < 1
        assert period(view, ()).tolist() == [0] * 5

        memory.forget([2])
        view = memory._store.view()
        assert speaker(view, known.find("What did Ida say?")).tolist() == [1, 0, 0, 0, 0]
        assert period(view, resolve("on 2024-05-03", "2024-05-15"))[2] == 0


def test_nothing_in_an_empty_memory() -> None:
    with open_memory() as memory:
        view = memory._store.view()
        assert speaker(view, roster_of(view).find("Ida")).shape == (0,)
        assert period(view, resolve("last week", 0)).shape == (0,)
