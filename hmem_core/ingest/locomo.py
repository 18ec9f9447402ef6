"""LoCoMo: long conversations of two people over months, one JSON file for several of them.

[{"sample_id": "conv-1", "conversation": {
    "speaker_a": "Ann", "speaker_b": "Ben",
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hello", "blip_caption": "a photo of …"}]}}]
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hmem_core.errors import InvalidInput
from hmem_core.ingest.source import Item, Source

__all__ = ["conversation", "fits", "samples"]

TURN_SECONDS = 1
"""A session has one time; its turns are given times so far apart, which keeps their order."""

_SESSION = re.compile(r"session_(\d+)")
_TIME = re.compile(
    r"\s*(\d{1,2}):(\d\d)\s*([ap])m\s+on\s+(\d{1,2})\s+(\w{3})\w*,?\s+(\d{4})\s*", re.IGNORECASE
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def fits(document: Any) -> bool:
    """Whether this looks like a LoCoMo file, or like one sample of it."""
    first = document[0] if isinstance(document, list) and document else document
    return isinstance(first, dict) and isinstance(first.get("conversation"), dict)


def conversation(document: Any, name: str, sample: str | None) -> Source:
    """The turns of one conversation: the one named `sample`, or the only one.

    A turn's key is ``SAMPLE:DIALOGUE_ID``; the caption of an image stands in brackets before its text. Times
    are naive, as they are in the file.

    Raises:
        InvalidInput: it is no LoCoMo file, `sample` is not in it, or it must be named.
    """
    found = _samples(document, name)
    if sample is None and len(found) == 1:
        (sample,) = found
    if sample not in found:
        said = "holds several conversations" if sample is None else f"has no sample {sample!r}"
        raise InvalidInput(f"{name} {said}; choose one of the samples {', '.join(found)}")
    items = list(_turns(found[sample], sample, name))
    return Source("locomo", iter(items), len(items))


def samples(document: Any, name: str) -> list[str]:
    """The names of the conversations.

    Raises:
        InvalidInput: it is no LoCoMo file.
    """
    return list(_samples(document, name))


def _samples(document: Any, name: str) -> dict[str, Any]:
    if not fits(document):
        raise InvalidInput(f"{name} is no LoCoMo file: it has no samples with a 'conversation'")
    return {
        str(entry.get("sample_id", number)): entry["conversation"]
        for number, entry in enumerate(document if isinstance(document, list) else [document], 1)
        if fits(entry)
    }


def _turns(sessions: Mapping[str, Any], sample: str, name: str) -> Iterator[Item]:
    numbers = sorted(int(found[1]) for key in sessions if (found := _SESSION.fullmatch(key)))
    for session in (f"session_{number}" for number in numbers):
        where = f"{session} of {sample} in {name}"
        start = _time(sessions.get(f"{session}_date_time"), where)
        turns = sessions[session]
        if not isinstance(turns, list):
            raise InvalidInput(f"{where} is no list of turns")
        for place, turn in enumerate(turns):
            yield _item(turn, start + dt.timedelta(seconds=TURN_SECONDS * place), session, sample, where)


def _item(turn: Any, at: dt.datetime, session: str, sample: str, where: str) -> Item:
    if not isinstance(turn, dict) or not isinstance(turn.get("dia_id"), str):
        raise InvalidInput(f"a turn in {where} has no 'dia_id'")
    text, caption = turn.get("text") or "", turn.get("blip_caption")
    message = {
        "role": "user",
        "speaker": turn.get("speaker"),
        "content": f"[{caption}] {text}".rstrip() if caption else text,
        "session": session,
        "at": at,
        "key": f"{sample}:{turn['dia_id']}",
    }
    return Item(f"{turn['dia_id']} in {where}", message)


def _time(value: Any, where: str) -> dt.datetime:
    # Not strptime: its names of months depend on the locale of the process.
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    try:
        if found is None or not 1 <= int(found[1]) <= 12:
            raise ValueError(value)
        hour, minute, half, day, month, year = found.groups()
        hours = int(hour) % 12 + (12 if half in "pP" else 0)
        return dt.datetime(int(year), _MONTHS.index(month.lower()) + 1, int(day), hours, int(minute))
    except ValueError as error:
        raise InvalidInput(
            f"the time of {where} is {value!r}; it must look like '1:56 pm on 8 May, 2023'"
        ) from error
