"""The fact view: from a question to the facts that answer it.

A question names subjects, relations, objects, categories and contexts. What matches these best gives
temporary units, localisation the paths around them, and their units are ranked by φ (HiGram, arXiv
2608.05095; how a question is read without a model is ours).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hmem_core.columns.factindex import SLOTS
from hmem_core.columns.facts import FactColumns
from hmem_core.columns.terms import Analyzer
from hmem_core.facts.asking import Asked, ask, matches
from hmem_core.facts.localisation import Temporary, localise
from hmem_core.facts.matching import Named
from hmem_core.journal.entries import ACTIVE, OUTDATED, PENDING, SUPERSEDED
from hmem_core.options import FactOptions
from hmem_core.retrieval.units import Moment

__all__ = ["Question", "Ranked", "rank"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

_LATEST = 4096
"""Units of one name that are looked at, the latest."""
_FEW = 16_384
"""Up to so many names, a question that names nothing is compared with all of them."""
_NEAREST = 16
"""Names that such a question, or one without a subject, starts from."""
_SLOT_LATEST = 64
"""Units of one subject and relation that are looked at, the latest."""
_HEAD = 64
"""Units that are ranked in any case, and whose rivals are looked up: those whose slots match best."""
_WANTED = 4
"""Temporary units of a question."""
_CLOSE = 0.9
"""What matches less, in units of the best match, is not what a question speaks of."""


class Question(NamedTuple):
    """A question and the moment it is asked of."""

    text: str
    vector: FloatArray
    now: int
    """The time in question, UTC microseconds."""
    between: tuple[int, int] | None = None
    """Only what was true at some time in [start, end), UTC microseconds."""
    as_of: Moment | None = None
    past: bool | None = None
    """Whether what holds no longer is wanted; None to read that from the question."""


class Ranked(NamedTuple):
    """Units by their relevance, the best first; all arrays have the same length."""

    asked: Asked
    units: IntArray
    changes: IntArray
    """Of each unit, the change that made it what it was at the moment in question."""
    scores: FloatArray
    parts: dict[str, FloatArray]
    """What adds up to the scores."""
    attributes: FloatArray
    """How well the slots match, 0 to 1."""


def rank(facts: FactColumns, question: Question, analyzer: Analyzer, options: FactOptions) -> Ranked:
    """Rank the facts around a question.

    φ of a unit is that of a path of this unit alone: how well its slots match, whether it holds at the time
    in question, and how well its contexts fit. It counts as far as the slots match, for what has nothing to
    do with the question is no answer to it, however well it holds (ours). Ties: higher confidence, then the
    newer one, then the lower id.
    """
    asked = ask(facts, question.text, question.vector, analyzer, question.past)
    if options.localisation:
        units = _region(facts, asked, question, analyzer, options)
    else:
        units = np.flatnonzero(facts.units["subject"] >= 0).astype(np.int32)
    units, changes = _known(facts, units, question)
    attributes = _attributes(facts, asked, units, analyzer)
    if options.localisation and units.size:
        head = units[np.argsort(-attributes, kind="stable")[:_HEAD]]
        units = np.union1d(units, _rivals(facts, head)).astype(np.int32)
        units, changes = _known(facts, units, question)
        attributes = _attributes(facts, asked, units, analyzer)
    parts = {
        "attributes": options.attributes * attributes,
        "dependency": np.full(units.size, options.dependency, np.float32),
        "validity": options.validity * _validity(facts, asked, changes, question),
        "context": options.context * _contexts(facts, asked, units, analyzer),
    }
    parts = {name: (attributes * part).astype(np.float32) for name, part in parts.items()}
    scores = np.add.reduce(list(parts.values()))
    columns = facts.changes
    order = np.lexsort((units, ~columns["valid_from"][changes], -columns["confidence"][changes], -scores))
    return Ranked(
        asked,
        units[order],
        changes[order],
        scores[order],
        {name: part[order] for name, part in parts.items()},
        attributes[order],
    )


def _known(facts: FactColumns, units: IntArray, question: Question) -> tuple[IntArray, IntArray]:
    """Those of the units that were there at the moment in question and true in the interval, and the changes
    that made them what they were."""
    changes = facts.units["change"][units]
    if question.as_of is not None:
        limit, column = question.as_of
        found = [facts.change_at(unit, limit, column) for unit in units.tolist()]
        changes = np.array(found, np.int32)
    kept = changes >= 0
    columns = facts.changes
    status = np.where(kept, columns["status"][changes], 0) if units.size else np.empty(0, np.uint8)
    kept &= np.isin(status, (ACTIVE, SUPERSEDED, PENDING, OUTDATED))
    if question.between is not None and units.size:
        start, end = question.between
        kept &= (columns["valid_from"][changes] < end) & (columns["valid_to"][changes] > start)
    return units[kept], changes[kept].astype(np.int32)


# -- where to look -----------------------------------------------------------------------------------


def _region(
    facts: FactColumns, asked: Asked, question: Question, analyzer: Analyzer, options: FactOptions
) -> IntArray:
    """The units of the region that localisation finds."""
    starts = _starts(facts, asked, analyzer)
    score = _attributes(facts, asked, starts, analyzer)
    best = starts[np.argsort(-score, kind="stable")[:_HEAD]]
    region = localise(facts, _wanted(facts, asked, best, np.sort(score)[::-1]), question.now, options)
    found = {*region.units, *best.tolist()}
    found.update(unit for path in region.candidates for unit in path.units)
    return np.array(sorted(found), np.int32)


def _wanted(facts: FactColumns, asked: Asked, best: IntArray, scores: FloatArray) -> list[Temporary]:
    """Temporary units: one for each subject and relation that a question speaks of, as far as it is known."""
    columns, vectors = facts.units, facts.names.vectors

    def named(code: int) -> Named | None:
        return Named(code, vectors[code]) if code >= 0 else None

    contexts = tuple(Named(code, vectors[code]) for code in sorted(asked.named["context"]))
    made: dict[tuple[int, int], Temporary] = {}
    for unit, score in zip(best.tolist(), scores.tolist(), strict=False):
        subject, relation, object, category = (int(columns[slot][unit]) for slot in SLOTS)
        if len(made) == _WANTED or score < _CLOSE * float(scores[0]):
            break
        if object not in asked.named["object"]:
            object = -1
        temporary = Temporary(named(subject), named(relation), named(object), named(category), contexts)
        made.setdefault((subject, relation), temporary)
    return list(made.values())


def _starts(facts: FactColumns, asked: Asked, analyzer: Analyzer) -> IntArray:
    """Units that hold a name of the question, or one near it: the work is bounded, whatever the memory's
    size."""
    if subjects := asked.named["subject"]:
        return _holding(facts, {"subject": subjects, "object": subjects})
    others = {slot: asked.named[slot] for slot in ("object", "context", "relation", "category")}
    found = [_holding(facts, {slot: codes}) for slot, codes in others.items() if codes]
    for slot in ("relation", "category"):  # these are few
        distinct = facts.index.distinct(slot, facts.units)
        near = matches(facts, asked, slot, distinct, analyzer)
        best = distinct[np.argsort(-near, kind="stable")[:_NEAREST]]
        found.append(_holding(facts, {slot: frozenset(best.tolist())}))
    if not asked.anything and len(facts.names) <= _FEW:
        codes = np.arange(len(facts.names), dtype=np.int32)
        near = facts.names.gather(codes) @ asked.vector
        nearest = frozenset(np.argsort(-near, kind="stable")[:_NEAREST].tolist())
        found.append(_holding(facts, dict.fromkeys(("subject", "object", "context"), nearest)))
    return np.unique(np.concatenate(found)).astype(np.int32)


def _holding(facts: FactColumns, named: dict[str, frozenset[int]]) -> IntArray:
    """The latest units that hold one of these names in one of these slots, ascending."""
    lists = [
        facts.index.slots[slot].latest(code, _LATEST)
        for slot, codes in named.items()
        for code in sorted(codes)
    ]
    return np.unique(np.concatenate([np.empty(0, np.int32), *lists])).astype(np.int32)


def _rivals(facts: FactColumns, units: IntArray) -> IntArray:
    """What has the same subject and relation as one of the units."""
    columns = facts.units
    slots = dict.fromkeys(
        zip(columns["subject"][units].tolist(), columns["relation"][units].tolist(), strict=True)
    )
    lists = [facts.rival_units(*slot)[-_SLOT_LATEST:] for slot in slots]
    return np.unique(np.concatenate([np.empty(0, np.int32), *lists])).astype(np.int32)


# -- how well it fits --------------------------------------------------------------------------------


def _attributes(facts: FactColumns, asked: Asked, units: IntArray, analyzer: Analyzer) -> FloatArray:
    """The mean over the slots that the question speaks of: of relation and category always, of subject and
    object where it names one. A name that some unit has as its subject may be meant as the object as well:
    "Who knows Bob?". Words of an object describe a fact as well as its relation does."""
    columns = facts.units
    relation = np.maximum(
        matches(facts, asked, "relation", columns["relation"][units], analyzer),
        matches(facts, asked, "object", columns["object"][units], analyzer, cosine=False),
    )
    category = columns["category"][units]
    near = matches(facts, asked, "category", category, analyzer)
    found = [relation, np.where(category >= 0, near, relation)]
    subjects, objects = asked.named["subject"], asked.named["object"] - asked.named["subject"]
    for names, slots in ((subjects, ("subject", "object")), (objects, ("object",))):
        if names:
            held = [np.isin(columns[slot][units], sorted(names)) for slot in slots]
            found.append(np.any(held, axis=0).astype(np.float32))
    result: FloatArray = np.mean(found, axis=0, dtype=np.float32)
    return result


def _validity(facts: FactColumns, asked: Asked, changes: IntArray, question: Question) -> FloatArray:
    """1 for what holds at the time in question, or for all that ever did if that is asked for."""
    columns = facts.changes
    status = columns["status"][changes]
    if question.between is not None:
        fits = np.isin(status, (ACTIVE, SUPERSEDED))
    elif asked.past:
        fits = np.isin(status, (ACTIVE, SUPERSEDED, OUTDATED))
    else:
        start, end = columns["valid_from"][changes], columns["valid_to"][changes]
        fits = (status == ACTIVE) & (start <= question.now) & (end > question.now)
    return fits.astype(np.float32)


def _contexts(facts: FactColumns, asked: Asked, units: IntArray, analyzer: Analyzer) -> FloatArray:
    """How well contexts fit: 1 for a unit without any; else what the best of them matches, and half of it
    given where the question names no context."""
    found = np.ones(units.size, np.float32)
    lists = [facts.contexts[unit] for unit in units.tolist()]
    sizes = np.array([codes.size for codes in lists], np.int64)
    held = np.flatnonzero(sizes)
    if held.size:
        near = matches(facts, asked, "context", np.concatenate(lists), analyzer)
        begun = (np.cumsum(sizes) - sizes)[held]
        best = np.maximum.reduceat(near, begun)
        found[held] = best if asked.named["context"] else 0.5 + 0.5 * best
    return found
