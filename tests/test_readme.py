"""The README's Python really runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block_runs(number: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BLOCKS[number]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    if number == 0:
        assert done.stdout.splitlines()[0].endswith("We moved to Porto last week.")


def test_the_readme_opens_with_the_two_commands_and_fifteen_lines() -> None:
    head = README.read_text()
    assert head.index("make demo") < head.index("make test") < head.index("```python")
    assert len(BLOCKS[0].splitlines()) <= 15
