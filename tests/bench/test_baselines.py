"""Baselines, on turns so few that their trees and ranks are worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.quality.baselines import BASELINES, Corpus
from bench.quality.baselines.base import Asked
from bench.quality.baselines.collapsed import collapsed, unit
from bench.quality.baselines.memtree import Node, grown
from bench.quality.baselines.raptor import DIMENSIONS, clusters, layers
from bench.quality.finding import Beside
from tests.helpers import hashed, hashing_encoder, open_memory

TEXTS = ["Ann: the red boat", "Bob: it rains", "Ann: boats, boats and a red sail", "Bob: the and"]


def corpus(texts: list[str]) -> Corpus:
    vectors = hashed(texts)
    return Corpus(texts, unit(vectors))


def asked(text: str, k: int, before: int = 10**9) -> Asked:
    return Asked(text, corpus([text]).vectors[0], k, before)


@pytest.mark.parametrize("name", BASELINES)
def test_only_what_came_before_is_found_and_nothing_twice(name: str) -> None:
    find = BASELINES[name](corpus(TEXTS))
    assert set(find(asked("red boat", 4))) <= {0, 1, 2, 3}
    for before in range(5):
        found = find(asked("red boat", 4, before))
        assert len(set(found)) == len(found)
        assert all(place < before for place in found)
    assert find(asked("red boat", 1))[:1] == [0]
    assert BASELINES[name](Corpus([], np.zeros((0, 32), np.float32)))(asked("red boat", 4)) == []


def test_bm25_stems_and_drops_stop_words() -> None:
    find = BASELINES["bm25"](corpus(TEXTS))
    assert sorted(find(asked("Boat?", 4))) == [0, 2]
    assert find(asked("the and", 4)) == []
    assert find(asked("", 4)) == []
    assert BASELINES["bm25"](corpus(["the", "and"]))(asked("boat", 4)) == []


def test_ranks_are_fused() -> None:
    # By vectors 0, 1, 2; by words 2 alone: 1/61 and 1/62 against 1/63 + 1/61.
    texts = ["Ann: sea", "Bob: sky", "Ann: boat"]
    vectors = np.array([[1, 0], [0.8, 0.6], [0.6, 0.8]], np.float32)
    question = Asked("boat", np.array([1, 0], np.float32), 3, 3)
    assert BASELINES["plain-dense"](Corpus(texts, vectors))(question) == [0, 1, 2]
    assert BASELINES["rrf"](Corpus(texts, vectors))(question) == [2, 0, 1]


def test_everything_is_shown_however_little_is_wanted() -> None:
    assert BASELINES["full-context"](corpus(TEXTS))(asked("red boat", 1)) == [0, 1, 2, 3]


def test_groups_give_their_turns_nearest_first() -> None:
    vectors = np.array([[0.6, 0.8], [0.6, -0.8], [0, 1]], np.float32)
    find = collapsed(Corpus(["a", "b", "c"], vectors), [np.array([1, 0])], np.array([[1, 0]], np.float32))
    east = np.array([1, 0], np.float32)
    assert find(Asked("?", east, 2, 3)) == [1, 0]  # of the same cosine: in the order of the group
    assert find(Asked("?", east, 3, 3)) == [1, 0, 2]
    assert find(Asked("?", east, 3, 1)) == [0]


def shape(node: Node) -> object:
    return [shape(child) for child in node.children] if node.children else node.turns[0]


def test_memtree_by_hand() -> None:
    def at(*degrees: float) -> np.ndarray:
        angles = np.radians(degrees)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    # Threshold at the root 0.5: within 60 degrees. The second joins the first, the third begins anew.
    assert shape(grown(at(0, 20, 90), 0.5, 0.0)) == [[0, 1], 2]
    # The fourth goes to the group around 10 degrees, and there to the second, at 20.
    root = grown(at(0, 20, 90, 25), 0.5, 0.0)
    assert shape(root) == [[0, [1, 3]], 2]
    group = root.children[0]
    assert group.turns == [0, 1, 3]
    assert group.sum == pytest.approx(at(0, 20, 25).sum(0), abs=1e-6)
    # One level down the threshold is 0.5 e^0.69 = 1, so nothing is similar enough any more.
    assert shape(grown(at(0, 20, 90, 25), 0.5, math.log(2.01))) == [[0, 1, 3], 2]
    assert shape(grown(at(0, 0, 0), 0.5, 0.0)) == [[[0, 2], 1]]


def test_raptor_puts_topics_together() -> None:
    rng = np.random.default_rng(3)
    centres = np.eye(16, dtype=np.float32)[:2]
    vectors = np.repeat(centres, 20, axis=0) + rng.normal(0, 0.05, (40, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = clusters(vectors)
    assert sorted({turn for cluster in found for turn in cluster}) == list(range(40))
    assert all(cluster.max() < 20 or cluster.min() >= 20 for cluster in found)
    groups = layers(vectors)
    assert len(groups) >= len(found)
    assert all(np.all(np.diff(group) > 0) for group in groups)
    assert [group.tolist() for group in layers(vectors)] == [group.tolist() for group in groups]
    assert layers(vectors[: DIMENSIONS + 1]) == []


def test_a_memory_is_searched_with_its_own_texts() -> None:
    encoder = hashing_encoder()
    with open_memory() as memory:
        memory.add(
            [{"speaker": "Ann", "content": "A red boat", "key": "x"}, {"speaker": "Bob", "content": "Rain"}],
            session="one",
        )
        beside = Beside(memory, encoder, ["plain-dense", "bm25"])
        (first, second) = beside.search("plain-dense", "red boat", 5)
        assert (first.text, first.key, first.session, first.speaker) == ("A red boat", "x", "one", "Ann")
        assert first.score > second.score
        assert [one.text for one in beside.search("bm25", "Ann", 5)] == ["A red boat"]
        assert beside.search("bm25", "rain", 5, before=1) == []
        dense = [one.id for one in memory.turns()]
        assert [one.turns[0] for one in memory.search("red boat", view="dense")] == dense
