"""Baselines without a tree."""

from __future__ import annotations

from collections.abc import Sequence

import bm25s
import numpy as np
import Stemmer

from bench.quality.baselines.base import Asked, Corpus, Find, FloatArray, best

__all__ = ["FUSED_AT", "bm25", "dense", "full_context", "rrf"]

FUSED_AT = 60
"""k of reciprocal rank fusion, as its paper has it."""
_SETTINGS = {"stopwords": "en", "return_ids": False, "show_progress": False}


def dense(corpus: Corpus) -> Find:
    """Turns by their cosine with the question."""

    def find(asked: Asked) -> list[int]:
        return best(corpus.vectors[: asked.before] @ asked.vector, asked.k)

    return find


def bm25(corpus: Corpus) -> Find:
    """Turns by BM25, as `bm25s` computes it by default (Lucene's, k1 1.5, b 0.75), over stems of Snowball's
    English stemmer without the library's stop words. Only turns that share a stem with the question."""
    score = _Scorer(corpus)

    def find(asked: Asked) -> list[int]:
        return _positive(score(asked.text)[: asked.before])[: asked.k]

    return find


def rrf(corpus: Corpus) -> Find:
    """Reciprocal rank fusion (Cormack et al. 2009) of the two above: the sum of 1 / (60 + rank) over the
    rankings that a turn is in."""
    score = _Scorer(corpus)

    def find(asked: Asked) -> list[int]:
        cosines = corpus.vectors[: asked.before] @ asked.vector
        fused = np.zeros(cosines.size)
        for ranking in (best(cosines, cosines.size), _positive(score(asked.text)[: asked.before])):
            fused[ranking] += 1 / (FUSED_AT + np.arange(1, len(ranking) + 1))
        return best(fused, asked.k)

    return find


def full_context(corpus: Corpus) -> Find:
    """All turns, however few are wanted."""
    return lambda asked: list(range(min(asked.before, len(corpus.texts))))


class _Scorer:
    """BM25 of every turn for a question."""

    def __init__(self, corpus: Corpus) -> None:
        self._stemmer = Stemmer.Stemmer("english")
        self._turns = len(corpus.texts)
        self._index = bm25s.BM25()
        stems = self._stems(corpus.texts)
        self._empty = not any(stems)
        if not self._empty:
            self._index.index(stems, show_progress=False)

    def __call__(self, text: str) -> FloatArray:
        (stems,) = self._stems([text])
        if self._empty or not stems:
            return np.zeros(self._turns, np.float32)
        return np.asarray(self._index.get_scores(stems), np.float32)

    def _stems(self, texts: Sequence[str]) -> list[list[str]]:
        return list(bm25s.tokenize(list(texts), stemmer=self._stemmer, **_SETTINGS))


def _positive(scores: FloatArray) -> list[int]:
    return best(scores, int(np.count_nonzero(scores > 0)))
