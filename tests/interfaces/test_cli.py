"""The commands, one by one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import hmem_core as hmem
from tests.embedding import tiny
from tests.helpers import hashing_encoder
from tests.interfaces.conftest import Run


def documents(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def rows(result: Result) -> list[list[str]]:
    return [line.split("\t") for line in result.stdout.splitlines()]


@pytest.fixture
def filled(run: Run) -> Run:
    """`run`, on a memory of four turns."""
    messages = [
        {"content": "the kettle whistles", "speaker": "Ann", "session": "s1", "at": "2026-01-01T10:00Z"},
        {"content": "rain on the roof", "speaker": "Ben", "session": "s1", "at": "2026-01-02T10:00Z"},
        {"content": "kettle\tand\nroof", "session": "s2", "at": "2026-02-01T10:00Z", "metadata": {"n": 3}},
        {
            "content": "a quiet morning",
            "session": "s2",
            "at": "2026-02-02T10:00Z",
            "metadata": {"n": 5},
            "key": "q",
        },
    ]
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    assert run("import", "-", input=lines).exit_code == 0
    return run


# -- add ---------------------------------------------------------------------------------------------


def test_the_language_of_a_new_memory(run: Run) -> None:
    assert run("add", "As casas novas", "--language", "portuguese").exit_code == 0
    assert run("search", "casa", "--view", "lexical").exit_code == 0
    refused = run("add", "mais", "--language", "german")
    assert refused.exit_code == 2
    assert "portuguese" in refused.stderr


def test_add_makes_a_memory_and_remembers(run: Run, place: Path) -> None:
    result = run(
        "add", "We moved", "--session", "s", "--speaker", "Ann", "--role", "assistant",
        "--at", "2026-03-02T10:00", "--key", "k", "--tz", "Europe/Lisbon",
        "--metadata", "n=3", "--metadata", "word=three", "--metadata", 'deep={"a": [1]}',
    )  # fmt: skip
    assert (result.exit_code, result.stdout) == (0, "0\tstored\n")
    (turn,) = documents(run("turns", "--json"))
    assert turn == {
        "text": "We moved",
        "role": "assistant",
        "speaker": "Ann",
        "session": "s",
        "at": "2026-03-02T10:00:00Z",
        "key": "k",
        "part": 0,
        "metadata": {"n": 3, "word": "three", "deep": {"a": [1]}},
        "id": 0,
    }
    assert run("add", "We moved", "--key", "k").stdout == "0\tknown already\n"
    assert place.is_dir()


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_add_takes_all_of_stdin_as_one_turn(run: Run, arguments: list[str]) -> None:
    assert run("add", *arguments, input="\ufeffone\ntwo ✓\n").exit_code == 0
    assert documents(run("get", "0", "--json"))[0]["text"] == "one\ntwo ✓"


def test_add_stores_nothing_that_has_no_meaning(run: Run) -> None:
    for arguments, stdin, complaint in [
        (["  "], "", "no text"),
        ([], "", "no text"),
        ([], b"\xff", "not UTF-8"),
        (["a", "--at", "soon"], "", "ISO 8601"),
        (["a", "--metadata", "n"], "", "FIELD=VALUE"),
        (["a", "--metadata", "n=1", "--metadata", "n=2"], "", "'n' twice"),
        (["a", "--tz", "Mars/Base"], "", "time zone"),
        (["two", "words"], "", "unexpected"),
    ]:
        result = run("add", *arguments, input=stdin)
        assert result.exit_code == 2, arguments
        assert complaint in result.stderr
        assert result.stdout == ""


@pytest.mark.parametrize(
    "wrong",
    [
        ("text", "--metadata", "n=99999999999999999999999"),
        ("text", "--metadata", "n=NaN"),
        ("text", "--metadata", "n"),
        ("text", "--at", "yesterday"),
        ("text", "--tz", "Mars/Olympus"),
        ("  ",),
    ],
)
def test_an_add_that_is_refused_makes_no_memory(run: Run, place: Path, wrong: tuple[str, ...]) -> None:
    assert run("add", *wrong).exit_code == 2
    assert not place.exists()


# -- import ------------------------------------------------------------------------------------------


def test_import_again_adds_nothing(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text('{"content": "one"}\n{"role": "system", "content": "be kind"}\n"two"\n')
    assert run("import", file).stdout == f"{file}: 2 added, 0 known already, 1 skipped\n"
    again = run("import", file, "--json")
    assert documents(again) == [{"file": str(file), "format": "jsonl", "added": 0, "known": 2, "skipped": 1}]


def test_import_takes_several_files_and_tells_them_apart(run: Run, tmp_path: Path) -> None:
    locomo = {
        "sample_id": "walk",
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hello"}],
        },
    }
    (tmp_path / "a.json").write_text(json.dumps([locomo]))
    (tmp_path / "b.json").write_text(json.dumps([{"content": "one"}]))
    done = run("import", tmp_path / "a.json", tmp_path / "b.json", "--session", "s", "--json")
    assert [document["format"] for document in documents(done)] == ["locomo", "json"]
    assert [turn["session"] for turn in documents(run("turns", "--json"))] == ["session_1", "s"]
    assert documents(run("get", "--key", "walk:D1:1", "--json"))[0]["at"] == "2023-05-08T13:56:00Z"


def test_import_says_what_was_stored_before_an_error(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text('"one"\n\n{"content": 1}\n')
    result = run("import", file)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert f"content of line 3 of {file}" in result.stderr
    assert "1 added" in result.stderr
    assert len(rows(run("turns"))) == 1


@pytest.mark.parametrize("name", ["", "absent.jsonl"])
def test_import_of_what_is_no_file_is_wrong_input(run: Run, tmp_path: Path, name: str) -> None:
    result = run("import", tmp_path / name)
    assert result.exit_code == 2
    assert "cannot be read" in result.stderr


# -- asking ------------------------------------------------------------------------------------------


def test_search_in_a_pipe_is_a_line_a_hit(filled: Run) -> None:
    found = rows(filled("search", "kettle roof"))
    assert all(len(row) == 5 for row in found)
    assert found[0][0] == "2"
    assert found[0][2:] == ["2026-02-01T10:00:00+00:00", "user", "kettle and roof"]
    scores = [float(row[1]) for row in found]
    assert scores == sorted(scores, reverse=True)


def test_search_in_json_is_an_object_a_line(filled: Run) -> None:
    hits = documents(filled("search", "-", "-k", "2", "--json", "--explain", input="kettle roof\n"))
    assert len(hits) == 2
    assert hits[0]["text"] == "kettle\tand\nroof"
    assert hits[0]["score"] == pytest.approx(sum(hits[0]["signals"].values()))


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (["--where", "speaker=Ann"], [0]),
        (["--where", 'speaker=["Ann", "Ben"]'], [0, 1]),
        (["--where", "n=3"], [2]),
        (["--where", 'n={"$gte": 4}'], [3]),
        (["--where", '{"n": {"$gte": 3}}', "--where", "session=s2"], [2, 3]),
        (["--between", "2026-01-02", "2026-02-01"], [1, 2]),
        (["--since", "2026-02-01"], [2, 3]),
        (["--until", "2026-01-01"], [0]),
        (["--as-of", "3"], [0, 1]),
    ],
)
def test_filters_mean_the_same_everywhere(filled: Run, arguments: list[str], ids: list[int]) -> None:
    assert (
        sorted(hit["turns"][0] for hit in documents(filled("search", "kettle", "--json", *arguments))) == ids
    )
    assert [turn["id"] for turn in documents(filled("turns", "--json", *arguments))] == ids
    packed = documents(filled("context", "kettle", "--json", *arguments))[0]
    assert sorted(line["turns"][0] for line in packed["lines"]) == ids


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--where", "speaker"], "FIELD=VALUE"),
        (["--where", "n=1", "--where", "n=2"], "any of several"),
        (["--where", 'n={"$near": 1}'], "unknown operator"),
        (["--between", "2026-01-01", "2026-01-02", "--since", "2026-01-01"], "--between"),
        (["--between", "2026-01-02", "2025-01-01"], "ends before it starts"),
        (["--view", "sideways"], "views are"),
        (["-k", "0"], "whole number"),
        (["--as-of", "later"], "ISO 8601"),
    ],
)
def test_filters_without_meaning_are_refused(filled: Run, arguments: list[str], complaint: str) -> None:
    result = filled("search", "kettle", *arguments)
    assert result.exit_code == 2
    assert complaint in result.stderr


@pytest.mark.parametrize("command", ["search", "context"])
def test_nothing_found_is_1_and_says_so(filled: Run, command: str) -> None:
    for extra in ([], ["--json"]):
        result = filled(command, "kettle", "--where", "speaker=Zoe", *extra)
        assert result.exit_code == 1
        assert "nothing found" in result.stderr
    assert filled(command, "  ").exit_code == 2


def test_context_prints_what_a_prompt_takes(filled: Run) -> None:
    text = filled("context", "kettle", "--max-tokens", "60", "--tz", "Asia/Tokyo").stdout
    assert "Thu 2026-01-01, s1\n[0] 19:00 Ann: the kettle whistles\n" in text
    packed = documents(filled("context", "kettle", "--max-tokens", "60", "--json"))[0]
    assert packed["tokens"] <= 60
    tight = filled("context", "kettle", "--max-tokens", "1")
    assert (tight.exit_code, tight.stdout) == (1, "")
    assert "raise --max-tokens" in tight.stderr


def test_turns_come_in_order_of_time(filled: Run) -> None:
    listed = rows(filled("turns", "--session", "s2"))
    assert listed == [
        ["2", "2026-02-01T10:00:00+00:00", "s2", "user", "kettle and roof"],
        ["3", "2026-02-02T10:00:00+00:00", "s2", "user", "a quiet morning"],
    ]
    assert filled("turns", "--session", "s9").exit_code == 1


def test_get_shows_a_turn_whole(filled: Run) -> None:
    head, _, text = filled("get", "2").stdout.partition("\n\n")
    assert text == "kettle\tand\nroof\n"
    assert 'metadata\t{"n":3}' in head
    assert "speaker" not in head
    assert documents(filled("get", "--key", "q", "--json"))[0]["id"] == 3
    for arguments, code in [(["9"], 1), (["--key", "none"], 1), ([], 2), (["1", "--key", "q"], 2)]:
        assert filled("get", *arguments).exit_code == code


LENT = ("lateral", "answer", "session", "speaker", "period", "tree", "event")


def test_a_reranker_orders_what_is_found(filled: Run, tmp_path: Path) -> None:
    directory = tiny.write_cross_encoder(tmp_path / "cross")
    assert filled("add", "the cat and a dog and a dog").exit_code == 0
    assert filled("add", "a dog").exit_code == 0
    asked = ("search", "a dog", "--explain", "--json")
    assert "reranker" not in documents(filled(*asked))[0]["signals"]
    best = documents(filled(*asked, "--reranker", directory))[0]
    assert best["text"] == "the cat and a dog and a dog"
    assert best["signals"]["reranker"] > 0
    assert filled("context", "a dog", "--reranker", directory).exit_code == 0
    for command in ("search", "context"):
        refused = filled(command, "a dog", "--reranker", tmp_path / "nowhere")
        assert refused.exit_code == 5
        assert "nowhere" in refused.stderr


def test_search_explains_every_view_in_parts_that_add_up(filled: Run) -> None:
    for view, signals in [
        ("fused", {"dense", "lexical", *LENT}),
        ("events", {"dense", "lexical", "event"}),
        ("dense", {"dense"}),
        ("lexical", {"lexical"}),
        ("time", {"centroid", "top-down"}),
    ]:
        found = documents(filled("search", "kettle", "--view", view, "--explain", "--json"))
        assert found
        for hit in found:
            assert hit["signals"].keys() == signals
            assert hit["score"] == pytest.approx(sum(hit["signals"].values()), abs=1e-5)


def test_the_help_names_every_view() -> None:
    from hmem_core.interfaces import options
    from hmem_core.retrieval.search import NAMES

    told = options.View.__metadata__[0].help  # type: ignore[attr-defined]
    assert all(re.search(rf"\b{name}\b", told) for name in NAMES)


# -- tree --------------------------------------------------------------------------------------------


@pytest.fixture
def grove(run: Run) -> Run:
    """`run`, on a memory whose tree has segments."""
    words = ["kettle"] * 4 + ["violin"] * 5 + ["kettle"] + ["harbour"] * 6
    messages = [
        {"content": f"{word} {word} {word} {i}", "speaker": "Ann", "at": f"2026-01-{1 + i:02}T10:00Z"}
        for i, word in enumerate(words)
    ]
    assert run("import", "-", input="".join(json.dumps(one) + "\n" for one in messages)).exit_code == 0
    return run


def test_tree_in_a_pipe_is_an_indented_line_a_segment(grove: Run, place: Path) -> None:
    found = rows(grove("tree"))
    with hmem.open(place, encoder=hashing_encoder()) as memory:
        walked = list(memory.segments.walk(depth=3, width=8))
    assert len(walked) > 3
    assert [int(row[0]) for row in found] == [one.id for one in walked]
    assert [row[1] for row in found] == [f"{one.span[0]}-{one.span[1]}" for one in walked]
    assert found[0][1:6] == [
        "0-15",
        "16",
        str(walked[0].height),
        *(f"2026-01-{d}T10:00:00+00:00" for d in ("01", "16")),
    ]
    indent = {one.id: len(row[0]) - len(row[0].lstrip()) for one, row in zip(walked, found, strict=True)}
    assert all(indent[one.id] == indent[one.parent] + 2 for one in walked[1:] if one.parent is not None)


def test_tree_in_json_is_a_flat_list_that_can_be_nested(grove: Run) -> None:
    walked = documents(grove("tree", "--json", "--min-size", "1", "--depth", "99", "--width", "99"))
    by_id = {one["id"]: one for one in walked}
    assert walked[0]["parent"] is None
    for one in walked:
        assert all(by_id[child]["parent"] == one["id"] for child in one["children"])
    assert sum(one["height"] == 0 for one in walked) == 16


def test_tree_shows_a_part_or_the_way_to_a_turn(grove: Run, place: Path) -> None:
    with hmem.open(place, encoder=hashing_encoder()) as memory:
        part, path = memory.segments.by_span(5, 6), memory.segments.of_turn(5)
    assert rows(grove("tree", "--span", "5", "6"))[0][0] == str(part.id)
    assert [int(row[0]) for row in rows(grove("tree", "--turn", "5"))] == [one.id for one in path[::-1]]
    assert len(rows(grove("tree", "--depth", "0"))) == 1


def test_events_in_a_pipe_are_a_line_each(grove: Run, place: Path) -> None:
    with hmem.open(place, encoder=hashing_encoder()) as memory:
        events = list(memory.events)
    found = rows(grove("events"))
    assert [int(row[0]) for row in found] == [event.id for event in events]
    assert [int(row[2]) for row in found] == [len(event.turns) for event in events]
    assert len(rows(grove("events", "-n", "1"))) == 1
    assert [row["id"] for row in documents(grove("events", "--json"))] == [event.id for event in events]
    of_turn = rows(grove("events", "--turn", "0"))
    assert [int(row[0]) for row in of_turn] == [event.id for event in events if 0 in event.turns]
    searched = rows(grove("events", "kettle", "--limit", "1"))
    assert float(searched[0][1]) > 0
    assert grove("events", "--min-turns", "99").exit_code == 1
    assert grove("events", "--turn", "99").exit_code == 1


def test_event_prints_its_timeline(grove: Run, place: Path) -> None:
    with hmem.open(place, encoder=hashing_encoder()) as memory:
        event = memory.events.get(0)
    result = grove("event", "0")
    assert event.summary in result.stdout
    timeline = rows(result)[-len(event.timeline) :]
    assert [(int(row[1]), row[2]) for row in timeline] == [(item.turn, item.fact) for item in event.timeline]
    (document,) = documents(grove("event", "0", "--json"))
    assert document["turns"] == list(event.turns)
    missing = grove("event", "99")
    assert (missing.exit_code, "no event 99" in missing.stderr) == (1, True)


def test_tree_says_what_it_cannot_show(grove: Run) -> None:
    grove("forget", "--id", "3", "--yes")
    for arguments, code in [
        (["--turn", "99"], 1),
        (["--turn", "3"], 1),
        (["--span", "3", "5"], 1),
        (["--span", "5", "4"], 2),
        (["--span", "4", "5", "--turn", "5"], 2),
        (["--depth", "-1"], 2),
        (["--min-size", "0"], 2),
    ]:
        result = grove("tree", *arguments)
        assert (result.exit_code, result.stdout) == (code, ""), arguments
        assert result.stderr.count("\n") == 1
    for number in range(16):
        grove("forget", "--id", number, "--yes")
    empty = grove("tree")
    assert (empty.exit_code, empty.stdout) == (1, "")
    assert "holds no turns" in empty.stderr


# -- forget ------------------------------------------------------------------------------------------


def test_forget_erases_and_says_so_once(filled: Run) -> None:
    assert filled("forget", "--id", "0", "--id", "1", "--yes").stdout == "0\tforgotten\n1\tforgotten\n"
    again = filled("forget", "--id", "0", "-y")
    assert (again.exit_code, again.stdout) == (1, "0\tforgotten before\n")
    assert "forgotten already" in again.stderr
    gone = filled("get", "0")
    assert gone.exit_code == 1
    assert "was forgotten" in gone.stderr
    assert documents(filled("forget", "--session", "s2", "--before", "2026-02-02", "-y", "--json"))[0][
        "ids"
    ] == [2]
    assert filled("forget", "--key", "none", "-y").exit_code == 1
    assert filled("forget", "-y").exit_code == 2


def test_forget_needs_a_yes_where_nobody_can_be_asked(filled: Run) -> None:
    result = filled("forget", "--id", "0")
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert len(rows(filled("turns"))) == 4


# -- keeping -----------------------------------------------------------------------------------------


def test_stats_are_fields_or_a_record(filled: Run, place: Path) -> None:
    assert ["turns", "4"] in rows(filled("stats"))
    assert ["memory", str(place)] in rows(filled("stats"))
    assert documents(filled("stats", "--json"))[0]["sessions"] == 2


def test_verify_finds_what_is_damaged(filled: Run, place: Path) -> None:
    with hmem.open(place) as memory:
        memory.checkpoint()
    sound = filled("verify")
    assert sound.exit_code == 0
    assert "journal: sound; 6 entries" in sound.stdout
    assert documents(filled("verify", "--json"))[0]["sound"] is True

    (checkpoint,) = (path for path in (place / "checkpoints").iterdir() if path.name.isdigit())
    column = max((path for path in checkpoint.iterdir()), key=lambda path: path.stat().st_size)
    data = bytearray(column.read_bytes())
    data[len(data) // 2] ^= 1
    column.write_bytes(data)
    damaged = filled("verify")
    assert damaged.exit_code == 4
    assert "nothing is lost" in damaged.stdout

    (place / "journal.sqlite").write_bytes(b"not a database" * 100)
    lost = filled("verify", "--json")
    assert lost.exit_code == 4
    (report,) = documents(lost)
    assert report["sound"] is False
    assert report["problems"]
    assert filled("search", "kettle").exit_code == 4


def test_warm_compiles_and_loads(run: Run) -> None:
    (warmed,) = documents(run("warm", "--json"))
    assert "scan.scan_topk" in warmed["kernels"]
    assert warmed["encoder"]["name"] == "hashed-32"
    assert "kernels" in run("warm").stdout


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"hmem {hmem.__version__}\n"


def test_now_says_when_a_question_is_asked(filled: Run) -> None:
    for asked, found in (("2026-01-05", "s1"), ("2026-02-05", "s2")):
        question = "what was said this month"
        hits = documents(filled("search", question, "-k", "1", "--now", asked, "--explain", "--json"))
        assert hits[0]["session"] == found
        assert hits[0]["signals"]["period"] > 0
        assert found in filled("context", question, "--now", asked, "--max-tokens", "40").output
    assert filled("search", "this month", "--now", "soon").exit_code == 2
