"""The MemConflict measurement, on a persona of our own in the same shape."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.quality import memconflict, memconflict_data
from bench.quality.memconflict_data import Persona, Question
from tests.helpers import hashing_encoder


def session(number: int, date: str, **more: Any) -> dict[str, Any]:
    lists = ("Static_Conflict_Information", "Conditional_Conflict_Information", "Others_Dynamic_Information")
    return {"Session_ID": number, "Date": date, **{name: [] for name in lists}, **more}


def static(role: str, path: str, value: object, **more: Any) -> dict[str, Any]:
    return {"Conflict_ID": f"SC {path}", "Role": role, "Target_Field_Path": path, "Value": value, **more}


def rule(role: str, item: str, condition: str) -> dict[str, Any]:
    fields = {"Preference_Type": "Tea_Preference", "Item": item, "Condition": condition}
    return {"Conflict_ID": "CC 1", "Role": role, **fields}


OTHER = {"Role": "Distractor", "Source_Person_ID": "Contacts_1", "Relationship_To_User": "Friend"}
JOB = {"Employment": "Employed", "Company": "Salt Works", "Title": "Potter"}
PERSONA: dict[str, Any] = {
    "Fixed_Profile": {"Name": "Rui Alves"},
    "Others_Profile": {"Contacts_1": {"Name": "Eva Melo"}},
    "Full_Session_Chain": [
        session(
            0,
            "2022-01-01",
            Revealed_Attributes={
                "Residence": "Porto",
                "Job": JOB,
                "Social_Relationships": {"Mood": {"State": "Calm"}},
            },
            Static_Conflict_Information=[static("Point_A", "Birth.Year", 1988)],
            Conditional_Conflict_Information=[rule("Point_A", "Mint", "On cold evenings by the stove")],
        ),
        session(
            1,
            "2022-02-01",
            Updated_Attributes=[
                {"Attribute": "Residence", "Before": "Porto", "After": "Faro"},
                {"Attribute": "Job", "Before": JOB, "After": {"Employment": "Unemployed", "Company": ""}},
            ],
            Others_Dynamic_Information=[{**OTHER, "Attribute": "Residence", "Value": "Porto"}],
        ),
        session(
            2,
            "2022-03-01",
            Updated_Attributes=[
                {"Attribute": "Residence", "Before": "Faro", "After": "Porto"},
                {"Attribute": "Mood", "Before": {"State": "Calm"}, "After": {"State": "Calm"}},
                {
                    "Attribute": "Job",
                    "Before": {"Employment": "Unemployed", "Company": ""},
                    "After": {"Employment": "Employed", "Company": "Clay House"},
                },
            ],
            Conditional_Conflict_Information=[rule("Point_B", "Assam", "Before a long day at the kiln")],
            Static_Conflict_Information=[static("Distractor", "Birth.Year", 1971, **OTHER)],
        ),
        session(
            3,
            "2022-04-01",
            Static_Conflict_Information=[static("Point_B", "Birth.Year", "He says he was born in 1990.")],
            Conditional_Conflict_Information=[
                {**OTHER, "Conflict_ID": "CC 1", "Preference_Key": "Chess", "Preference_Description": "Often"}
            ],
        ),
    ],
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memconflict") / "personas.jsonl"
    path.write_text(json.dumps(PERSONA) + "\n")
    return path


@pytest.fixture(scope="module")
def personas(file: Path) -> list[Persona]:
    return memconflict_data.load(file)


@pytest.fixture(scope="module")
def report(personas: list[Persona]) -> dict[str, Any]:
    return memconflict.measure(personas, hashing_encoder(256))


def questions(personas: list[Persona]) -> list[Question]:
    return [question for one in personas for session in one.sessions for question in session.questions]


def row(report: dict[str, Any], strategy: str, kind: str = "all") -> dict[str, Any]:
    [found] = [row for row in report["rows"] if (row["strategy"], row["type"]) == (strategy, kind)]
    return found


def test_sessions_are_read_as_facts(personas: list[Persona]) -> None:
    [rui] = personas
    assert rui.sessions[0].text == (
        "Session 0, 2022-01-01: Rui Alves: residence is Porto; Rui Alves: job employment is Employed; Rui "
        "Alves: job company is Salt Works; Rui Alves: job title is Potter; Rui Alves: mood state is Calm; "
        "Rui Alves: birth year is 1988; Rui Alves: tea preference is Mint when: On cold evenings by the stove"
    )
    told = {str(fact): fact for fact in rui.sessions[1].facts}
    assert "Rui Alves: job company is no longer Salt Works" in told
    assert "Rui Alves: job title is no longer Potter" in told
    assert not told["Rui Alves: job title is no longer Potter"].dated
    assert told["Eva Melo: residence is Porto"].category == "residence"
    assert [str(fact) for fact in rui.sessions[3].facts] == [
        "Rui Alves: birth year is He says he was born in 1990.",
        "Eva Melo: chess preference is Often",
    ]
    assert not rui.sessions[3].facts[0].dated


def test_every_value_before_an_update_is_asked_for(personas: list[Persona]) -> None:
    found = questions(personas)
    assert Counter(one.kind for one in found) == {"dynamic": 8, "static": 1, "conditional": 1}
    gold = {(one.session, one.relation): (one.change, one.before, one.value) for one in found if one.change}
    assert gold == {
        (1, "residence"): ("changed", "Porto", "Faro"),
        (1, "job employment"): ("changed", "Employed", "Unemployed"),
        (1, "job company"): ("gone", "Salt Works", "Salt Works"),
        (1, "job title"): ("gone", "Potter", "Potter"),
        (2, "residence"): ("changed", "Faro", "Porto"),
        (2, "mood state"): ("same", "Calm", "Calm"),
        (2, "job employment"): ("changed", "Unemployed", "Employed"),
        (2, "job company"): ("began", "", "Clay House"),
    }
    [rule] = [one for one in found if one.kind == "conditional"]
    assert rule.text() == "What is Rui Alves's tea preference in this case: Before a long day at the kiln?"
    assert rule.text(scrambled=True).startswith(
        "What is Rui Alves's preference tea in this case: kiln the at"
    )
    assert [item for item, _ in rule.rules] == ["Mint", "Assam"]


def test_the_default_answers_and_baselines_fall_behind(report: dict[str, Any]) -> None:
    for strategy in ("full", "path", "full without localisation"):
        assert row(report, strategy) == {
            "strategy": strategy,
            "type": "all",
            "questions": 10,
            **dict.fromkeys(("SEH@3", "SRS@3", "UOCS", "CRS"), 1.0),
        }
    appended = row(report, "append-only")
    assert appended["UOCS"] < 0.5
    assert row(report, "append-only", "static")["CRS"] == 0
    assert row(report, "append-only", "conditional")["CRS"] == 1  # nothing is lost, either
    assert (
        row(report, "relation-level", "static")["SEH@3"] == 0
    )  # the later statement took the place of the first
    assert row(report, "relation-level", "conditional")["CRS"] == 0  # one rule took the place of the other


def test_rows_have_a_type_for_each_kind_and_figures_where_they_mean_something(
    personas: list[Persona], report: dict[str, Any]
) -> None:
    assert [one["type"] for one in report["rows"][:4]] == ["all", "dynamic", "static", "conditional"]
    assert all(
        list(one) == ["strategy", "type", "questions", "SEH@3", "SRS@3", "UOCS", "CRS"]
        for one in report["rows"]
    )
    assert row(report, "full", "dynamic")["CRS"] is None
    assert row(report, "full", "static")["UOCS"] is None
    assert [one["strategy"] for one in report["cost"]] == list(memconflict.STRATEGIES)
    facts = sum(len(session.facts) for persona in personas for session in persona.sessions)
    assert all(one["rewrites"] == facts for one in report["cost"])


def test_what_is_not_told_is_not_found(personas: list[Persona], monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures are those of the memory: without facts they are 0."""
    monkeypatch.setattr(memconflict, "tell", lambda memory, session, cost: 0)
    empty = memconflict.measure(personas, hashing_encoder(), ["full"])
    assert {row(empty, "full")[name] for name in memconflict.FIGURES} == {0.0}


def test_turns_that_tell_the_answer_are_looked_for_with_each_weight(personas: list[Persona]) -> None:
    found = memconflict.measure(personas, hashing_encoder(256), ["full"], weights=(0.0, 50.0))
    rows = [(row["type"], row["weight of facts"]) for row in found["turns"]]
    assert rows == [(kind, weight) for weight in (0.0, 50.0) for kind in memconflict.TYPES]
    assert all(row["turn in 8"] == 1 for row in found["turns"])  # there are four turns
    [static] = [row for row in found["turns"] if (row["type"], row["weight of facts"]) == ("static", 50.0)]
    assert static["turn first"] == 1
    assert "turn first" in memconflict.costs(found)[-1]


def test_the_command_writes_rows(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memconflict, "resolve", lambda _: hashing_encoder())
    out = tmp_path / "out.json"
    memconflict.main([str(file), "--strategies", "full", "--cache", str(tmp_path), "--json", str(out)])
    written = json.loads(out.read_text())
    assert list(written) == ["rows"]
    assert [one["type"] for one in written["rows"]] == ["all", "dynamic", "static", "conditional"]


@pytest.mark.parametrize(
    "arguments", [["none"], ["{file}", "--strategies", "magic"], ["{bad}"], ["{file}", "--json", "/no/x"]]
)
def test_bad_arguments_are_refused(arguments: list[str], file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\n")
    with pytest.raises(SystemExit) as error:
        memconflict.main([one.format(file=file, bad=bad) for one in arguments])
    assert error.value.code == 2


def test_the_counts_of_the_data_set(data_dir: Path) -> None:
    path = data_dir / "memconflict" / "step4_1.jsonl"
    if not path.is_file():
        pytest.skip("MemConflict is not here")
    personas = memconflict_data.load(path)
    found = questions(personas)
    assert [len(one.sessions) for one in personas] == [53, 51, 51, 53, 53, 53]
    assert Counter(one.kind for one in found) == {"dynamic": 584, "static": 72, "conditional": 90}
    assert Counter(one.change for one in found if one.change) == {
        "changed": 390,
        "same": 127,
        "gone": 55,
        "began": 12,
    }
