"""Reading LoCoMo files; the sample here is made up."""

from __future__ import annotations

import datetime as dt
import io
import json
import locale
from typing import Any

import pytest

import hmem_core as hmem
from hmem_core.ingest.readers import read
from hmem_core.ingest.source import Source


def sample(name: str = "walk-1", **changes: Any) -> dict[str, Any]:
    conversation = {
        "speaker_a": "Ines",
        "speaker_b": "Olek",
        "session_10_date_time": "12:05 am on 1 January, 2024",
        "session_10": [{"speaker": "Ines", "dia_id": "D10:1", "text": "Happy new year!"}],
        "session_2_date_time": "12:30 pm on 29 February, 2024",
        "session_2": [
            {"speaker": "Olek", "dia_id": "D2:1", "text": "Look at this.", "blip_caption": "a red kite"},
            {
                "speaker": "Ines",
                "dia_id": "D2:2",
                "text": "",
                "blip_caption": "a lighthouse",
                "img_url": ["x"],
            },
        ],
        "session_3_date_time": "3:00 pm on 1 March, 2024",
        **changes,
    }
    return {"sample_id": name, "conversation": conversation, "qa": []}


def source(document: Any, **options: Any) -> Source:
    return read(io.BytesIO(json.dumps(document).encode()), "talks.json", **options)


def test_turns_come_in_the_order_of_sessions_with_keys_and_times() -> None:
    found = source([sample()])
    assert (found.format, found.total) == ("locomo", 3)
    messages = [item.message for item in found.items]
    assert [message["key"] for message in messages] == ["walk-1:D2:1", "walk-1:D2:2", "walk-1:D10:1"]
    assert [message["session"] for message in messages] == ["session_2", "session_2", "session_10"]
    assert [message["at"] for message in messages] == [
        dt.datetime(2024, 2, 29, 12, 30, 0),
        dt.datetime(2024, 2, 29, 12, 30, 1),
        dt.datetime(2024, 1, 1, 0, 5, 0),
    ]
    assert {message["role"] for message in messages} == {"user"}
    assert [message["speaker"] for message in messages] == ["Olek", "Ines", "Ines"]


def test_captions_stand_in_brackets_before_the_text() -> None:
    texts = [item.message["content"] for item in source([sample()]).items]
    assert texts == ["[a red kite] Look at this.", "[a lighthouse]", "Happy new year!"]


def test_one_conversation_is_chosen_by_name() -> None:
    both = [sample("walk-1"), sample("walk-2")]
    assert next(source(both, sample="walk-2").items).message["key"] == "walk-2:D2:1"
    with pytest.raises(hmem.InvalidInput, match=r"several conversations; choose one .* walk-1, walk-2"):
        source(both)
    with pytest.raises(hmem.InvalidInput, match=r"no sample 'walk-3'; choose one .* walk-1, walk-2"):
        source(both, sample="walk-3")


def test_one_sample_alone_is_read_without_its_list() -> None:
    assert source(sample()).total == 3


def test_a_sample_makes_no_sense_elsewhere() -> None:
    with pytest.raises(hmem.InvalidInput, match="no LoCoMo file"):
        source([{"content": "a"}], sample="walk-1")


@pytest.mark.parametrize(
    "time", ["13:00 pm on 8 May, 2023", "1:00 pm on 31 April, 2023", "yesterday", None, 5]
)
def test_a_time_that_cannot_be_read_is_named(time: Any) -> None:
    with pytest.raises(hmem.InvalidInput, match="the time of session_2 of walk-1 in talks"):
        list(source([sample(session_2_date_time=time)]).items)


@pytest.mark.parametrize("session", ["text", [{"text": "a"}], ["text"], {}])
def test_a_session_that_is_none_is_named(session: Any) -> None:
    with pytest.raises(hmem.InvalidInput, match="session_2 of walk-1 in talks"):
        list(source([sample(session_2=session)]).items)


def test_months_do_not_depend_on_the_locale() -> None:
    before = locale.setlocale(locale.LC_TIME)
    try:
        for name in ("de_DE.UTF-8", "pl_PL.UTF-8", "C.UTF-8"):
            try:
                locale.setlocale(locale.LC_TIME, name)
            except locale.Error:
                continue
            assert next(source([sample()]).items).message["at"].month == 2
    finally:
        locale.setlocale(locale.LC_TIME, before)
