"""Cutting texts into terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmem_core.columns.terms import Analyzer
from hmem_core.errors import InvalidInput

english = Analyzer()


def terms(text: str, analyzer: Analyzer = english, query: bool = False) -> list[str]:
    return [term for term, _ in analyzer.words(text, query=query)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The boilers are running", ["boiler", "run"]),
        ("Ann's dogs don’t bark", ["ann", "dog", "bark"]),
        ("CAFÉ café cafe", ["cafe"] * 3),
        ("ﬁne Ｗｉｄｅ", ["fine", "wide"]),
        ("KT 48213 R, at 07:12", ["kt", "48213", "r", "07", "12"]),
        ("the of and who", []),
        ("AND OR NOT ( ) * : \" '", []),
        ("", []),
        ("🧠 and 🇵🇹!", ["🧠", "🇵🇹"]),
        ("кошки и собаки", ["кошк", "собак"]),
        ("猫", ["猫"]),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我们上周搬到了波尔图", "波尔图"),
        ("我们养了一只猫", "猫"),
        ("先週ポルトに引っ越しました", "ポルト"),
        ("เราย้ายไปปอร์โตเมื่อสัปดาห์ที่แล้ว", "ปอร์โต"),
        ("انتقلنا إلى بورتو الأسبوع الماضي", "بورتو"),
        ("Мы переехали в Порту на прошлой неделе", "переезд переехал"),
        ("지난주에 포르투로 이사했어요", "포르투"),
        ("हम पिछले हफ्ते पोर्टो चले गए", "पोर्टो"),
        ("so happy 🎉 today", "🎉"),
        ("ΟΙ ΓΑΤΕΣ κοιμούνται", "γατες"),
    ],
)
def test_a_query_shares_terms_with_a_text_of_any_script(text: str, query: str) -> None:
    assert set(terms(query, query=True)) & set(terms(text))


def test_the_language_decides_how_latin_words_are_stemmed() -> None:
    portuguese = Analyzer("portuguese")
    assert terms("as casas e a casa", portuguese) == ["cas", "cas"]
    with pytest.raises(InvalidInput, match="klingon"):
        Analyzer("klingon")


def test_single_characters_do_not_lengthen_a_text() -> None:
    hashes, counts, length = english.count("波尔图")
    assert (len(hashes), counts.tolist(), length) == (5, [1.0] * 5, 2)


@given(st.text())
def test_any_text_can_be_counted(text: str) -> None:
    hashes, counts, length = english.count(text)
    assert (hashes[1:] > hashes[:-1]).all()
    assert (counts >= 1).all()
    assert 0 <= length <= counts.sum()
    assert set(english.query(text).tolist()) <= set(hashes.tolist())
