from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hmem_core as hmem
from hmem_core.times import datetime_of, interval, micros, zone


@given(st.datetimes(timezones=st.just(dt.UTC)))
def test_every_utc_time_comes_back(time: dt.datetime) -> None:
    assert datetime_of(micros(time, dt.UTC)) == time


def test_folds_and_gaps_of_local_time() -> None:
    lisbon = zone("Europe/Lisbon")
    first = micros(dt.datetime(2025, 10, 26, 1, 30), lisbon)
    second = micros(dt.datetime(2025, 10, 26, 1, 30, fold=1), lisbon)
    assert second - first == 3_600_000_000
    gap = micros(dt.datetime(2026, 3, 29, 1, 30), lisbon)
    assert datetime_of(gap) == dt.datetime(2026, 3, 29, 1, 30, tzinfo=dt.UTC)


def test_zone_names() -> None:
    assert zone("UTC") is dt.UTC
    assert zone("Asia/Kolkata") == ZoneInfo("Asia/Kolkata")
    for name in ("Mars/Olympus", "", "../etc/passwd", 3):
        with pytest.raises(hmem.InvalidInput, match="IANA"):
            zone(name)  # type: ignore[arg-type]


def test_intervals() -> None:
    assert interval(("2026-01-01", "2026-01-01"), dt.UTC) == (
        micros("2026-01-01T00:00Z", dt.UTC),
        micros("2026-01-02T00:00Z", dt.UTC),
    )
    assert interval((None, dt.date(9999, 12, 31)), dt.UTC)[1] > 0
    low, high = interval((None, None), dt.UTC)
    assert low < micros("0001-01-01", dt.UTC) < micros("9999-12-31", dt.UTC) < high


def test_a_day_of_25_hours_is_included_whole() -> None:
    low, high = interval(("2025-10-26", "2025-10-26"), zone("Europe/Lisbon"))
    assert high - low == 25 * 3_600_000_000
