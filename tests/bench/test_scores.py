"""Scores of answers, worked out by hand."""

from __future__ import annotations

import math

import pytest

from bench.quality.scores import bleu1, normalised, official, set_f1, token_f1


def test_normalised_as_the_official_code_does() -> None:
    assert normalised("The  Dog, and a cat's (8) toys!") == "dog cats 8 toys"
    assert normalised("an and the") == ""
    assert normalised("and/or") == "andor"  # punctuation goes before the articles


def test_token_f1_stems_and_counts_repetitions() -> None:
    assert token_f1("running dogs", "the run, a dog") == 1
    # Two of three words given are among the two expected: 2/3 and 2/2.
    assert token_f1("a red red car", "red car") == pytest.approx(0.8)
    assert token_f1("", "red car") == token_f1("blue", "red") == token_f1("the", "the") == 0


def test_official_by_category() -> None:
    # Multi-hop: the best part for each that is expected: 1 and 0.
    assert official("painting, pottery", "pottery, camping", 1) == 0.5
    assert official("pottery", "pottery, camping", 1) == 0.5
    assert official("camping, pottery", "pottery, camping", 1) == 1
    # Commas do not split other categories.
    assert official("May 7, 2023", "7 May 2023", 2) == 1
    assert official("yes", "Yes; she said so", 3) == 1
    assert official("yes", "Yes; she said so", 4) == pytest.approx(2 / 5)
    for answer, score in (("Not mentioned in the text", 1), ("No information available.", 1), ("Porto", 0)):
        assert official(answer, "Porto", 5) == score


def test_set_f1_counts_a_word_once_and_does_not_stem() -> None:
    assert set_f1("The red, red car.", "the red car") == 1
    assert set_f1("dogs", "dog") == 0
    assert set_f1("a b c", "c d") == pytest.approx(0.4)
    assert set_f1("", "a") == 0


def test_bleu1_by_hand() -> None:
    assert bleu1("the red car", "the red car") == 1
    assert bleu1("the the the", "the cat sat") == pytest.approx(1 / 3)  # clipped
    assert bleu1("red car", "the red car now") == pytest.approx(math.exp(1 - 4 / 2))  # brevity
    assert bleu1("", "red") == bleu1("red", "") == 0
