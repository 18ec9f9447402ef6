"""What a terminal is shown, and what it must not be."""

from __future__ import annotations

import datetime as dt
import re

import pytest

from hmem_core.interfaces.output import Output, printable
from hmem_core.records import Context, Evidence, Segment, Turn

AT = dt.datetime(2026, 1, 1, 23, 30, tzinfo=dt.UTC)
EVIL = "one\x1b[31mred\x07\x9b2J [bold]not[/bold] :smile:"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Output:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    out = Output(json=False, tz=dt.timezone(dt.timedelta(hours=1)))
    assert out.console.is_terminal
    return out


def test_printable_is_one_line_without_controls() -> None:
    assert printable("a\tb\r\nc\u2028d\x00\x1b\x9be") == "a b  c d���e"
    assert printable("abcdef", 4) == "abc…"
    assert printable("абв 漢字 🙂") == "абв 漢字 🙂"


def test_a_terminal_gets_a_table_in_local_time(terminal: Output, capsys: pytest.CaptureFixture[str]) -> None:
    hit = Evidence(
        kind="turn",
        text=EVIL,
        score=0.5,
        span=(3, 3),
        turns=(3,),
        at=AT,
        role="user",
        signals={"dense": 0.75, "tree": -0.25},
    )
    terminal.hits([hit])
    out = capsys.readouterr().out
    assert "2026-01-02 00:30" in out
    assert "0.500 = dense 0.750 - tree 0.250" in out
    assert "[bold]not[/bold] :smile:" in out
    assert "\x1b[31m" not in out
    assert "\x07" not in out
    assert "\x9b" not in out


@pytest.mark.parametrize(("speaker", "told"), [(None, "3 turns"), ("Ann", "Ann, 3 turns")])
def test_a_segment_has_its_span_and_how_many_turns(
    speaker: str | None, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hit = Evidence(
        kind="segment",
        text="Ann: one\nAnn: two\nAnn: five",
        score=0.5,
        span=(3, 7),
        turns=(3, 4, 7),
        at=AT,
        role="user",
        speaker=speaker,
    )
    Output(json=False).hits([hit])
    row = capsys.readouterr().out.rstrip("\n").split("\t")
    assert row == ["3-7", "0.500", AT.isoformat(), told, "Ann: one Ann: two Ann: five"]


def test_a_terminal_gets_whole_texts_without_controls(
    terminal: Output, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.turn(Turn(id=1, at=AT, text=EVIL + "\nnext line"))
    terminal.context(Context(text=EVIL + "\nnext line", tokens=9, lines=(), left_out=0))
    out = capsys.readouterr().out
    assert out.count("\nnext line\n") == 2
    assert "\x1b[31m" not in out


def test_a_long_text_is_cut_in_a_list(terminal: Output, capsys: pytest.CaptureFixture[str]) -> None:
    terminal.turns([Turn(id=1, at=AT, text="word " * 10_000)])
    assert len(capsys.readouterr().out) < 5_000


def test_a_tree_is_drawn_with_what_is_left_out(terminal: Output, capsys: pytest.CaptureFixture[str]) -> None:
    def segment(id: int, span: tuple[int, int], parent: int | None, children: tuple[int, ...]) -> Segment:
        first, last = span
        day = dt.timedelta(days=1)
        return Segment(
            id=id,
            span=span,
            height=min(1, len(children)),
            size=last - first + 1,
            start=AT + first * day,
            end=AT + last * day,
            parent=parent,
            children=children,
            text="Ann: first\nAnn: " + EVIL,
        )

    drawn = [
        segment(20, (0, 9), None, (3, 4, 15)),
        segment(3, (0, 3), 20, (0, 1, 2, 5)),
        segment(0, (0, 0), 3, ()),
        segment(15, (6, 9), 20, (6, 7)),
    ]
    terminal.tree(drawn, more=True)
    out = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[0] == "[0-9] 10 turns  2026-01-02 to 01-11  height 1  Ann: first"
    assert lines[1].startswith("├── [0-3] 4 turns  2026-01-02 to 01-05  height 1  Ann: one")
    assert lines[2].startswith("│   ├── [0]  2026-01-02  Ann: ")
    assert lines[3] == "│   └── … 3 single turns"
    assert lines[4].startswith("├── [6-9] 4 turns")
    assert lines[5] == "└── … 1 more, of 2 turns"
    assert "\x07" not in out
    assert "\x9b" not in out
    terminal.tree([], more=True)
    assert capsys.readouterr().out == ""
