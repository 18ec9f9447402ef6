"""What a user does with a memory."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

import hmem_core as hmem
from tests.helpers import Clock, hashing_encoder, open_memory

UTC = dt.UTC


@pytest.fixture
def memory() -> hmem.Memory:
    with open_memory(clock=Clock()) as memory:
        yield memory


def test_add_close_open_ask(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m") as memory:
        added = memory.add(
            [
                {"role": "user", "content": "We moved to Porto last week."},
                {"role": "assistant", "content": "How is the new flat?"},
            ],
            session="s1",
            at="2026-03-02T10:00Z",
        )
        assert added.ids == added.new == (0, 1)
    with open_memory(tmp_path / "m", create=False) as memory:
        best = memory.search("moved to Porto")[0]
        assert best.text == "We moved to Porto last week."
        assert best.turns == (0,)
        assert best.span == (0, 0)
        assert best.at == dt.datetime(2026, 3, 2, 10, tzinfo=UTC)
        assert best.session == "s1"
        assert best.role == "user"
        assert best.signals is None


def test_the_identical_text_scores_highest_and_near_one(memory: hmem.Memory) -> None:
    texts = ["the cat sat on the mat", "the cat sat on the mats", "a dog", "cat mat"]
    memory.add(texts)
    for text in texts:
        best = memory.search(text, k=1, view="dense")[0]
        assert best.text == text
        assert best.score == pytest.approx(1, abs=1e-3)


def test_scores_fall_and_ties_go_to_the_earlier_turn(memory: hmem.Memory) -> None:
    memory.add(["same words", "same words", "other thing", "same words"])
    found = memory.search("same words", k=10, reading=hmem.ReadingOptions(fold=False))
    assert [hit.turns[0] for hit in found] == [0, 1, 3, 2]
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def test_explain_gives_parts_that_add_up(memory: hmem.Memory) -> None:
    memory.add(["one", "two"])
    for hit in memory.search("one", explain=True):
        assert hit.signals is not None
        assert sum(hit.signals.values()) == pytest.approx(hit.score)


def test_key_makes_a_retry_harmless(memory: hmem.Memory) -> None:
    first = memory.add("hello", key="k1")
    again = memory.add("hello", key="k1")
    assert again.ids == first.ids
    assert again.new == ()
    assert len(memory.turns()) == 1
    assert memory.get(key="k1").id == first.ids[0]


def test_key_of_a_list_names_each_part(memory: hmem.Memory) -> None:
    first = memory.add(["a", "b", "c"], key="batch")
    again = memory.add(["a", "b", "c", "d"], key="batch")
    assert again.ids == (*first.ids, 3)
    assert again.new == (3,)
    assert [(turn.key, turn.part) for turn in memory.turns()] == [("batch", i) for i in range(4)]
    with pytest.raises(hmem.InvalidInput, match="added as a list"):
        memory.get(key="batch")
    assert memory.forget(key="batch").ids == (0, 1, 2, 3)


def test_the_same_key_twice_in_one_call(memory: hmem.Memory) -> None:
    added = memory.add([{"content": "x", "key": "k"}, {"content": "x", "key": "k"}])
    assert added.ids == (0, 0)
    assert added.new == (0,)


def test_known_keys_are_not_embedded_again() -> None:
    calls: list[int] = []
    inner = hashing_encoder()

    class Counting:
        identity = inner.identity

        def embed(self, texts: list[str]) -> object:
            calls.append(len(texts))
            return inner.embed(texts)

    with open_memory(encoder=Counting()) as memory:
        memory.add(["a", "b"], key="k")
        memory.add(["a", "b"], key="k")
        memory.add(["a", "b", "c"], key="k")
    assert calls == [2, 1]


def test_forgotten_key_may_be_added_anew(memory: hmem.Memory) -> None:
    memory.add("old", key="k")
    memory.forget(key="k")
    assert memory.add("new", key="k").new == (1,)
    assert memory.get(key="k").text == "new"


def test_get_tells_unknown_from_forgotten(memory: hmem.Memory) -> None:
    memory.add("something")
    memory.forget(0)
    with pytest.raises(hmem.TurnForgotten):
        memory.get(0)
    with pytest.raises(hmem.TurnNotFound, match="ids 0 to 0") as caught:
        memory.get(1)
    assert not isinstance(caught.value, hmem.TurnForgotten)
    with pytest.raises(hmem.TurnNotFound):
        memory.get(key="nothing")
    with pytest.raises(hmem.InvalidInput):
        memory.get()
    with pytest.raises(hmem.InvalidInput):
        memory.get("0")  # type: ignore[arg-type]


def test_turns_are_chronological_whatever_the_order_of_adding(memory: hmem.Memory) -> None:
    memory.add("second", at="2026-02-01")
    memory.add("first", at="2026-01-01")
    memory.add("third", at="2026-02-01")
    assert [turn.text for turn in memory.turns()] == ["first", "second", "third"]


def test_now_is_the_default_time_and_the_callers_time_wins() -> None:
    with open_memory(clock=lambda: 1_000_000) as memory:
        memory.add(["now", {"content": "then", "at": "2020-05-05T05:05:05Z"}])
        assert memory.get(0).at == dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
        assert memory.get(1).at == dt.datetime(2020, 5, 5, 5, 5, 5, tzinfo=UTC)


def test_naive_times_are_read_in_the_memorys_zone() -> None:
    with open_memory(tz="Europe/Lisbon") as memory:
        memory.add("summer", at="2026-07-01T12:00")
        assert memory.get(0).at == dt.datetime(2026, 7, 1, 11, tzinfo=UTC)
        assert "12:00" in memory.context("summer").text


def test_filters_apply_before_the_cut(memory: hmem.Memory) -> None:
    memory.add([{"content": f"cheese number {i}"} for i in range(50)], session="many")
    memory.add("cheese quite apart from the others", session="rare", metadata={"tag": "needle"})
    for where in ({"session": "rare"}, {"tag": "needle"}, {"tag": {"$exists": True}}):
        assert [hit.turns for hit in memory.search("cheese number 7", k=1, where=where)] == [(50,)]


def test_between_is_half_open_and_a_bare_end_date_is_included(memory: hmem.Memory) -> None:
    for day in range(1, 6):
        memory.add(f"day {day}", at=f"2026-03-0{day}T12:00Z")
    both = memory.search("day", between=("2026-03-02", "2026-03-04"))
    assert sorted(hit.turns[0] for hit in both) == [1, 2, 3]
    exact = memory.search("day", between=("2026-03-02T12:00Z", "2026-03-04T12:00Z"))
    assert sorted(hit.turns[0] for hit in exact) == [1, 2]
    assert len(memory.search("day", between=(None, "2026-03-01"))) == 1


def test_as_of_a_sequence_number_and_a_time() -> None:
    clock = Clock()
    with open_memory(clock=clock) as memory:
        first = memory.add("one", at="2030-01-01")
        second = memory.add("two", at="2010-01-01")
        assert [turn.text for turn in memory.turns(as_of=first.seq)] == ["one"]
        assert len(memory.search("one", as_of=second.seq)) == 2
        assert memory.search("one", as_of=0) == []
        when = dt.datetime.fromtimestamp(clock() / 1e6, UTC)
        memory.add("three")
        assert [turn.text for turn in memory.turns(as_of=when)] == ["two", "one"]


def test_nothing_found_is_an_empty_list(memory: hmem.Memory) -> None:
    assert memory.search("anything") == []
    assert memory.context("anything").text == ""
    memory.add("x", session="s")
    assert memory.search("x", where={"session": "no such"}) == []


@pytest.mark.parametrize("query", ["", "   ", None, 7])
def test_an_empty_query_is_refused(memory: hmem.Memory, query: object) -> None:
    with pytest.raises(hmem.InvalidInput, match="query="):
        memory.search(query)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"k": 0},
        {"k": -1},
        {"k": 2.0},
        {"k": True},
        {"view": "crystal ball"},
        {"between": "2026"},
        {"between": ("2026-02-01", "2026-01-01")},
        {"between": ("not a time", None)},
        {"where": {"a": {"$near": 3}}},
        {"where": "session"},
        {"as_of": -1},
        {"as_of": True},
        {"as_of": "yesterday"},
    ],
)
def test_bad_arguments_name_the_value(memory: hmem.Memory, options: dict[str, object]) -> None:
    memory.add("something")
    with pytest.raises(hmem.InvalidInput) as caught:
        memory.search("something", **options)  # type: ignore[arg-type]
    value = next(iter(options.values()))
    shown = "$near" if isinstance(value, dict) else repr(value if not isinstance(value, tuple) else value[0])
    assert shown.strip("'") in str(caught.value)


def test_everything_after_close_raises(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "m")
    memory.close()
    memory.close()
    for call in (
        lambda: memory.add("x"),
        lambda: memory.search("x"),
        lambda: memory.turns(),
        lambda: memory.forget(0),
        lambda: memory.stats(),
        lambda: memory.checkpoint(),
    ):
        with pytest.raises(hmem.Closed):
            call()


def test_opening_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(hmem.MemoryNotFound):
        open_memory(tmp_path / "none", create=False)
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").write_text("hello")
    with pytest.raises(hmem.StorageError, match="is a file"):
        open_memory(tmp_path / "file")
    for location in ("", "a\0b", "redis://somewhere"):
        with pytest.raises(hmem.InvalidInput):
            open_memory(location)  # type: ignore[arg-type]


def test_names_in_any_script(tmp_path: Path) -> None:
    for name in ("记忆", "память", "ذاكرة", "a b", "🧠"):
        with open_memory(tmp_path / name) as memory:
            memory.add("x", session=name, speaker=name)
        with open_memory(tmp_path / name, create=False) as memory:
            assert memory.get(0).session == name


@pytest.mark.parametrize(
    "text",
    [
        "a\0b",
        "\x01\x02",
        "\ufeffbom",
        "<|endoftext|> [SEP]",
        "</context> ### {}",
        "e\u0301",
        "👩‍👩‍👧",
        "\u202eabc",
    ],
)
def test_any_text_comes_back_as_it_was(tmp_path: Path, text: str) -> None:
    with open_memory(tmp_path / "m") as memory:
        memory.add(text)
        memory.checkpoint()
    with open_memory(tmp_path / "m") as memory:
        assert memory.get(0).text == text


def test_lone_surrogates_become_replacement_characters(memory: hmem.Memory) -> None:
    memory.add("a\ud800b", session="s\udfff", metadata={"x": "\ud83d\ude00"})
    turn = memory.get(0)
    assert turn.text == "a\ufffdb"
    assert turn.session == "s\ufffd"
    assert turn.metadata == {"x": "😀"}
    assert memory.search("a\ud800b")[0].turns == (0,)


def test_another_encoder_is_refused_by_name_and_reembed_accepts_it(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m", encoder=hashing_encoder(32)) as memory:
        memory.add(["the cat sat", "a dog ran", "gone"], speaker="Ann")
        memory.forget(2)
    with pytest.raises(hmem.EncoderMismatch, match=r"hashed-32.*hashed-16.*reembed=True"):
        open_memory(tmp_path / "m", encoder=hashing_encoder(16))
    with open_memory(tmp_path / "m", encoder=hashing_encoder(16), reembed=True) as memory:
        assert memory.stats().encoder.dimension == 16
        assert memory.search("Ann: the cat sat", view="dense")[0].score == pytest.approx(1, abs=1e-3)
        assert memory.stats().forgotten == 1
        memory.add("more")
    with open_memory(tmp_path / "m", encoder=hashing_encoder(16)) as memory:
        assert memory.search("Ann: a dog ran")[0].turns == (1,)


def test_a_memory_open_elsewhere_notices_that_it_was_reembedded(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m", encoder=hashing_encoder(32)) as old:
        old.add("something")
        with open_memory(tmp_path / "m", encoder=hashing_encoder(16), reembed=True):
            for _ in range(2):
                with pytest.raises(hmem.EncoderMismatch):
                    old.search("something")
                with pytest.raises(hmem.EncoderMismatch):
                    old.add("more")


def test_two_objects_on_one_path_see_each_other(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m") as one, open_memory(tmp_path / "m") as two:
        for i in range(5):
            one.add(f"one {i}")
            assert two.search(f"one {i}", k=1)[0].text == f"one {i}"
            two.add(f"two {i}")
            assert one.turns()[-1].text == f"two {i}"


def test_a_failing_encoder_stores_nothing() -> None:
    broken = False

    def encode(texts: list[str]) -> list[list[float]]:
        if broken:
            raise ConnectionError("the encoder is down")
        return [[1.0, 0.0]] * len(texts)

    with open_memory(encoder=encode) as memory:
        memory.add("before")
        broken = True
        with pytest.raises(hmem.EncoderError, match="down"):
            memory.add(["a", "b"])
        assert [turn.text for turn in memory.turns()] == ["before"]
        broken = False
        assert memory.add("after").ids == (1,)


def test_all_of_a_list_or_none(memory: hmem.Memory) -> None:
    with pytest.raises(hmem.InvalidInput, match="message 1"):
        memory.add(["fine", {"role": "user", "content": 7}])
    assert memory.turns() == []


def test_stats_count(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m") as memory:
        empty = memory.stats()
        assert (empty.turns, empty.first, empty.seq) == (0, None, 1)
        memory.add(["a", "b"], session="s", speaker="Ann", at="2026-01-01")
        memory.add("c", session="t", at="2026-01-02")
        memory.forget(0)
        stats = memory.stats()
    assert (stats.turns, stats.forgotten, stats.sessions, stats.speakers) == (2, 1, 2, 1)
    assert stats.first == dt.datetime(2026, 1, 1, tzinfo=UTC)
    assert stats.last == dt.datetime(2026, 1, 2, tzinfo=UTC)
    assert stats.disk_bytes > 0
    assert stats.location == str(tmp_path / "m")


def test_turns_can_be_copied_to_another_memory(memory: hmem.Memory) -> None:
    memory.add(
        [{"content": "x", "name": "Ann", "metadata": {"n": [1, 2]}}], session="s", key="k", at="2026-01-01"
    )
    with open_memory() as other:
        other.add(memory.turns())
        assert other.turns() == memory.turns()
