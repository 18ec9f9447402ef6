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
    from hmem_core.embedding.base import Encoder, Reranker
    from hmem_core.embedding.function import FunctionEncoder
    from hmem_core.embedding.onnx import OnnxEncoder
    from hmem_core.embedding.reranker import OnnxReranker
    from hmem_core.errors import (
        BudgetExceeded,
        Closed,
        Conflict,
        Damaged,
        EncoderError,
        EncoderMismatch,
        EncoderMissing,
        EventNotFound,
        HmemError,
        InvalidInput,
        LLMError,
        LLMMissing,
        LLMRefused,
        LLMUnavailable,
        MalformedReply,
        MemoryNotFound,
        NotFound,
        RewriteNotFound,
        SegmentNotFound,
        StorageError,
        TurnForgotten,
        TurnNotFound,
        UnitForgotten,
        UnitNotFound,
    )
    from hmem_core.localised import Localisation, LocalisedGraph, LocalisedPath
    from hmem_core.memory import Memory
    from hmem_core.opening import open, verify
    from hmem_core.options import (
        LLM,
        Budget,
        EventOptions,
        FactOptions,
        GuidedOptions,
        Prices,
        ReadingOptions,
        SegmentOptions,
    )
    from hmem_core.records import (
        Added,
        Change,
        Context,
        Contradiction,
        EncoderIdentity,
        Event,
        Evidence,
        FactDraft,
        Forgotten,
        Guided,
        GuidedStage,
        Line,
        Rewrite,
        Segment,
        Skipped,
        TimelineItem,
        Turn,
        Unit,
        Version,
        Why,
    )
    from hmem_core.reports import LedgerSnapshot, Stats, Usage, Verified, VerifiedCheckpoint

__version__ = "0.1.0.dev0"

__all__ = [  # noqa: RUF022 - in the order of `sorted`, as `dir` has them
    "Added",
    "AsyncMemory",
    "Budget",
    "BudgetExceeded",
    "Change",
    "Closed",
    "Conflict",
    "Context",
    "Contradiction",
    "Damaged",
    "Encoder",
    "EncoderError",
    "EncoderIdentity",
    "EncoderMismatch",
    "EncoderMissing",
    "Event",
    "EventNotFound",
    "EventOptions",
    "Evidence",
    "FactDraft",
    "FactOptions",
    "FactSlots",
    "Forgotten",
    "FunctionEncoder",
    "Guided",
    "GuidedOptions",
    "GuidedStage",
    "HmemError",
    "InvalidInput",
    "LLM",
    "LLMError",
    "LLMMissing",
    "LLMRefused",
    "LLMUnavailable",
    "LedgerSnapshot",
    "Line",
    "Localisation",
    "LocalisedGraph",
    "LocalisedPath",
    "MalformedReply",
    "Memory",
    "MemoryNotFound",
    "NotFound",
    "OnnxEncoder",
    "OnnxReranker",
    "Prices",
    "ReadingOptions",
    "Reranker",
    "Rewrite",
    "RewriteNotFound",
    "Segment",
    "SegmentNotFound",
    "SegmentOptions",
    "Skipped",
    "Stats",
    "StorageError",
    "TimelineItem",
    "Turn",
    "TurnForgotten",
    "TurnNotFound",
    "Unit",
    "UnitForgotten",
    "UnitNotFound",
    "Usage",
    "Verified",
    "VerifiedCheckpoint",
    "Version",
    "Why",
    "open",
    "verify",
]

_ELSEWHERE = {
    "AsyncMemory": "aio",
    "Budget": "options",
    "Encoder": "embedding.base",
    "EventOptions": "options",
    "FactOptions": "options",
    "FactSlots": "records",
    "FunctionEncoder": "embedding.function",
    "GuidedOptions": "options",
    "LLM": "options",
    "LedgerSnapshot": "reports",
    "Localisation": "localised",
    "LocalisedGraph": "localised",
    "LocalisedPath": "localised",
    "Memory": "memory",
    "OnnxEncoder": "embedding.onnx",
    "OnnxReranker": "embedding.reranker",
    "Prices": "options",
    "ReadingOptions": "options",
    "Reranker": "embedding.base",
    "SegmentOptions": "options",
    "Stats": "reports",
    "Usage": "reports",
    "Verified": "reports",
    "VerifiedCheckpoint": "reports",
    "open": "opening",
    "verify": "opening",
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
