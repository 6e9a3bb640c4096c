"""Where runs lie below a directory, found by their ledgers; what each is called in an address."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from budgets.ledger.chain import LEDGER
from orchestrator.records.manifest import read_manifest
from orchestrator.records.recorded import is_set_aside

DEEPEST = 7
"""Levels below the root: a campaign's cell may have a runs directory of its own."""

MOST_DIRECTORIES = 20_000
"""Beyond these nobody meant a directory of runs."""

INSIDE_A_RUN = ("eval", "reports")
"""Where no run is looked for: of a run whose ledger was moved away, these have thousands."""


@dataclass(frozen=True)
class Places:
    """Directories with a ledger; `is_all` unless there was too much to look through."""

    directories: tuple[Path, ...]
    is_all: bool


def places(root: Path) -> Places:
    """The runs in or below `root`; those of a campaign's manifest, wherever they lie.

    Links are not followed; what is set aside is nobody's run. What cannot be looked into is left
    out.
    """
    found: list[Path] = []
    ahead, looked = [(start, 0) for start in _starts(root)], 0
    while ahead and looked < MOST_DIRECTORIES:
        directory, depth = ahead.pop()
        looked += 1
        if os.path.lexists(directory / LEDGER):
            found.append(directory)
        elif depth < DEEPEST:
            ahead += [(inner, depth + 1) for inner in _inner(directory)]
    return Places(tuple(sorted(found)), not ahead)


def _starts(root: Path) -> list[Path]:
    if os.path.lexists(root / LEDGER):
        return [root]
    try:
        manifest = read_manifest(root)
    except (ValueError, OSError):  # another program's
        manifest = None
    if manifest is None:
        return [root]
    cells = {os.path.normpath(root / run.directory) for run in manifest.runs}
    return [Path(cell) for cell in sorted(cells)]


def _inner(directory: Path) -> Iterator[Path]:
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                path = Path(entry.path)
                if _may_lead_to_runs(entry.name, path) and entry.is_dir(follow_symlinks=False):
                    yield path
    except OSError:  # gone since, or another user's
        return


def _may_lead_to_runs(name: str, path: Path) -> bool:
    return not (name.startswith(".") or name in INSIDE_A_RUN or is_set_aside(path))


def identifier(directory: Path) -> str:
    """Names the run in an address: it says nothing of the path, and is the same next time."""
    return hashlib.sha256(os.fsencode(directory.absolute())).hexdigest()[:16]
