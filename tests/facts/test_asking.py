"""What is read from a question: the names in it, and what it asks for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hmem_core as hmem
from hmem_core.columns.factnames import fold
from hmem_core.columns.terms import Analyzer
from hmem_core.facts.asking import Asked, ask, matches, mentioned
from tests.helpers import hashed, open_memory

ANALYZER = Analyzer()
NAMES = [
    "Ann",
    "Ann Lee",
    "C++",
    "Street Fighter (Arcade)",
    "東京",
    "Porto, Portugal",
    "O'Neill",
    "🐈",
    "in",
    "Ünal",
]


@pytest.fixture(scope="module")
def memory() -> hmem.Memory:
    memory = open_memory()
    for name in NAMES:
        memory.facts.add(name, "likes", "tea")
    memory.facts.add("Bob", "lives in", "Porto, Portugal", category="home", context="while at work")
    memory.facts.alias("Annie", "Ann")
    return memory


def names_in(memory: hmem.Memory, text: str) -> list[str | None]:
    with memory._store.reading() as state:
        return [state.facts.names[code] for _, _, code in mentioned(state.facts, fold(text))]


def asked(memory: hmem.Memory, text: str, past: bool | None = None) -> Asked:
    [vector] = hashed([text]).astype(np.float32)
    with memory._store.reading() as state:
        return ask(state.facts, text, vector / max(np.linalg.norm(vector), 1e-9), state.analyzer, past)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What does ANN like?", ["Ann"]),
        ("Is this Ann's?", ["Ann"]),
        ("Anna and Joann and Ann-Marie", ["Ann"]),  # a hyphen is a mark beside a word
        ("Ann  Lee's tea", ["Ann Lee", "tea"]),  # the longest
        ("Does Annie like it?", ["Ann"]),  # an alias stands for the other
        ("Who writes C++?", ["C++"]),
        ("C, C+ or C#", []),
        ("play street fighter (arcade)?", ["Street Fighter (Arcade)"]),
        ("彼は東京に住んでいる", ["東京"]),
        ("Porto, Portugal: how far?", ["Porto, Portugal"]),
        ("Porto and Portugal", []),
        ("o'neill!", ["O'Neill"]),
        ("a 🐈!", ["🐈"]),
        ("U\u0308NAL", ["Ünal"]),  # composed or not
        ("?!", []),
        ("", []),
    ],
)
def test_names_are_found_whole_and_nothing_is_guessed(
    memory: hmem.Memory, text: str, expected: list[str]
) -> None:
    assert names_in(memory, text) == expected


@given(st.lists(st.sampled_from([*NAMES, "likes", "walks", "?", "(", "'s", "x"]), max_size=12), st.randoms())
def test_what_is_found_is_in_the_question_once_and_in_order(words: list[str], random: object) -> None:
    memory = open_memory()
    for name in NAMES:
        memory.facts.add(name, "likes", "tea")
    folded = fold(" ".join(words))
    with memory._store.reading() as state:
        found = list(mentioned(state.facts, folded))
        spans = [(start, end) for start, end, _ in found]
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))
        for start, end, code in found:
            assert state.facts.names.find(folded[start:end]) == code


def test_a_name_counts_in_the_slots_it_has_in_the_graph(memory: hmem.Memory) -> None:
    read = asked(memory, "Does Bob, who lives in Porto, Portugal, like tea while at work?")
    names = memory.facts.find("Bob")[0]
    assert (names.subject, names.object) == ("Bob", "Porto, Portugal")
    sizes = {slot: len(codes) for slot, codes in read.named.items()}
    assert sizes == {"subject": 2, "relation": 1, "object": 2, "category": 0, "context": 1}


def test_a_function_word_names_nothing(memory: hmem.Memory) -> None:
    assert names_in(memory, "in") == ["in"]
    assert not asked(memory, "What is in there?").anything


@pytest.mark.parametrize(
    ("text", "past", "why"),
    [
        ("Where does Bob live?", False, False),
        ("Where did Bob live before?", True, False),
        ("Has Bob's home changed?", True, False),
        ("Where did he use to, I mean used to live?", True, False),
        ("What is the history of this?", True, False),
        ("Why does Ann like tea?", False, True),
        ("For what reason is that no longer so?", True, True),
        ("What exchange, whyever?", False, False),
    ],
)
def test_what_is_asked_for(memory: hmem.Memory, text: str, past: bool, why: bool) -> None:
    read = asked(memory, text)
    assert (read.past, read.why) == (past, why)
    assert asked(memory, text, past=True).past
    assert not asked(memory, text, past=False).past


def test_what_a_name_says_is_not_asked() -> None:
    memory = open_memory()
    memory.facts.add("Ann", "drinks", "juice", context="before training")
    assert not asked(memory, "What does Ann drink before training?").past
    assert asked(memory, "What did Ann drink before?").past


def test_matches_are_between_0_and_1_and_1_for_what_is_named(memory: hmem.Memory) -> None:
    read = asked(memory, "What does Bob like?")
    with memory._store.reading() as state:
        codes = np.arange(-1, len(state.facts.names), dtype=np.int32)
        for slot in ("subject", "relation", "object"):
            found = matches(state.facts, read, slot, codes, ANALYZER)
            assert found.dtype == np.float32
            assert found[0] == 0
            assert ((found >= 0) & (found <= 1)).all()
            for code, match in zip(codes.tolist(), found.tolist(), strict=True):
                assert match == 1 or code not in read.named[slot]
        likes = state.facts.names.find("likes")
        assert likes is not None
        [near] = matches(state.facts, read, "relation", np.array([likes], np.int32), ANALYZER)
        assert near == pytest.approx(0.9)  # "like" has its stem
