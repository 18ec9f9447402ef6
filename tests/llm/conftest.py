"""What tests of models share: a server that is scripted, and the real one where there is one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.llm.scripted import ScriptedServer

LIVE = "HMEM_LLM_BASE_URL"


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("live") is not None and not os.environ.get(LIVE):
        pytest.skip(f"no model to talk to; {LIVE} says where one is")


@pytest.fixture
def scripted_server() -> Iterator[ScriptedServer]:
    """A server that answers "ok" until the test gives it another script."""
    with ScriptedServer() as server:
        yield server


@pytest.fixture(params=["scripted", pytest.param("live", marks=pytest.mark.live)])
def endpoint(request: pytest.FixtureRequest, scripted_server: ScriptedServer) -> str:
    """The address of a scripted server, and in a second run that of a real one, where there is one."""
    return scripted_server.url if request.param == "scripted" else os.environ[LIVE]
