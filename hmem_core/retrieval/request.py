"""What a search is asked."""

from __future__ import annotations

from typing import Literal

import msgspec

from hmem_core.options import ReadingOptions
from hmem_core.retrieval import filters
from hmem_core.times import TimeLike

__all__ = ["Request"]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for."""

    query: str
    k: int | Literal["auto"] = 8
    view: str = "fused"
    between: tuple[TimeLike | None, TimeLike | None] | None = None
    where: filters.Where | None = None
    as_of: int | TimeLike | None = None
    explain: bool = False
    reading: ReadingOptions | None = None
    now: TimeLike | None = None
