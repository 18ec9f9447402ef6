"""Other ways to find turns, over the same texts and the same embeddings: what the views are measured beside.

Each is small, and does what its source describes as far as that goes without a language model.
"""

from __future__ import annotations

from bench.quality.baselines.base import Build, Corpus, Find
from bench.quality.baselines.flat import bm25, dense, full_context, rrf
from bench.quality.baselines.memtree import memtree
from bench.quality.baselines.raptor import raptor

__all__ = ["BASELINES", "Build", "Corpus", "Find"]

BASELINES: dict[str, Build] = {
    "plain-dense": dense,
    "bm25": bm25,
    "rrf": rrf,
    "raptor": raptor,
    "memtree": memtree,
    "full-context": full_context,
}
"""By the name under which their rows stand beside those of views."""
