"""Where in the fact graph the answer to a question lies: its best paths, as records."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.facts import FactColumns
from hmem_core.effects import Embed, Program
from hmem_core.facts.localisation import Region, Temporary, localise
from hmem_core.facts.matching import Named
from hmem_core.localised import Localisation, LocalisedGraph, LocalisedPath
from hmem_core.options import FactOptions
from hmem_core.state import State, pack_vector, unpack_vector

__all__ = ["Wanted", "localisation", "locate"]

FloatArray = npt.NDArray[np.float32]


class Wanted(NamedTuple):
    """The names of a unit that is only asked for; None for a slot of which nothing is known."""

    subject: str | None
    relation: str | None
    object: str | None
    category: str | None
    contexts: tuple[str, ...]


def localisation(facts: FactColumns, region: Region) -> Localisation:
    """A region as a user sees it."""
    pairs = facts.index.micrographs
    return Localisation(
        paths=tuple(
            LocalisedPath(
                units=path.units,
                text=" → ".join(_sentence(facts, unit) for unit in path.units),
                score=path.score,
                attributes=path.attributes,
                dependency=path.dependency,
                validity=path.validity,
                context=path.context,
            )
            for path in region.candidates
        ),
        graphs=tuple(
            LocalisedGraph(
                subject=facts.names[int(pairs.first[graph])] or "",
                category=facts.names[int(pairs.second[graph])],
                score=relevance,
            )
            for graph, relevance in region.graphs
        ),
        region=tuple(sorted(region.units)),
        touched=region.touched,
    )


def _sentence(facts: FactColumns, unit: int) -> str:
    names = (facts.names[int(facts.units[slot][unit])] for slot in ("subject", "relation", "object"))
    return " ".join(name or "" for name in names)


def locate(
    read: Callable[[], AbstractContextManager[State]], wanted: Wanted, now: int, options: FactOptions
) -> Program[Localisation]:
    """Where the fact graph has what is wanted.

    Args:
        read: gives the state, held still.
        now: the time in question, UTC microseconds.
    """
    texts = [*filter(None, wanted[:4]), *wanted.contexts]
    vectors: dict[str, FloatArray] = {}
    while True:
        with read() as state:
            facts = state.facts
            codes = {text: facts.names.find(text) for text in texts}
            missing = [text for text, code in codes.items() if code is None and text not in vectors]
            if not missing:
                named: dict[str | None, Named] = {
                    text: Named(len(facts.names), vectors[text])
                    if code is None
                    else Named(code, facts.names.vectors[code])
                    for text, code in codes.items()
                }
                subject, relation, object, category = map(named.get, wanted[:4])
                contexts = tuple(named[text] for text in wanted.contexts)
                temporary = Temporary(subject, relation, object, category, contexts)
                return localisation(facts, localise(facts, [temporary], now, options))
        made = yield Embed(tuple(missing))
        rounded = (unpack_vector(pack_vector(vector)) for vector in made)  # as those in the graph are
        vectors.update(zip(missing, rounded, strict=True))
