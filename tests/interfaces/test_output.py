"""What a terminal is shown, and what it must not be."""

from __future__ import annotations

import datetime as dt

import pytest

from hmem_core.interfaces.output import Output, printable
from hmem_core.records import Context, Evidence, Turn

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
        kind="turn", text=EVIL, score=0.5, span=(3, 3), turns=(3,), at=AT, role="user", signals={"dense": 0.5}
    )
    terminal.hits([hit])
    out = capsys.readouterr().out
    assert "2026-01-02 00:30" in out
    assert "dense=0.500" in out
    assert "[bold]not[/bold] :smile:" in out
    assert "\x1b[31m" not in out
    assert "\x07" not in out
    assert "\x9b" not in out


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
