"""Puts an export on the disk: once, never over anything else, and never over what was submitted."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import orjson

from budgets.ledger.storage import write_aside
from orchestrator.slurm.tree import EXECUTABLE, EXPORT, MANIFEST, SUBMITTED, Tree, digest


@dataclass(frozen=True)
class Difference:
    """A file that is not what this export would write."""

    path: PurePosixPath
    said: str


def write(directory: Path, files: Tree, *, replace: bool = False) -> bool:
    """Writes the files, whole or not at all; False where they are there already.

    Raises ValueError where the directory holds other things, and where it holds another export
    that was submitted, or that nobody asked to `replace`.
    """
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        _write_anew(directory, files)
        return True
    recorded = recorded_files(directory)
    found = tuple(differences(directory, files, recorded))
    if not found:
        return False
    listed = "".join(f"\n  {one.path}: {one.said}" for one in found)
    if begun := tuple(_begun(directory, recorded)):
        raise ValueError(
            f"{directory} holds another export, and its runs have begun ({', '.join(begun)}): "
            f"export into another directory. It differs in{listed}"
        )
    if not replace:
        raise ValueError(
            f"{directory} holds another export, of which nothing was submitted: say --replace to "
            f"write over it, or export into another directory. It differs in{listed}"
        )
    _write_over(directory, files, recorded)
    return True


def recorded_files(directory: Path) -> dict[PurePosixPath, str]:
    """Files of the export that `directory` holds, with their hashes as they were written.

    Raises ValueError where it holds no export.
    """
    try:
        written = orjson.loads((directory / EXPORT).read_bytes())
        if written["kind"] != "slurm":
            raise ValueError(written["kind"])
        recorded = {PurePosixPath(path): str(sha) for path, sha in written["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{directory} holds other things than an export: name a directory that is not there "
            "yet, or an empty one"
        ) from error
    if outside := [path for path in recorded if path.is_absolute() or ".." in path.parts]:
        raise ValueError(f"{directory / EXPORT} names files outside of it: {outside[0]}")
    return recorded


def differences(
    directory: Path, files: Tree, recorded: dict[PurePosixPath, str]
) -> Iterator[Difference]:
    """What is not as this export would write it. What others go on writing need only be there."""
    for path, text in files.items():
        place = directory / path
        if not place.is_file():
            said = "was taken away since" if path in recorded else "is not there"
            yield Difference(path, said)
            continue
        if str(path) in (MANIFEST, EXPORT):
            continue
        there = place.read_bytes().decode(errors="replace")
        if there != text:
            by_hand = recorded.get(path, "") != digest(there)
            yield Difference(path, _first(there, text) + by_hand * " (changed by hand since)")
    for path in recorded:
        if path not in files and (directory / path).exists():
            yield Difference(path, "is no part of this export")


def _first(there: str, here: str) -> str:
    """Where two texts part."""
    old, new = there.splitlines(), here.splitlines()
    for number, (one, other) in enumerate(zip(old, new, strict=False), 1):
        if one != other:
            return f"line {number} is {one.strip()!r}, not {other.strip()!r}"
    return f"has {len(old)} lines, not {len(new)}"


def _begun(directory: Path, recorded: dict[PurePosixPath, str]) -> Iterator[str]:
    """Why the runs in `directory` are more than files."""
    submitted = directory / SUBMITTED
    if submitted.exists() and submitted.stat().st_size:
        yield SUBMITTED
    for run in dict.fromkeys(path.parts[0] for path in recorded if len(path.parts) > 1):
        ledger = next((directory / run).glob("*/*/ledger.jsonl"), None)
        log = next((directory / run).glob("*.out"), None)
        if (found := ledger or log) is not None:
            yield str(found.relative_to(directory))


def _write_anew(directory: Path, files: Tree) -> None:
    """All of it beside `directory` first, which then takes its name."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        _put(aside, files)
        aside.chmod(0o777 & ~_umask())
        if directory.exists():
            directory.rmdir()
        aside.rename(directory)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def _write_over(directory: Path, files: Tree, recorded: dict[PurePosixPath, str]) -> None:
    """Each file whole; what the export before wrote and this one has not goes."""
    _put(directory, files)
    for path in recorded:
        if path not in files:
            (directory / path).unlink(missing_ok=True)
    for run in {path.parts[0] for path in recorded if len(path.parts) > 1}:
        place = directory / run
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()


def _put(directory: Path, files: Tree) -> None:
    """The hashes come last: where they are, the files are."""
    for path, text in files.items():
        place = directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        write_aside(place, text.encode())
        mode = 0o755 if str(path) in EXECUTABLE else 0o644
        place.chmod(mode & ~_umask())


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
