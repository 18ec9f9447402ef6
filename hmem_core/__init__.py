"""hmem: a memory engine that lives inside LLM agents.

    import hmem_core as hmem

    memory = hmem.open("agent-memory")
    memory.add("We moved to Porto last week.", session="s1")
    memory.search("Where do they live now?")

Everything is imported when it is first used: importing this package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hmem_core.aio import AsyncMemory
    from hmem_core.embedding.base import Encoder
    from hmem_core.embedding.function import FunctionEncoder
    from hmem_core.embedding.onnx import OnnxEncoder
    from hmem_core.errors import (
        Closed,
        Conflict,
        Damaged,
        EncoderError,
        EncoderMismatch,
        EncoderMissing,
        HmemError,
        InvalidInput,
        MemoryNotFound,
        NotFound,
        SegmentNotFound,
        StorageError,
        TurnForgotten,
        TurnNotFound,
    )
    from hmem_core.memory import Memory, open, verify
    from hmem_core.options import ReadingOptions, SegmentOptions
    from hmem_core.records import (
        Added,
        Context,
        EncoderIdentity,
        Evidence,
        Forgotten,
        Line,
        Segment,
        Skipped,
        Stats,
        Turn,
        Verified,
        VerifiedCheckpoint,
    )

__version__ = "0.1.0.dev0"

__all__ = [
    "Added",
    "AsyncMemory",
    "Closed",
    "Conflict",
    "Context",
    "Damaged",
    "Encoder",
    "EncoderError",
    "EncoderIdentity",
    "EncoderMismatch",
    "EncoderMissing",
    "Evidence",
    "Forgotten",
    "FunctionEncoder",
    "HmemError",
    "InvalidInput",
    "Line",
    "Memory",
    "MemoryNotFound",
    "NotFound",
    "OnnxEncoder",
    "ReadingOptions",
    "Segment",
    "SegmentNotFound",
    "SegmentOptions",
    "Skipped",
    "Stats",
    "StorageError",
    "Turn",
    "TurnForgotten",
    "TurnNotFound",
    "Verified",
    "VerifiedCheckpoint",
    "open",
    "verify",
]

_ELSEWHERE = {
    "AsyncMemory": "aio",
    "Encoder": "embedding.base",
    "FunctionEncoder": "embedding.function",
    "Memory": "memory",
    "OnnxEncoder": "embedding.onnx",
    "ReadingOptions": "options",
    "SegmentOptions": "options",
    "open": "memory",
    "verify": "memory",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if (module := _ELSEWHERE.get(name)) is None:
        errors = importlib.import_module(f"{__name__}.errors")
        module = "errors" if name in errors.__all__ else "records"
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
