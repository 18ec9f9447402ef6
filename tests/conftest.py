"""Settings and fixtures that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: the first call of a kernel compiles it.
settings.register_profile("default", max_examples=50, deadline=None)
settings.register_profile("soak", max_examples=5000, deadline=None)
settings.load_profile("default")


@pytest.fixture
def data_dir() -> Path:
    """Where the evaluation data sets are; the test is skipped where they are not."""
    beside = Path(__file__).parent.parent.parent / "shared" / "data"
    directory = Path(os.environ.get("HMEM_DATA") or beside)
    if not directory.is_dir():
        pytest.skip("the evaluation data sets are not here; HMEM_DATA says where they are")
    return directory
