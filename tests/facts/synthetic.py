"""Large fact graphs, made directly as columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hmem_core.columns.blocks import BLOCK_ROWS
from hmem_core.columns.factnames import FactNames, fold
from hmem_core.columns.facts import FactColumns
from hmem_core.columns.facttables import CHANGES, TELLINGS, UNITS, Members, Table
from hmem_core.columns.keys import key_hash
from hmem_core.journal.entries import ACTIVE, OPEN_END, OPEN_START

DIMENSION = 4


def _table(types: dict[str, type[np.generic]], rows: int, **values: object) -> Table:
    columns = {
        name: np.broadcast_to(np.asarray(values.get(name, 0), dtype), rows) for name, dtype in types.items()
    }
    return Table(
        types, pa.RecordBatch.from_pydict({name: pa.array(one.copy()) for name, one in columns.items()})
    )


def graph(units: int, chain: int = 0, per_subject: int = 10, category: str | None = None) -> FactColumns:
    """A graph of so many units, ``per_subject`` of each subject and each with a relation of its own there.

    All have the category, if one is given.
    The last `chain` units rest each on the one before it, the first of them on unit 0.
    """
    subjects = -(-units // per_subject)
    texts = [f"subject {n}" for n in range(subjects)] + [f"relation {n}" for n in range(per_subject)]
    texts += ["some value"] if category is None else ["some value", category]
    codes = np.arange(len(texts))
    facts = FactColumns(DIMENSION)
    narrow = pa.RecordBatch.from_pydict(
        {
            "hash": pa.array(np.array([key_hash(fold(text)) for text in texts], np.uint64)),
            "alias": pa.array(codes.astype(np.int32)),
            "policy": pa.array(np.zeros(len(texts), np.uint8)),
            "uses": pa.array(np.full(len(texts), per_subject, np.int32)),
            "seq": pa.array(np.full(len(texts), 2, np.int64)),
        }
    )
    batches = []
    for first in range(0, len(texts), BLOCK_ROWS):
        some = texts[first : first + BLOCK_ROWS]
        flat = pa.array(np.ones(len(some) * DIMENSION, np.float32))
        vectors = pa.FixedSizeListArray.from_arrays(flat, DIMENSION)
        batches.append(
            pa.RecordBatch.from_pydict({"text": pa.array(some, pa.large_string()), "vector": vectors})
        )
    facts.names = FactNames.restore(DIMENSION, narrow, batches, [2] * len(batches))
    rows = np.arange(units)
    slots = {
        "subject": rows // per_subject,
        "relation": subjects + rows % per_subject,
        "object": subjects + per_subject,
        "category": -1 if category is None else len(texts) - 1,
    }
    now = {"status": ACTIVE, "valid_from": OPEN_START, "valid_to": OPEN_END, "confidence": 1.0, "by": -1}
    facts.units = _table(UNITS, units, **slots, **now, seq=2, change=rows)
    facts.changes = _table(CHANGES, units, **now, unit=rows, previous=-1, seq=2, why=1)
    told = {"confidence": 1.0, "valid_from": OPEN_START, "valid_to": OPEN_END}
    facts.tellings = _table(TELLINGS, units, **told, unit=rows, live=1, seq=2)
    rests = rows >= units - chain
    supports = np.maximum(rows - 1, 0)
    if chain:
        supports[units - chain] = 0
    facts.because = Members(np.cumsum(rests), supports[rests])
    facts.contexts, facts.sources = Members(np.zeros(units, np.int64)), Members(np.zeros(units, np.int64))
    facts.stamp = 2
    facts.reindex()
    return facts
