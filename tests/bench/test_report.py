"""The report: what is there is measured, and its tables come into the document."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bench.quality import report
from bench.quality.rendering import BLOCKS
from tests.bench.locomo import LOCOMO
from tests.bench.test_longmemeval import write
from tests.bench.test_memconflict import PERSONA
from tests.bench.test_realmem import PERSON
from tests.bench.test_segmentation import BOATS, BREAD
from tests.embedding import tiny

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "quality.md"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    tiny.write_directory(tmp_path / "model")
    data = tmp_path / "data"
    for name in ("locomo", "realmem", "segmentation", "longmemeval", "memconflict"):
        (data / name).mkdir(parents=True)
    (data / "locomo" / "locomo10.json").write_text(json.dumps(LOCOMO))
    for person in ("Ann", "Bo", "Cy"):
        (data / "realmem" / f"{person}_dialogues_1.json").write_text(json.dumps(PERSON))
    dialogues = [
        {"utterances": [*BOATS, *BREAD], "segments": [3, 3], "set": kind} for kind in ("dev", "test")
    ]
    (data / "segmentation" / "tiage.json").write_text(json.dumps(dialogues))
    write(data / "longmemeval" / "some.json")
    (data / "memconflict" / "step4_1.jsonl").write_text(json.dumps(PERSONA) + "\n")
    return data


def run(tmp_path: Path, *given: str) -> None:
    places = {"figures": "figures", "document": "quality.md", "encoder": "model", "cache": "cache"}
    common = [part for option, name in places.items() for part in (f"--{option}", str(tmp_path / name))]
    report.main([*common, *given])


def test_all_that_is_there_is_measured_and_filled_in(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "quality.md"
    blocks = "\n".join(f"Before {name}.\n<!-- {name} -->\n<!-- /{name} -->\n" for name in BLOCKS)
    document.write_text(f"# Quality\n\nBy hand.\n\n{blocks}")
    run(tmp_path, "--data", str(data))
    filled = document.read_text()
    for name in BLOCKS:
        table = re.search(
            rf"Before {name}\.\n<!-- {name} -->\n(\|.*?\|)\n<!-- /{name} -->", filled, re.DOTALL
        )
        assert table, name
        widths = {line.count("|") for line in table[1].splitlines()}
        assert len(widths) == 1, name
    assert filled.startswith("# Quality\n\nBy hand.\n")
    assert {path.stem for path in (tmp_path / "figures").iterdir()} == {*report.COMMANDS}
    assert (tmp_path / report.PLOT).is_file()
    assert "| bm25 " in filled
    capsys.readouterr()
    run(tmp_path)
    assert document.read_text() == filled
    assert "as it was" in capsys.readouterr().out


def test_what_is_not_there_is_said_and_left_alone(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "quality.md"
    text = "<!-- realmem -->\nold\n<!-- /realmem -->\n<!-- longmemeval -->\nold\n<!-- /longmemeval -->\n"
    document.write_text(text)
    for path in (data / "realmem").iterdir():
        path.unlink()
    run(tmp_path, "--data", str(data), "--only", "realmem,longmemeval")
    found = capsys.readouterr()
    assert "realmem: not measured" in found.err
    assert "for want of figures: realmem" in found.out
    assert document.read_text().startswith(
        "<!-- realmem -->\nold\n<!-- /realmem -->\n<!-- longmemeval -->\n|"
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("<!-- guessing -->\n<!-- /guessing -->", "not one of locomo-all"),
        ("<!-- realmem -->\n", "must stand around a table"),
        ("<!-- /realmem -->\n", "must stand around a table"),
    ],
)
def test_a_document_that_cannot_be_filled_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        report.fill(text, {})


def test_arguments_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    for given in (["--data", str(tmp_path / "none")], ["--document", str(tmp_path / "none.md")]):
        with pytest.raises(SystemExit, match="2"):
            report.main(given)


def test_every_table_has_a_place_in_the_document() -> None:
    reports: dict[str, Any] = {}
    _, left = report.fill(DOCUMENT.read_text(encoding="utf-8"), reports)
    assert sorted(left) == sorted(BLOCKS)
