"""Times in texts. The reference is Wednesday, 15 May 2024, 10:30 in UTC unless a test says otherwise."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import zoneinfo

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hmem_core.errors import InvalidInput
from hmem_core.retrieval.understanding import When, prior, resolve
from hmem_core.retrieval.understanding.lexicon import LANGUAGES, lexicon
from hmem_core.retrieval.understanding.words import LIMIT
from hmem_core.times import datetime_of, micros

NOW = "2024-05-15T10:30"
DAY = 86_400_000_000


def shown(when: When) -> str:
    """``first day/last day``, for times that are whole days."""
    start, end = datetime_of(when.start), datetime_of(when.end - 1)
    return f"{start.date()}/{end.date()}"


def read(text: str, now: str = NOW, **options: object) -> list[str]:
    return [shown(one) for one in resolve(text, now, **options)]  # type: ignore[arg-type]


def days(first: str, last: str | None = None) -> list[str]:
    return [f"{first}/{last or first}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did we cook on 2023-11-02?", days("2023-11-02")),
        ("the trip on 2 November 2023", days("2023-11-02")),
        ("the trip on November 2nd, 2023", days("2023-11-02")),
        ("the trip on the 2nd of November", days("2023-11-02")),
        ("Nov. 2, 2023 was cold", days("2023-11-02")),
        ("Thursday, November 2, 2023", days("2023-11-02")),
        ("2023/11/02", days("2023-11-02")),
        ("02.11.2023", days("2023-11-02")),
        ("11/02/2023", days("2023-11-02")),
        ("13/02/2023", days("2023-02-13")),
        ("who came at 2023-11-02T17:45:00Z", days("2023-11-02")),
        ("2023-11", days("2023-11-01", "2023-11-30")),
        ("November 2-5, 2023", days("2023-11-02", "2023-11-05")),
        ("30 February 2023", days("2023-02-01", "2023-02-28")),
        ("February 2024", days("2024-02-01", "2024-02-29")),
        ("Christmas 2022", days("2022-12-25")),
        ("What happened in October?", days("2023-10-01", "2023-10-31")),
        ("What happened in May?", days("2024-05-01", "2024-05-31")),
        ("in October last year", days("2023-10-01", "2023-10-31")),
        ("in 2021", days("2021-01-01", "2021-12-31")),
        ("2019-2021", days("2019-01-01", "2021-12-31")),
        ("in the 1980s", days("1980-01-01", "1989-12-31")),
        ("back in the '80s", days("1980-01-01", "1989-12-31")),
        ("Q3 2022", days("2022-07-01", "2022-09-30")),
        ("the third quarter of 2022", days("2022-07-01", "2022-09-30")),
        ("summer 2022", days("2022-06-01", "2022-08-31")),
        ("in the winter of 2022", days("2022-12-01", "2023-02-28")),
        ("early 2022", days("2022-01-01", "2022-05-01")),
        ("late October 2023", days("2023-10-21", "2023-10-31")),
        ("the first week of October 2023", days("2023-10-01", "2023-10-07")),
        ("the second weekend of October 2023", days("2023-10-14", "2023-10-15")),
        ("the last weekend of October 2023", days("2023-10-28", "2023-10-29")),
        ("the week of October 11th, 2023", days("2023-10-09", "2023-10-15")),
    ],
)
def test_absolute_times(text: str, expected: list[str]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did I eat today?", days("2024-05-15")),
        ("Bo's visit yesterday", days("2024-05-14")),
        ("yesterday's visit", days("2024-05-14")),
        ("the day before yesterday", days("2024-05-13")),
        ("tomorrow", days("2024-05-16")),
        ("last week", days("2024-05-06", "2024-05-12")),
        ("this week", days("2024-05-13", "2024-05-19")),
        ("next week", days("2024-05-20", "2024-05-26")),
        ("the week before last", days("2024-04-29", "2024-05-05")),
        ("what did we do the week before?", days("2024-05-06", "2024-05-12")),
        ("last month", days("2024-04-01", "2024-04-30")),
        ("last year", days("2023-01-01", "2023-12-31")),
        ("last quarter", days("2024-01-01", "2024-03-31")),
        ("last weekend", days("2024-05-11", "2024-05-12")),
        ("this weekend", days("2024-05-18", "2024-05-19")),
        ("last Friday", days("2024-05-10")),
        ("on Wednesday", days("2024-05-15")),
        ("last Wednesday", days("2024-05-08")),
        ("next Wednesday", days("2024-05-22")),
        ("Tuesday last week", days("2024-05-07")),
        ("He came in. Last week it rained.", days("2024-05-06", "2024-05-12")),
        ("last October", days("2023-10-01", "2023-10-31")),
        ("last summer", days("2023-06-01", "2023-08-31")),
        ("in the summer", days("2023-06-01", "2023-08-31")),
        ("3 days ago", days("2024-05-12")),
        ("three weeks ago", days("2024-04-24")),
        ("a month ago", days("2024-04-15")),
        ("10 years ago", days("2014-05-15")),
        ("2w ago", days("2024-05-01")),
        ("a couple of weeks ago", days("2024-04-24", "2024-05-08")),
        ("a few days ago", days("2024-05-10", "2024-05-13")),
        ("in two weeks", days("2024-05-29")),
        ("the past three days", days("2024-05-12", "2024-05-15")),
        ("two days before 2023-11-02", days("2023-10-31")),
        ("the week after November 2, 2023", days("2023-11-06", "2023-11-12")),
        ("yesterday or last month", ["2024-05-14/2024-05-14", "2024-04-01/2024-04-30"]),
    ],
)
def test_times_relative_to_now(text: str, expected: list[str]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("this morning", ("2024-05-15T05", "2024-05-15T12")),
        ("last night", ("2024-05-14T18", "2024-05-15T06")),
        ("yesterday evening", ("2024-05-14T17", "2024-05-14T23")),
        ("on Monday afternoon", ("2024-05-13T12", "2024-05-13T18")),
    ],
)
def test_parts_of_a_day(text: str, hours: tuple[str, str]) -> None:
    (one,) = resolve(text, NOW)
    assert (one.start, one.end) == tuple(micros(f"{hour}:00", dt.UTC) for hour in hours)
    assert one.precision == "part"


@pytest.mark.parametrize(
    ("text", "bound", "expected"),
    [
        ("between March and May 2023", "between", "2023-03-01/2023-05-31"),
        ("between October and January", "between", "2023-10-01/2024-01-31"),
        ("between October 2022 and January", "between", "2022-10-01/2024-01-31"),
        ("from 3 to 5 March 2023", "between", "2023-03-03/2023-03-05"),
        ("between 2 and 5 November", "between", "2023-11-02/2023-11-05"),
        ("from March 3 to March 5", "between", "2024-03-03/2024-03-05"),
        ("2023-03-01 to 2023-03-04", "between", "2023-03-01/2023-03-04"),
        ("since March", "since", "2024-03-01/2024-05-15"),
        ("from March onwards", "since", "2024-03-01/2024-05-15"),
        ("after March 2024", "after", "2024-04-01/2024-05-15"),
        ("before March 2024", "before", "0001-01-01/2024-02-29"),
        ("until March 2024", "until", "0001-01-01/2024-03-31"),
        ("in March", "in", "2024-03-01/2024-03-31"),
    ],
)
def test_ranges_say_that_they_are_meant(text: str, bound: str, expected: str) -> None:
    (one,) = resolve(text, NOW)
    assert (one.bound, shown(one), one.hard) == (bound, expected, bound != "in")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("letzte Woche", days("2024-05-06", "2024-05-12")),
        ("was geschah vor drei Tagen?", days("2024-05-12")),
        ("letzten Sommer", days("2023-06-01", "2023-08-31")),
        ("was war im Mai?", days("2024-05-01", "2024-05-31")),
        ("im Oktober 2023", days("2023-10-01", "2023-10-31")),
        ("vor Oktober 2023", days("0001-01-01", "2023-09-30")),
        ("la semaine dernière", days("2024-05-06", "2024-05-12")),
        ("il y a trois jours", days("2024-05-12")),
        ("le 2 novembre 2023", days("2023-11-02")),
        ("lundi dernier", days("2024-05-13")),
        ("¿qué comimos ayer?", days("2024-05-14")),
        ("hace tres días", days("2024-05-12")),
        ("el verano pasado", days("2023-06-01", "2023-08-31")),
        ("2 de noviembre de 2023", days("2023-11-02")),
        ("tre giorni fa", days("2024-05-12")),
        ("no mês passado", days("2024-04-01", "2024-04-30")),
        ("drie dagen geleden", days("2024-05-12")),
        ("три дня назад", days("2024-05-12")),
        ("на прошлой неделе", days("2024-05-06", "2024-05-12")),
        ("2 ноября 2023 года", days("2023-11-02")),
        ("三天前", days("2024-05-12")),
        ("我们上周三吃了什么", days("2024-05-08")),
        ("2023年11月2日去了哪里", days("2023-11-02")),
        ("去年十月", days("2023-10-01", "2023-10-31")),
        ("先週の月曜日", days("2024-05-06")),
        ("三日前", days("2024-05-12")),
        ("지난주에 뭐 먹었어", days("2024-05-06", "2024-05-12")),
        ("3 gün önce", days("2024-05-12")),
        ("3 dni temu", days("2024-05-12")),
        ("för 3 dagar sedan", days("2024-05-12")),
    ],
)
def test_other_languages(text: str, expected: list[str]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "?!",
        "May I come in?",
        "It may rain",
        "They march on",
        "the fall of the empire",
        "spring onions",
        "He said he sat down",
        "Python 3.11 and numpy 2.0.1",
        "call 555-0199 or +1 202-555-0147",
        "2000 tokens, $2023 and #1999",
        "room 2024b",
        "the second week",
        "ratio 1/2",
        "10.0.0.1",
        "aéb 12345-67890",
        "Hier ist mein Hund",  # French "hier" is yesterday
        "ma maison est grande",  # Hungarian "ma" is today
        "日本語で話す",
        "What did Marco say in Marco's car?",  # Portuguese "março", without its accent
        "want to see a film?",  # Estonian "see a", this year
        "I let him in. Last",
        "January 0000",
        "2023-13-45",
        "十亿年前",
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert read(text) == []


def test_a_name_is_no_month() -> None:
    assert read("What did April cook?") == days("2024-04-01", "2024-04-30")
    assert read("What did April cook?", names={"april"}) == []
    assert read("What did April cook in April?", names={"april"}) == days("2024-04-01", "2024-04-30")
    assert read("What did April cook on April 3?", names={"april"}) == days("2024-04-03")


def test_the_order_of_day_and_month_is_an_option() -> None:
    assert read("03/04/2023") == days("2023-03-04")
    assert read("03/04/2023", order="dmy") == days("2023-04-03")
    assert read("03.04.2023") == read("3.4.2023") == days("2023-04-03")
    assert read("25/04/2023") == read("04/25/2023", order="dmy") == days("2023-04-25")
    with pytest.raises(InvalidInput, match="'ymd'"):
        resolve("03/04/2023", NOW, order="ymd")  # type: ignore[arg-type]


def test_the_span_is_that_of_the_words() -> None:
    text = "¿Adónde fuimos la semana pasada? Ａnd  in  May 2023"
    assert [one.text for one in resolve(text, NOW)] == ["la semana pasada", "in  May 2023"]
    for one in resolve(text, NOW):
        assert text[slice(*one.span)] == one.text


def test_days_are_those_of_the_zone() -> None:
    lisbon, tokyo = zoneinfo.ZoneInfo("Europe/Lisbon"), zoneinfo.ZoneInfo("Asia/Tokyo")
    late = "2024-05-15T23:30Z"
    (here,), (there,) = resolve("today", late, lisbon), resolve("today", late, tokyo)
    assert here.start == micros("2024-05-15T23:00+00:00", dt.UTC)  # there it is half past midnight already
    assert there.start == micros("2024-05-15T15:00Z", dt.UTC)


@pytest.mark.parametrize(("day", "hours"), [("2024-03-31", 23), ("2024-10-27", 25)])
def test_a_day_when_clocks_change(day: str, hours: int) -> None:
    (one,) = resolve(day, NOW, zoneinfo.ZoneInfo("Europe/Lisbon"))
    assert one.end - one.start == hours * 3_600_000_000


def test_the_turns_own_time_counts() -> None:
    said = micros("2022-01-05T09:00", dt.UTC)
    assert [shown(one) for one in resolve("We moved last week.", said)] == days("2021-12-27", "2022-01-02")


def test_a_reference_outside_the_calendar() -> None:
    for moment in (-(2**63), 2**63 - 1, micros("0001-01-01", dt.UTC), micros("9999-12-31T23:59:59", dt.UTC)):
        for zone in (dt.UTC, dt.timezone(dt.timedelta(hours=14)), dt.timezone(dt.timedelta(hours=-12))):
            for text in (
                "last week",
                "next year",
                "in March",
                "last winter",
                "five years ago",
                "before 1900",
            ):
                assert all(one.start < one.end for one in resolve(text, moment, zone))


def test_only_the_beginning_of_a_text_is_read() -> None:
    assert read("x " * LIMIT + "last week") == []
    assert read("last week " + "x" * 5_000_000) == days("2024-05-06", "2024-05-12")


_PIECES = """
last next this the a few couple of two 3 3rd 31 99 2023 9999 0000 '90s week weeks month may May March day
weekend year years ago before after since until between and to from in on early late summer of Friday
morning Q2 quarter first second half past - – / . , ? 03/04/2023 2023-02-30 0001-01-01 上周 三 天 前 年 月
日 去年 第二 hace vor il y a semana pasada 지난 주 назад 一 十 亿 百 ５ ٣ christmas onwards now century decade
"""
_PHRASES = st.sampled_from(_PIECES.split())
_MOMENTS = st.integers(-(2**63), 2**63 - 1) | st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
_ZONES = st.sampled_from([dt.UTC, zoneinfo.ZoneInfo("Europe/Lisbon"), zoneinfo.ZoneInfo("Pacific/Apia")])


@given(st.lists(_PHRASES, max_size=14).map(" ".join) | st.text(max_size=80), _MOMENTS, _ZONES)
@example("century before 0001-01-01", 0, dt.UTC)
@example("\ud800 last week \0", 0, dt.UTC)
def test_whatever_is_said_a_time_has_a_length(text: str, moment: int, zone: dt.tzinfo) -> None:
    end = 0
    for one in resolve(text, moment, zone):
        assert one.start < one.end
        assert one.width > 0
        assert end <= one.span[0] < one.span[1] <= len(text)
        end = one.span[1]
        low, high = one.between
        assert high is not None
        assert low is None or low < high
        near = prior([one], np.array([one.start, one.end - 1, moment], np.int64))
        assert near[:2].tolist() == [1.0, 1.0]
        assert np.isfinite(near).all()


def test_the_prior_falls_off_with_the_width() -> None:
    (one,) = resolve("last week", NOW)
    at = np.array([one.start, one.end - 1, one.end - 1 + 7 * DAY, one.start - 14 * DAY], np.int64)
    column = prior([one], at)
    assert column.dtype == np.float32
    np.testing.assert_allclose(column, [1, 1, np.exp(-1), np.exp(-2)], rtol=1e-6)
    assert prior([], at).tolist() == [0, 0, 0, 0]
    both = prior(resolve("last week or in 2023", NOW), at)
    assert (both >= column).all()


def test_what_was_counted_in_round_numbers_is_wider() -> None:
    (exact,), (vague,) = resolve("2024-04-24", NOW), resolve("three weeks ago", NOW)
    assert (exact.start, exact.end) == (vague.start, vague.end)
    assert (exact.width, vague.width) == (DAY, 7 * DAY)
    assert vague.between[0] == datetime_of(vague.start - 7 * DAY // 2)


def test_every_language_that_is_named_has_a_table() -> None:
    book = lexicon()
    found = {entry.language for entries in book._book.values() for entry in entries}
    assert found == set(LANGUAGES)


def test_nothing_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, hmem_core.retrieval.understanding as u\n"
        "assert not any(name.startswith('_hmem_dates') for name in sys.modules)\n"
        "u.resolve('hier', 0)\n"
        "assert 'dateparser' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
