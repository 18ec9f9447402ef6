"""The commands of the fact view."""

from __future__ import annotations

import json

import pytest

from tests.interfaces.conftest import Run
from tests.interfaces.test_cli import documents, rows


@pytest.fixture
def told(run: Run) -> Run:
    """`run`, on a memory in which Ann has moved."""
    run("add", "We moved to Porto", "--speaker", "Ann")
    assert (
        run("facts", "add", "Ann", "lives in", "Porto", "--source", 0, "--category", "residence").exit_code
        == 0
    )
    assert (
        run("facts", "add", "Ann", "commutes by", "tram", "--because", 0, "--context", "work").exit_code == 0
    )
    assert run("facts", "add", "Ann", "lives in", "Faro", "--valid-from", "2026-03-01").exit_code == 0
    return run


def test_add_shows_what_it_changes_and_makes_a_memory(run: Run) -> None:
    first = run("facts", "add", "Ann", "lives in", "Porto")
    assert rows(first) == [["0", "", "active", "told", ""]]
    assert "rewrite 2" in first.stderr
    second = run("facts", "add", "Ann", "lives in", "Faro", "--valid-from", "2026-03-01", "--json")
    (rewrite,) = documents(second)
    assert (rewrite["added"], rewrite["superseded"]) == ([1], [0])
    assert run("facts", "add", "Ann", "owns", "x", "--key", "k").exit_code == 0
    assert "nothing new" in run("facts", "add", "Ann", "owns", "x", "--key", "k").stderr


def test_find_and_about(told: Run) -> None:
    assert [row[4:7] for row in rows(told("facts", "about", "ann"))] == [["Ann", "lives in", "Faro"]]
    found = rows(told("facts", "find", "--subject", "Ann", "--include", "all"))
    assert [(row[0], row[1]) for row in found] == [("0", "superseded"), ("1", "outdated"), ("2", "active")]
    past = documents(told("facts", "find", "--relation", "lives in", "--valid-at", "2026-02-01", "--json"))
    assert [unit["object"] for unit in past] == ["Porto"]
    assert [row[1] for row in rows(told("facts", "find", "--as-of", 5))] == ["active", "active"]
    assert rows(told("facts", "find", "--context", "work", "--include", "all"))[0][7] == "work"
    assert told("facts", "about", "Bo").exit_code == 1
    assert told("facts", "find", "--include", "none").exit_code == 2


def test_why_and_history(told: Run) -> None:
    lines = told("facts", "why", 1).stdout.splitlines()
    assert lines == [
        "[1] Ann commutes by tram (outdated)",
        "  because [0] Ann lives in Porto (superseded)",
        "    turn 0, Ann: We moved to Porto",
    ]
    assert documents(told("facts", "why", 1, "--json"))[0]["because"][0][0]["turns"][0]["id"] == 0
    assert [row[2] for row in rows(told("facts", "history", 0))] == ["active", "superseded"]
    assert [one["why"] for one in documents(told("facts", "history", 1, "--json"))] == [
        "told",
        "its support fell",
    ]


def test_undo_and_retract(told: Run) -> None:
    assert [row[:3] for row in rows(told("facts", "undo", 6))] == [
        ["2", "active", "retracted"],
        ["0", "superseded", "active"],
        ["1", "outdated", "active"],
    ]
    assert told("facts", "undo", 6).exit_code == 2
    assert told("facts", "undo", 1).exit_code == 1
    assert rows(told("facts", "retract", 0, "--reason", "a joke"))[0][2] == "retracted"
    missing = told("facts", "retract", 9, "--json")
    assert missing.exit_code == 1
    assert json.loads(missing.stderr)["error"] == "UnitNotFound"


def test_search_finds_facts(told: Run) -> None:
    found = told("search", "Where did Ann live before?", "--view", "facts", "-k", 2)
    assert [row[0] for row in rows(found)] == ["f2", "f0"]
    assert rows(found)[1][3:] == [
        "fact",
        "Ann lives in Porto (until 2026-03-01; then Faro; told in [0])",
    ]
    (first, _) = documents(told("search", "Where did Ann live before?", "--view", "facts", "-k", 2, "--json"))
    assert [unit["object"] for unit in first["facts"]] == ["Faro"]
    assert first["kind"] == "fact"
    assert told("context", "Where does Ann live?", "--view", "facts").stdout.startswith(
        "Facts\n[f2] Ann lives in Faro"
    )


def test_locate_and_add_explain_show_the_parts_of_scores(told: Run) -> None:
    found = rows(told("facts", "locate", "--subject", "ann", "--relation", "lives in"))
    assert found[0] == ["1.000", "1.000", "1.000", "1.000", "1.000", "2", "Ann lives in Faro"]
    (document,) = documents(told("facts", "locate", "--subject", "ann", "--json"))
    assert document["paths"][0]["units"] == [2]
    assert told("facts", "locate", "--subject", "nobody").exit_code == 1
    added = told("facts", "add", "Ann", "lives in", "Lagos", "--valid-from", "2026-04-01", "--explain")
    assert [row[-1] for row in rows(added)][-1] == "Ann lives in Faro"
