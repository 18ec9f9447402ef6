"""Ablations, curves and shuffles, on LoCoMo's format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.quality import ablation, curves, locomo_data, shuffling
from hmem_core.options import ReadingOptions
from tests.bench.locomo import LOCOMO
from tests.embedding import tiny


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[dict[str, Any], str]]:
    tiny.write_directory(tmp_path / "model")
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO))
    out = tmp_path / "out.json"
    common = ["--encoder", str(tmp_path / "model"), "--cache", str(tmp_path / "cache"), "--json", str(out)]

    def run(main: Callable[[list[str]], None], *given: str) -> tuple[dict[str, Any], str]:
        main([str(tmp_path / "locomo.json"), *common, *given])
        return json.loads(out.read_text()), capsys.readouterr().out

    return run


def test_every_option_of_reading_is_left_out_or_says_how() -> None:
    known = {field.name for field in msgspec.structs.fields(ReadingOptions)}
    named = {option for off in ablation.WITHOUT.values() for option in off}
    assert known <= named | ablation.SETTINGS | ablation.RERANKING
    assert not named & ablation.SETTINGS


def test_each_signal_is_left_out_once(run: Any) -> None:
    report, printed = run(ablation.main)
    views = list(ablation.readings())
    assert {row["view"] for row in report["rows"]} == set(views)
    assert {"fused", "without dense", "without lateral", "without fold"} <= set(views)
    assert {(one["view"], one["split"]) for one in report["changes"]} == {
        (view, half) for view in views[1:] for half in ("all", "dev", "test")
    }
    recall = {
        (row["view"], row["split"]): row["recall@8"] for row in report["rows"] if row["category"] == "all"
    }
    for one in report["changes"]:
        here = recall[one["view"], one["split"]] - recall["fused", one["split"]]
        assert one["change"] == pytest.approx(here, abs=2e-4)
    assert "| without tree " in printed
    assert ablation.readings()["without lexical"].reading.lexical == 0
    half, _ = run(ablation.main, "--split", "test")
    assert {row["split"] for row in half["rows"]} == {"test"}


def test_curves(run: Any, tmp_path: Path) -> None:
    plot = tmp_path / "curves.svg"
    given = ["--views", "fused,lexical", "--baselines", "bm25", "--plot", str(plot)]
    report, printed = run(curves.main, *given)
    places = {(row["view"], row["by"], row["at"]): row for row in report["rows"] if row["split"] == "all"}
    # The first boat is first by words; the sixth comes sixth, and the rain is not found.
    assert [places["lexical", "k", k]["recall"] for k in (1, 5, 8, 40)] == [0.5, 0.5, 0.75, 0.75]
    assert places["lexical", "k", 1]["precision"] == 0.5
    assert places["lexical", "k", 40]["turns"] == 7
    full = report["full context, tokens"]["all"]
    for view in ("fused", "lexical", "bm25"):
        spent = [places[view, "tokens", budget] for budget in curves.BUDGETS]
        assert all(row["tokens"] <= budget for row, budget in zip(spent, curves.BUDGETS, strict=True))
        assert spent[-1]["share"] == pytest.approx(spent[-1]["tokens"] / full, abs=1e-3)
    assert places["fused", "tokens", 4000]["recall"] == places["fused", "tokens", 4000]["share"] == 1
    assert ("fused", "auto", 0) in places
    assert ("bm25", "auto", 0) not in places
    assert "recall, tokens ≤" in printed
    drawn = plot.read_bytes()
    assert b"turns shown" in drawn
    run(curves.main, *given)
    assert plot.read_bytes() == drawn


def test_shuffled_turns_keep_what_they_are_and_lose_their_place(tmp_path: Path) -> None:
    (tmp_path / "locomo.json").write_text(json.dumps(LOCOMO))
    one = locomo_data.load(tmp_path / "locomo.json")[0]
    moved = shuffling.shuffled(one, 0.5, seed=1)
    assert sorted(turn.dia_id for turn in moved.turns) == sorted(turn.dia_id for turn in one.turns)
    apart = [
        place for place, (a, b) in enumerate(zip(one.turns, moved.turns, strict=True)) if a.dia_id != b.dia_id
    ]
    assert len(apart) == 4  # half of eight turns, two and two
    for before, after in zip(one.turns, moved.turns, strict=True):
        assert (before.session, before.at) == (after.session, after.at)
        there = one.turns[[turn.dia_id for turn in moved.turns].index(before.dia_id)]
        assert there.dia_id == after.dia_id
    assert shuffling.shuffled(one, 0.5, seed=1) == moved
    assert shuffling.shuffled(one, 0.0, seed=1) == one
    assert shuffling.shuffled(one, 0.5, seed=2) != moved


def test_shuffling_is_measured_beside_the_order_as_it_was(run: Any) -> None:
    report, printed = run(shuffling.main, "--seeds", "2")
    rows = {(row["view"], row["split"]): row for row in report["rows"] if row["category"] == "all"}
    for view in shuffling.ASKED:
        assert rows[view, "all"]["questions"] == rows[view + shuffling.SHUFFLED, "all"]["questions"] == 2
    assert rows["lexical", "all"]["recall@8"] == rows["lexical, shuffled", "all"]["recall@8"]
    changes = {(one["beside"], one["split"]): one["change"] for one in report["changes"]}
    assert changes["dense", "all"] == changes["lexical", "test"] == 0
    assert "| shuffled |" in printed
    with pytest.raises(SystemExit, match="2"):
        run(shuffling.main, "--share", "2")
