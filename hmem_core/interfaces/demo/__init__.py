"""The demo: a conversation of eight months that comes with the package, and questions about it."""

from __future__ import annotations

from importlib.resources import files
from io import BytesIO

import msgspec

from hmem_core.ingest.readers import read
from hmem_core.ingest.source import Source

__all__ = ["Question", "conversation", "questions"]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question about the conversation, and what is known of its answer."""

    question: str
    answer: str
    evidence: tuple[str, ...]
    """Keys of the turns that answer it; none if the conversation does not."""
    kind: str
    demo: bool = False
    """True for the handful that `hmem demo` asks."""


def conversation() -> Source:
    """The messages of the conversation."""
    data = files(__name__).joinpath("conversation.jsonl").read_bytes()
    return read(BytesIO(data), "the demo conversation")


def questions() -> list[Question]:
    """All questions, in the order of the file."""
    return msgspec.json.decode(files(__name__).joinpath("questions.json").read_bytes(), type=list[Question])
