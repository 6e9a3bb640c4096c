"""The directory of a training run: checkpoints, each whole or absent, and the list of ours.

`manifest.json` names every checkpoint with its SHA-256 before the file gets its name, and until
after it is deleted. So whatever the power cut leaves is either listed or one of the two files
`*.partial`, and nothing that is not listed is ever deleted or overwritten.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import IO, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from objectives.files import rename, replace
from objectives.nanochat.program.identity import Identity

MANIFEST, METRICS, SUMMARY = "manifest.json", "metrics.jsonl", "summary.json"
PARTIAL = "checkpoint.partial"  # the one file a checkpoint is written to before it gets its name


class Entry(BaseModel):
    """One checkpoint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str  # of the file
    step: int  # optimiser steps done
    bpb: float | None  # validation bits per byte, where it was measured
    sha256: str
    bytes: int


class Manifest(BaseModel):
    """The checkpoints that are ours, by step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    identity: Identity
    checkpoints: tuple[Entry, ...] = ()


def read_manifest(directory: Path) -> Manifest | None:
    """The manifest in `directory`, None if it has none. Raises ValueError when it is damaged."""
    path = directory / MANIFEST
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValidationError as error:
        raise ValueError(
            f"{path} is damaged or not ours: {error.errors()[0]['msg']}. "
            "Move it away or choose another checkpoint_dir"
        ) from error


def require_same(manifest: Manifest, now: Identity, directory: Path) -> None:
    """Raises ValueError, naming every difference, when `directory` holds another run."""
    if found := manifest.identity.differences(now):
        raise ValueError(
            f"{directory} holds another run: {'; '.join(found)}. Go back to those settings, or "
            "choose another directory with --set checkpoint_dir=DIR"
        )


def kept(entries: Sequence[Entry], last: int, best: bool) -> tuple[Entry, ...]:
    """The newest of each step; of those the `last` so many, and the `best` by bits per byte."""
    by_step = [entry for _, entry in sorted({e.step: e for e in entries}.items())]
    measured = [entry for entry in by_step if entry.bpb is not None] if best else []
    chosen = {*by_step[-last:], *sorted(measured, key=lambda e: (e.bpb, e.step))[:1]}
    return tuple(entry for entry in by_step if entry in chosen)


@contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Nobody else trains in `directory` meanwhile; it is made if need be.

    Raises ValueError when somebody does, or when it cannot be made.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ValueError(f"checkpoint_dir {directory}: {error.strerror}") from error
    try:
        _lock(handle, directory)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, directory: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ValueError(
            f"another process trains in {directory}: wait for it, or choose another directory "
            "with --set checkpoint_dir=DIR"
        ) from error


class Store:
    """The checkpoints of one run in one directory, which the caller has for itself."""

    def __init__(self, directory: Path, identity: Identity, last: int, best: bool) -> None:
        """Raises ValueError when the directory holds another run, or files that are not ours."""
        self.directory, self._last, self._best = directory, last, best
        self.manifest = read_manifest(directory) or self._begin(identity)
        require_same(self.manifest, identity, directory)

    def _begin(self, identity: Identity) -> Manifest:
        for name in (METRICS, SUMMARY, PARTIAL, f"{MANIFEST}.partial"):
            if (self.directory / name).exists():
                raise ValueError(
                    f"{self.directory} has {name} but no {MANIFEST}, so it may be somebody's: "
                    "move it away, or choose another directory with --set checkpoint_dir=DIR"
                )
        self._write(Manifest(identity=identity))
        return self.manifest

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.manifest.checkpoints

    @property
    def best(self) -> Entry | None:
        measured = [entry for entry in self.entries if entry.bpb is not None]
        return min(measured, key=lambda e: (e.bpb, e.step), default=None)

    def add(self, step: int, bpb: float | None, write: Callable[[IO[bytes]], None]) -> Entry:
        """Keep what `write` writes as the checkpoint of `step`, and drop what is too old.

        Raises OSError, the checkpoints before being as they were.
        """
        partial = self.directory / PARTIAL
        try:
            with partial.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            partial.unlink(missing_ok=True)  # a full disk needs the room
            raise OSError(
                f"the checkpoint of step {step} could not be written to {self.directory}: "
                f"{error.strerror}. Those before it are whole: mend it and repeat the command"
            ) from error
        path = self._free_path(step)
        entry = Entry(
            name=path.name,
            step=step,
            bpb=bpb,
            sha256=_sha256(partial),
            bytes=partial.stat().st_size,
        )
        self._list((*self.entries, entry))
        rename(partial, path)
        self._drop_old()
        return entry

    def whole(self, say: Callable[[str], None]) -> Iterator[tuple[Entry, Path]]:
        """The newest checkpoint that is as it was written, then the one before, and so on.

        Those that are not are reported, taken off the list, and left where they are.
        """
        for entry in reversed(self.entries):
            path = self.directory / entry.name
            fault = _fault(path, entry)
            if fault is None:
                yield entry, path
            else:
                say(f"{path} {fault}: not used, and left as it is")
                self._list(tuple(e for e in self.entries if e != entry))

    def _free_path(self, step: int) -> Path:
        """A name that nobody's file has."""
        path, number = self.directory / f"step-{step:08d}.pt", 1
        while path.exists() or path.is_symlink():
            number += 1
            path = path.with_name(f"step-{step:08d}-{number}.pt")
        return path

    def _drop_old(self) -> None:
        remaining = kept(self.entries, self._last, self._best)
        for entry in self.entries:
            if entry not in remaining:
                (self.directory / entry.name).unlink(missing_ok=True)
        self._list(remaining)

    def _list(self, entries: tuple[Entry, ...]) -> None:
        if entries != self.entries:
            self._write(self.manifest.model_copy(update={"checkpoints": entries}))

    def _write(self, manifest: Manifest) -> None:
        replace(self.directory / MANIFEST, manifest.model_dump_json(indent=2).encode() + b"\n")
        self.manifest = manifest


def _fault(path: Path, entry: Entry) -> str | None:
    """Why the file at `path` is not the checkpoint `entry`, None if it is."""
    try:
        size = path.stat().st_size
        if size != entry.bytes:
            return f"is damaged ({size} bytes, expected {entry.bytes})"
        return None if _sha256(path) == entry.sha256 else "is damaged (its SHA-256 differs)"
    except FileNotFoundError:
        return "is missing"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
