"""Checkpoints: the state at one moment, as Arrow files that are opened by mapping them.

A checkpoint is a directory of Arrow IPC files and a manifest, written under a temporary name, synced,
and renamed into place; it is never changed afterwards. A file whose content has not changed since the
previous checkpoint is linked, not written again. Every byte is covered by a checksum that is verified when
the checkpoint is loaded. A checkpoint is never the only copy of anything: one that is missing, stale or
damaged is passed over, and the state is rebuilt from the journal.

One file lock serialises all who write or drop checkpoints, in all processes; the operating system
releases it when its holder dies, so everything temporary that is seen under the lock is left over.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import filelock
import msgspec
import pyarrow as pa
import xxhash

__all__ = ["Checkpoints", "Described", "Loaded", "Manifest", "Piece", "Report"]

FORMAT = 1
_MANIFEST = "manifest.json"
_TEMPORARY = ".tmp-"
_log = logging.getLogger("hmem.checkpoint")


class Piece(NamedTuple):
    """One file of a checkpoint: its name, the journal entry that changed it last, and its content."""

    name: str
    stamp: int
    batch: Callable[[], pa.RecordBatch]


class Described(NamedTuple):
    """Of which state a checkpoint is; see `Manifest`."""

    memory: str
    seq: int
    last: str
    extra: dict[str, Any]


class _File(msgspec.Struct, frozen=True):
    name: str
    stamp: int
    nbytes: int
    xxh3: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    memory: str
    """Identity of the memory, from its first journal entry."""
    seq: int
    """The last journal entry the checkpoint includes."""
    last: str
    """Hash of that entry: a journal that was put back from a backup does not match."""
    extra: dict[str, Any]
    """Small values of the state that are not columns."""
    files: list[_File]


class Loaded(NamedTuple):
    """A verified checkpoint; the batches are mapped, read-only memory."""

    manifest: Manifest
    batches: dict[str, pa.RecordBatch]
    stamps: dict[str, int]
    mapped_bytes: int


class Report(NamedTuple):
    """What `Checkpoints.verify` found."""

    name: str
    seq: int | None
    problem: str | None


class _Unusable(Exception):
    pass


class Checkpoints:
    """The checkpoints of one memory, in one directory. At most the newest one is kept."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextmanager
    def _locked(self, timeout: float = -1) -> Iterator[None]:
        self._directory.mkdir(exist_ok=True)
        with filelock.FileLock(self._directory / ".lock", timeout=timeout, thread_local=False):
            yield

    def _names(self) -> list[str]:
        """Names of finished checkpoints, newest first."""
        try:
            found = os.listdir(self._directory)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted((name for name in found if name.isdigit()), reverse=True)

    def newest(self) -> int | None:
        """Sequence number of the newest checkpoint, whole or not; None if there is none."""
        names = self._names()
        return int(names[0]) if names else None

    def load(self, usable: Callable[[Manifest], str | None]) -> Loaded | None:
        """The newest checkpoint that is whole and that `usable` has no objection to.

        Args:
            usable: given a manifest, says what is wrong with it, or None.
        """
        for name in self._names():
            try:
                return self._read(self._directory / name, usable)
            except FileNotFoundError:
                continue  # another process has just replaced it by a newer one
            except _Unusable as problem:
                _log.warning("checkpoint %s is not used: %s; rebuilding from the journal", name, problem)
                with self._locked():
                    shutil.rmtree(self._directory / name, ignore_errors=True)
        return None

    def _read(self, directory: Path, usable: Callable[[Manifest], str | None]) -> Loaded:
        manifest = _read_manifest(directory / _MANIFEST)
        if (problem := usable(manifest)) is not None:
            raise _Unusable(problem)
        batches: dict[str, pa.RecordBatch] = {}
        mapped = 0
        for file in manifest.files:
            path = directory / file.name
            if not path.is_file() or path.stat().st_size != file.nbytes:
                if not directory.exists():
                    raise FileNotFoundError(directory)
                raise _Unusable(f"{file.name} is missing or has another size than was written")
            buffer = pa.memory_map(str(path)).read_buffer()
            if xxhash.xxh3_64_hexdigest(buffer) != file.xxh3:
                raise _Unusable(f"{file.name} fails its checksum")
            try:
                batches[file.name] = pa.ipc.open_file(buffer).get_batch(0)
            except (pa.ArrowInvalid, OSError) as error:
                raise _Unusable(f"{file.name} is not an Arrow file: {error}") from error
            mapped += file.nbytes
        return Loaded(manifest, batches, {file.name: file.stamp for file in manifest.files}, mapped)

    def write(
        self,
        pieces: Sequence[Piece],
        state: Described,
        still_valid: Callable[[], bool],
    ) -> bool:
        """Write a checkpoint and drop older ones.

        Returns False, having written nothing, if another process is writing one, if one at least as new
        exists, or if `still_valid`, asked under the lock just before the rename, says no.

        Raises:
            OSError: the disk refused; earlier checkpoints are unharmed.
        """
        try:
            with self._locked(timeout=0):
                return self._write(pieces, state, still_valid)
        except filelock.Timeout:
            return False

    def _write(self, pieces: Sequence[Piece], state: Described, still_valid: Callable[[], bool]) -> bool:
        self._sweep()
        target = self._directory / f"{state.seq:016d}"
        before = self._names()
        if before and int(before[0]) >= state.seq:
            return False
        earlier = self._links(before, state.memory)
        temporary = self._directory / f"{_TEMPORARY}{state.seq:016d}"
        temporary.mkdir()
        try:
            files = [_store(temporary, piece, earlier.get((piece.name, piece.stamp))) for piece in pieces]
            manifest = Manifest(format=FORMAT, files=files, **state._asdict())
            _write_manifest(temporary / _MANIFEST, manifest)
            _sync_directory(temporary)
            if not still_valid():
                return False
            temporary.rename(target)
            _sync_directory(self._directory)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        for name in before:
            shutil.rmtree(self._directory / name, ignore_errors=True)
        return True

    def _links(self, names: list[str], memory: str) -> dict[tuple[str, int], tuple[Path, _File]]:
        """Files of the newest checkpoint, by name and stamp."""
        for name in names[:1]:
            directory = self._directory / name
            try:
                manifest = _read_manifest(directory / _MANIFEST)
            except (FileNotFoundError, _Unusable):
                continue
            if manifest.memory == memory:
                return {(file.name, file.stamp): (directory / file.name, file) for file in manifest.files}
        return {}

    def drop(self, below: int | None = None) -> None:
        """Delete all checkpoints, or those with a sequence number under `below`, and what is left over of
        unfinished ones. Does nothing, without waiting for the lock, if there is nothing to delete below."""
        if not self._directory.exists():
            return
        if below is not None and not any(int(name) < below for name in self._names()):
            return
        with self._locked():
            self._sweep()
            for name in self._names():
                if below is None or int(name) < below:
                    shutil.rmtree(self._directory / name)

    def _sweep(self) -> None:
        for name in os.listdir(self._directory):
            if name.startswith(_TEMPORARY):
                shutil.rmtree(self._directory / name, ignore_errors=True)

    def verify(self, usable: Callable[[Manifest], str | None]) -> list[Report]:
        """Read every checkpoint in full."""
        reports = []
        for name in self._names():
            try:
                loaded = self._read(self._directory / name, usable)
            except FileNotFoundError:
                continue
            except _Unusable as problem:
                reports.append(Report(name, None, str(problem)))
            else:
                reports.append(Report(name, loaded.manifest.seq, None))
        return reports


def _store(directory: Path, piece: Piece, earlier: tuple[Path, _File] | None) -> _File:
    path = directory / piece.name
    if earlier is not None:
        source, file = earlier
        try:
            os.link(source, path)
        except OSError:  # a file system without links
            pass
        else:
            return file
    batch = piece.batch()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
    buffer = pa.memory_map(str(path)).read_buffer()
    return _File(piece.name, piece.stamp, buffer.size, xxhash.xxh3_64_hexdigest(buffer))


def _write_manifest(path: Path, manifest: Manifest) -> None:
    body = msgspec.json.encode(manifest)
    with path.open("wb") as stream:
        stream.write(xxhash.xxh3_64_hexdigest(body).encode() + b"\n" + body)
        stream.flush()
        os.fsync(stream.fileno())


def _read_manifest(path: Path) -> Manifest:
    try:
        checksum, _, body = path.read_bytes().partition(b"\n")
    except OSError as error:
        if not path.parent.exists():
            raise FileNotFoundError(path.parent) from error
        raise _Unusable(f"its manifest cannot be read: {error}") from error
    if checksum != xxhash.xxh3_64_hexdigest(body).encode():
        raise _Unusable("its manifest fails its checksum")
    try:
        manifest = msgspec.json.decode(body, type=Manifest)
    except msgspec.DecodeError as error:
        raise _Unusable(f"its manifest cannot be read: {error}") from error
    if manifest.format != FORMAT:
        raise _Unusable(f"it has format {manifest.format}, this version reads {FORMAT}")
    return manifest


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
