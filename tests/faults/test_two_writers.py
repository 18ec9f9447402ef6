"""Two processes that write to one journal at once."""

from __future__ import annotations

from pathlib import Path

from hmem_core.journal.sqlite import SqliteJournal
from tests.faults.harness import Nursery
from tests.faults.journal_tasks import write_beside


def test_two_writers_lose_nothing_and_keep_their_order(tmp_path: Path) -> None:
    path = str(tmp_path / "journal")
    with Nursery(write_beside) as one, Nursery(write_beside) as other:
        children = [
            one.start(write_beside, path, "one", 1000),  # both create it
            other.start(write_beside, path, "other", 1000),
        ]
        assert 2000 in [head for child in children for head in child.said()]
        assert [child.status for child in children] == [0, 0]

    journal = SqliteJournal(path, create=False)
    texts = [entry.text for _, entry in journal.read()]
    journal.close()
    for name in ("one", "other"):
        assert [text for text in texts if text.startswith(f"{name} ")] == [f"{name} {n}" for n in range(1000)]
    assert len(texts) == 2000
