"""The views: what each finds, and that its parts add up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import hmem_core as hmem
from hmem_core.retrieval.views import VIEWS
from tests.helpers import open_memory

WORDS = ["apple", "bread", "cheese", "dates", "eggs", "figs"]


def filled(turns: list[tuple[str, int]], **options: object) -> hmem.Memory:
    memory = open_memory(**options)  # type: ignore[arg-type]
    memory.add([{"content": text, "session": f"s{session}"} for text, session in turns])
    return memory


conversations = st.lists(
    st.tuples(
        st.builds(
            lambda words, end: " ".join(words) + end,
            st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
            st.sampled_from(["", "", "?"]),
        ),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=60)
@given(conversations, st.sampled_from(sorted(VIEWS)), st.integers(1, 9), st.data())
def test_what_every_view_promises(turns: list, view: str, k: int, data: st.DataObject) -> None:
    policy = data.draw(st.sampled_from(["none", "top-down", "bottom-up"]))
    session = data.draw(st.sampled_from([None, "s0", "s1"]))
    reading = hmem.ReadingOptions(policy=policy, horizon=2, tree=0.5, fold=False)
    where = {} if session is None else {"session": session}
    with filled(turns) as memory:
        allowed = {turn.id for turn in memory.turns(where=where)}
        found = memory.search("apple cheese", k, view=view, where=where, explain=True, reading=reading)
        shown = [turn for hit in found for turn in hit.turns]
        assert len(shown) == len(set(shown)) <= k
        assert set(shown) <= allowed
        assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
        for hit in found:
            assert sum(hit.signals.values()) == pytest.approx(hit.score, abs=1e-4)
            assert hit.span == (min(hit.turns), max(hit.turns))
            assert (hit.kind == "turn") == (len(hit.turns) == 1)
        if view in ("dense", "fused"):
            assert len(shown) == min(k, len(allowed))


@settings(max_examples=40)
@given(conversations)
def test_fused_is_the_sum_of_what_it_says(turns: list) -> None:
    """The signals written out with plain loops."""
    options = hmem.ReadingOptions(
        lateral=(0.5, 0.25), answer=0.4, session=0.2, tree=0.0, event=0.0, fold=False
    )
    query = "apple cheese"
    with filled(turns) as memory:
        fused = {hit.turns[0]: hit for hit in memory.search(query, 99, explain=True, reading=options)}
        dense = {hit.turns[0]: hit.score for hit in memory.search(query, 99, view="dense")}
        lexical = {hit.turns[0]: hit.score for hit in memory.search(query, 99, view="lexical")}
    rows = range(len(turns))
    own = np.zeros(len(turns))
    for scores in (dense, lexical):
        column = np.array([scores.get(row, 0.0) for row in rows])
        if column.std() > 1e-6:
            own += (column - column.mean()) / column.std()
    for row in rows:
        same = [other for other in rows if turns[other][1] == turns[row][1]]
        place = same.index(row)
        lent = 0.0
        for distance, weight in ((1, 0.5), (2, 0.25)):
            for neighbour in (place - distance, place + distance):
                if 0 <= neighbour < len(same):
                    lent += weight * own[same[neighbour]]
        if place and turns[same[place - 1]][0].endswith("?"):
            lent += 0.4 * own[same[place - 1]]
        lent += 0.2 * max(own[other] for other in same)
        assert fused[row].score == pytest.approx(own[row] + lent, abs=1e-3)


@settings(max_examples=40)
@given(conversations, st.sampled_from([None, "s0"]), st.sets(st.integers(0, 29)))
def test_turns_inherit_the_mean_odds_of_their_segments(
    turns: list, session: str | None, forgotten: set[int]
) -> None:
    """What the tree lends, written out with plain loops; turns filtered out or forgotten lend nothing."""
    options = hmem.ReadingOptions(tree=0.5, decay=0.5, horizon=2, fold=False)
    where = {} if session is None else {"session": session}
    with filled(turns) as memory:
        memory.forget(turn for turn in forgotten if turn < len(turns))
        found = memory.search("apple cheese", 99, where=where, explain=True, reading=options)
        tree = memory._store.view(tree=True).tree
    signals = {hit.turns[0]: hit.signals for hit in found}
    own = {turn: parts["dense"] + parts["lexical"] for turn, parts in signals.items()}
    for turn, parts in signals.items():
        node, inherited = tree.leaf[turn], 0.0
        for decay in (0.5, 0.25):
            if (node := tree.parent[node]) < 0:
                break
            odds = [
                np.exp(own[below]) for below in range(tree.start[node], tree.end[node] + 1) if below in own
            ]
            inherited += decay * np.log(np.mean(odds))
        assert parts["tree"] == pytest.approx(0.5 * inherited, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Where to?", True),
        ("Where to? 😊", True),
        ('She asked: "where?")', True),
        ("Where? I do not know.", False),
        ("どこですか？", True),
        ("إلى أين؟", True),
        ("nowhere", False),
        ("?", True),
        ("?" * 100_000 + "x", False),
    ],
)
def test_a_turn_asks_if_it_ends_with_a_question(text: str, asks: bool) -> None:
    with open_memory() as memory:
        memory.add([text, "Porto, I think"], session="s")
        signals = {
            hit.turns[0]: hit.signals for hit in memory.search("where in Porto", explain=True) if hit.signals
        }
    assert bool(signals[1]["answer"]) is asks
    assert not signals[0]["answer"]


def test_a_turn_without_a_session_is_one_by_itself() -> None:
    with open_memory() as memory:
        memory.add(["the boat", "the harbour"], session="s")
        memory.add(["the boat", "the harbour"])
        reading = hmem.ReadingOptions(lateral=(), tree=0, session=1, fold=False)
        parts = {hit.turns[0]: hit.signals for hit in memory.search("boat", explain=True, reading=reading)}
    assert parts[0]["session"] == parts[1]["session"] == parts[2]["session"]
    assert parts[3]["session"] == pytest.approx(parts[3]["dense"] + parts[3]["lexical"], abs=1e-5)


def test_what_the_tree_lends_stays_finite_with_weights_of_any_size() -> None:
    with filled([("apple", 0), ("bread", 0), ("cheese", 0), ("apple cheese", 1)] * 5) as memory:
        reading = hmem.ReadingOptions(dense=9e5, lexical=9e5, fold=False)
        found = memory.search("apple", 20, explain=True, reading=reading)
        assert len(found) == 20
        assert all(np.isfinite(hit.score) for hit in found)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我们上周搬到了波尔图", "波尔图"),
        ("先週ポルトに引っ越しました", "ポルト"),
        ("เราย้ายไปปอร์โตเมื่อสัปดาห์ที่แล้ว", "ปอร์โต"),
        ("انتقلنا إلى بورتو الأسبوع الماضي", "بورتو"),
        ("Мы играли с нашими кошками", "кошка"),
        ("지난주에 포르투로 이사했어요", "포르투"),
        ("finally done 🎉", "🎉"),
        ("The boilers were running all night", "boiler run"),
        ("CAFÉ on the corner", "cafe"),
    ],
)
def test_words_of_any_script_are_found(text: str, query: str) -> None:
    with open_memory() as memory:
        memory.add([*(f"filler number {i}" for i in range(20)), text, "完全不同的内容", "совсем другое"])
        assert memory.search(query, k=1, view="lexical")[0].text == text


@pytest.mark.parametrize("view", sorted(VIEWS))
@pytest.mark.parametrize("query", ["the of and", "?!", '" OR (', "AND NOT", "🧿", "\u200f", "a" * 50_000])
def test_queries_without_content_return_quietly(view: str, query: str) -> None:
    with open_memory() as memory:
        memory.add(["the cat", "of mice and men", "🎉"])
        assert len(memory.search(query, k=5, view=view)) <= 3


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_an_empty_memory_and_one_that_forgot_all_find_nothing(view: str) -> None:
    with open_memory() as memory:
        assert memory.search("apple", view=view) == []
        memory.add(["apple", "bread"])
        memory.forget([0, 1])
        assert memory.search("apple", view=view) == []
        memory.add("apple")
        assert memory.search("apple", view=view)[0].turns == (2,)


def test_segments_show_their_turns_and_count_them() -> None:
    # Together these are nearer to "apple" than any of them alone.
    turns = [("apple bread", 0), ("apple cheese", 0), ("apple dates", 0), ("rain", 0), ("rain", 0)]
    with filled(turns, segments=hmem.SegmentOptions(tau=0.2)) as memory:
        found = memory.search("apple", 9, view="time", reading=hmem.ReadingOptions(policy="none"))
        segments = [hit for hit in found if hit.kind == "segment"]
        assert segments
        for hit in segments:
            assert hit.text.splitlines() == [f"user: {turns[turn][0]}" for turn in hit.turns]


def test_the_language_of_a_memory_is_chosen_once(tmp_path) -> None:
    with open_memory(tmp_path / "m", language="portuguese") as memory:
        memory.add("As casas novas")
        assert memory.search("casa", view="lexical")
    with open_memory(tmp_path / "m") as memory:
        assert memory.search("casa", view="lexical")
    with pytest.raises(hmem.InvalidInput, match="made with 'portuguese'"):
        open_memory(tmp_path / "m", language="english")
    with pytest.raises(hmem.InvalidInput, match="has no stemmer"):
        open_memory(tmp_path / "other", language="klingon")


@pytest.mark.parametrize(
    ("record", "options"),
    [
        (hmem.ReadingOptions, {"policy": "sideways"}),
        (hmem.ReadingOptions, {"dense": -1}),
        (hmem.ReadingOptions, {"dense": 0, "lexical": 0}),
        (hmem.ReadingOptions, {"b": 1.5}),
        (hmem.ReadingOptions, {"horizon": 65}),
        (hmem.ReadingOptions, {"answer": -0.1}),
        (hmem.ReadingOptions, {"session": float("nan")}),
        (hmem.ReadingOptions, {"enough": 1.5}),
        (hmem.ReadingOptions, {"fold": 1}),
        (hmem.ReadingOptions, {"diversity": -1}),
        (hmem.ReadingOptions, {"lateral": (-1.0,)}),
        (hmem.SegmentOptions, {"tau": (0.1, 0.2)}),
        (hmem.SegmentOptions, {"tau": ()}),
        (hmem.SegmentOptions, {"tau": float("nan")}),
        (hmem.SegmentOptions, {"choose": "worst"}),
        (hmem.SegmentOptions, {"fall": -1}),
        (hmem.SegmentOptions, {"low": 0.9, "high": 0.1}),
    ],
)
def test_options_without_meaning_are_refused(record: type, options: dict[str, object]) -> None:
    with pytest.raises(hmem.InvalidInput, match=next(iter(options))):
        record(**options)


@settings(max_examples=30)
@given(conversations, st.sampled_from([-1.0, 0.4, 0.8]))
def test_events_is_the_sum_of_what_it_says(turns: list, tau: float) -> None:
    """The score of an event written out with plain loops."""
    query = "apple cheese"
    with filled(turns, events=hmem.EventOptions(tau=tau, continuity=0.0)) as memory:
        reading = hmem.ReadingOptions(fold=False)
        hits = memory.search(query, 99, view="events", explain=True, reading=reading)
        found = {hit.turns[0]: hit for hit in hits}
        events = list(memory.events)
        state = memory._store._state
        vectors = np.concatenate(state.vectors.view())
        asked = memory._encoder.embed([query])[0]
        previous = state.turns.narrow["previous"].view()
        frequent = {word: sum(word in text.strip("?").split() for text, _ in turns) for word in query.split()}
    own = {row: hit.signals["dense"] + hit.signals["lexical"] for row, hit in found.items()}
    odds, centroid, coverage = [], [], []
    for event in events:
        odds.append(np.log(np.mean([np.exp(own[turn]) for turn in event.turns])))
        total = np.zeros(vectors.shape[1])
        for turn in event.turns:
            chain = [turn]
            while len(chain) < 3 and previous[chain[-1]] >= 0:
                chain.append(previous[chain[-1]])
            context = sum(w * vectors[one] for w, one in zip((1, 0.5, 0.25), chain, strict=False))
            total += context / np.linalg.norm(context)
        centroid.append(total @ asked / np.linalg.norm(total))
        said = " ".join(turns[turn][0].strip("?") for turn in event.turns).split()
        n = len(turns)
        coverage.append(
            sum(np.log1p((n - f + 0.5) / (f + 0.5)) for word, f in frequent.items() if word in said)
        )
    scores = np.array(odds)
    for column in (np.array(centroid).round(6), np.array(coverage).round(6)):
        assume(column.std() == 0 or column.std() > 1e-4)  # else rounding is what is standardised
        if column.std():
            scores += 0.5 * (column - column.mean()) / column.std()
    for event, score in zip(events, scores, strict=True):
        for turn in event.turns:
            assert found[turn].signals["event"] == pytest.approx(score, abs=2e-3)
