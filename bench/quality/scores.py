"""How good an answer in words is, without a model: F1 and BLEU-1 as papers on LoCoMo compute them.

The official scores are those of the LoCoMo paper (arXiv 2402.17753). Words are stemmed with the original
Porter algorithm; NLTK's default one, which the official code calls, treats a few words otherwise ("dying",
"skies").
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from statistics import fmean

import Stemmer

__all__ = ["bleu1", "normalised", "official", "set_f1", "token_f1"]

_ARTICLES = re.compile(r"\b(a|an|the|and)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ENDS = str.maketrans(dict.fromkeys(".,!?", " "))
_ABSTAINED = re.compile(r"not mentioned|no information available")
_STEMMER = Stemmer.Stemmer("porter")


def normalised(text: str) -> str:
    """Lower case, without punctuation and articles ("and" counts as one, as in the official code)."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _stems(text: str) -> list[str]:
    stems: list[str] = _STEMMER.stemWords(normalised(text).split())
    return stems


def token_f1(answer: str, expected: str) -> float:
    """F1 of the stemmed words, each counted as often as it occurs."""
    return _f1(Counter(_stems(answer)), Counter(_stems(expected)))


def set_f1(answer: str, expected: str) -> float:
    """F1 of the sets of lower-case words, as A-MEM's and HiGMem's evaluations take it (arXiv 2604.18349): a
    word counts once, nothing is stemmed, articles stay, and only . , ! ? are no part of a word."""
    said, wanted = (set(text.lower().translate(_ENDS).split()) for text in (answer, expected))
    return _f1(Counter(said), Counter(wanted))


def bleu1(answer: str, expected: str) -> float:
    """BLEU with words alone: their clipped precision, times the penalty for brevity."""
    said, wanted = _words(answer), _words(expected)
    if not said or not wanted:
        return 0.0
    common = (Counter(said) & Counter(wanted)).total()
    brevity = 1.0 if len(said) > len(wanted) else math.exp(1 - len(wanted) / len(said))
    return brevity * common / len(said)


def official(answer: str, expected: str, category: int) -> float:
    """The official score of an answer to a question of that category.

    Multi-hop (1): answers are split at commas; for each expected part the best F1 of a given one, averaged.
    Open-domain (3): of the expected answer, what stands before a semicolon. Adversarial (5): 1 if the answer
    says that it is not mentioned. Others: `token_f1`.
    """
    if category == 5:
        return float(bool(_ABSTAINED.search(answer.lower())))
    if category == 3:
        expected = expected.split(";")[0].strip()
    if category != 1:
        return token_f1(answer, expected)
    given = [part.strip() for part in answer.split(",")]
    return fmean(max(token_f1(part, wanted.strip()) for part in given) for wanted in expected.split(","))


def _words(text: str) -> list[str]:
    """Lower-case words without the punctuation around them."""
    return re.findall(r"\w+(?:['’.:-]\w+)*", text.lower())


def _f1(said: Counter[str], wanted: Counter[str]) -> float:
    common = (said & wanted).total()
    if not common:
        return 0.0
    precision, recall = common / said.total(), common / wanted.total()
    return 2 * precision * recall / (precision + recall)
