"""What tests of models share: a server that is scripted, and the real one where there is one."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator

import pytest

from tests.llm.endpoints import SLOWEST, Endpoint
from tests.llm.helpers import MODEL
from tests.llm.scripted import ScriptedServer

LIVE = "HMEM_LLM_BASE_URL"
LIVE_MODEL = "HMEM_LLM_MODEL"


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("live") is None:
        return
    chosen = "live" in item.config.getoption("markexpr")
    if not chosen or not os.environ.get(LIVE):
        pytest.skip(f"a real model is asked with -m live, and where {LIVE} says where it is")


@pytest.fixture
def scripted_server() -> Iterator[ScriptedServer]:
    """A server that answers "ok" until the test gives it another script."""
    with ScriptedServer() as server:
        yield server


@pytest.fixture(
    params=["scripted", pytest.param("live", marks=[pytest.mark.live, pytest.mark.timeout(1800)])]
)
def endpoint(request: pytest.FixtureRequest) -> Endpoint:
    """A scripted endpoint, and in a second run the real one, where it is asked for."""
    if request.param == "live":
        return request.getfixturevalue("live_endpoint")
    return Endpoint(
        request.getfixturevalue("scripted_server").url, MODEL, request.getfixturevalue("scripted_server")
    )


@pytest.fixture(scope="session")
def live_endpoint() -> Endpoint:
    """The real one, with the model of that name or the first that it lists."""
    url = os.environ[LIVE]
    name = os.environ.get(LIVE_MODEL)
    if name is None:
        with urllib.request.urlopen(f"{url.rstrip('/')}/models", timeout=SLOWEST) as answer:
            name = json.load(answer)["data"][0]["id"]
    return Endpoint(url, name)
