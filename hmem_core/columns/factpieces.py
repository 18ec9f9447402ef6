"""The fact graph in a checkpoint."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from hmem_core.columns.checkpoint import Loaded, Piece
from hmem_core.columns.factnames import FactNames
from hmem_core.columns.facts import FactColumns, Note
from hmem_core.columns.facttables import CHANGES, TELLINGS, UNITS, Members, Table
from hmem_core.columns.readings import Readings

__all__ = ["pieces", "restore"]


def pieces(facts: FactColumns) -> list[Piece]:
    """The files of a checkpoint, their content taken now; none where there never were facts."""
    if not facts.stamp:
        return []
    found = [
        _piece(f"facts-{name}", facts.stamp, batch)
        for name, batch in (
            ("units", facts.units.batch()),
            ("tellings", facts.tellings.batch()),
            ("changes", facts.changes.batch()),
            ("contexts", facts.contexts.batch()),
            ("sources", facts.sources.batch()),
            ("because", facts.because.batch()),
            ("narrow", facts.names.narrow_batch()),
            ("notes", _notes_batch(facts)),
            *((f"readings-{name}", batch) for name, batch in facts.readings.batches().items()),
        )
    ]
    for block, stamp in enumerate(facts.names.stamps):
        found.append(_piece(f"facts-names-{block:05d}", stamp, facts.names.batch(block)))
    return found


def _notes_batch(facts: FactColumns) -> pa.RecordBatch:
    seqs = sorted(facts.notes)
    bodies = [msgspec.msgpack.encode(facts.notes[seq]) for seq in seqs]
    return pa.RecordBatch.from_pydict(
        {
            "seq": pa.array(seqs, pa.int64()),
            "note": pa.array(bodies, pa.large_binary()),
        }
    )


def restore(dimension: int, loaded: Loaded) -> FactColumns:
    """The columns that `pieces` described.

    Raises:
        ValueError: the pieces do not fit together.
        KeyError: one is missing.
    """
    if "facts-units.arrow" not in loaded.batches:
        return FactColumns(dimension)
    batches = {name.removesuffix(".arrow"): batch for name, batch in loaded.batches.items()}
    blocks = sorted(name for name in batches if name.startswith("facts-names-"))
    facts = FactColumns(dimension)
    facts.names = FactNames.restore(
        dimension,
        batches["facts-narrow"],
        [batches[name] for name in blocks],
        [loaded.stamps[f"{name}.arrow"] for name in blocks],
    )
    facts.units = Table(UNITS, batches["facts-units"])
    facts.tellings = Table(TELLINGS, batches["facts-tellings"])
    facts.changes = Table(CHANGES, batches["facts-changes"])
    facts.contexts = Members.restore(batches["facts-contexts"])
    facts.sources = Members.restore(batches["facts-sources"])
    facts.because = Members.restore(batches["facts-because"])
    if len(facts.contexts) != len(facts.units) or not (
        len(facts.sources) == len(facts.because) == len(facts.tellings)
    ):
        raise ValueError("the facts of the checkpoint are not whole")
    notes = batches["facts-notes"]
    decoder = msgspec.msgpack.Decoder(Note)
    for seq, body in zip(notes.column("seq").to_pylist(), notes.column("note").to_pylist(), strict=True):
        facts.note(seq, decoder.decode(body))
    prefix = "facts-readings-"
    facts.readings = Readings.restore(
        {name.removeprefix(prefix): batch for name, batch in batches.items() if name.startswith(prefix)}
    )
    facts.stamp = loaded.stamps["facts-units.arrow"]
    facts.reindex()
    return facts


def _piece(name: str, stamp: int, batch: pa.RecordBatch) -> Piece:
    return Piece(f"{name}.arrow", stamp, lambda: batch)
