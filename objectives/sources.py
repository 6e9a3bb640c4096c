"""The source files that decide a program's score: found and hashed when a run is planned.

Every evaluation compares those files, and no others: a program may write new ones beside them,
copies of itself among them, without becoming another program.
"""

import ast
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from glob import iglob
from hashlib import sha256
from pathlib import Path, PurePath

from objectives.api import SetupError

MOST_BYTES = 64 << 20
MOST_NAMED = 3  # files that a message names
IGNORED = frozenset({"__pycache__", "node_modules", "site-packages", "wandb", "venv"})
"""Directories without the user's own source, beside those whose names begin with a dot."""


def matching(directory: Path, patterns: Iterable[str]) -> set[Path]:
    """Return the files below `directory` that glob patterns find; `**` is any depth.

    Hidden files and `IGNORED` directories are left out.
    """
    found = set[Path]()
    for pattern in patterns:
        for name in iglob(pattern.lstrip("/"), root_dir=directory, recursive=True):
            if IGNORED.isdisjoint(PurePath(name).parts) and os.path.isfile(directory / name):
                found.add(directory / name)
    return found


def with_imports(files: Iterable[Path], places: Collection[Path]) -> set[Path]:
    """Return the files, and the modules below `places` that they import, at any depth.

    They are read, not run: a module imported by a name made at run time is not found.
    """
    found, pending = set[Path](), list(files)
    while pending:
        file = pending.pop()
        if file not in found:
            found.add(file)
            pending.extend(_imported_by(file, places) if file.suffix == ".py" else ())
    return found


def files_of_module(name: str, places: Iterable[Path]) -> Iterator[Path]:
    """Yield the files below the places that importing `a.b` reads: `a/__init__.py`, `a/b.py`.

    The name may end in that of a function or a class.
    """
    for place in places:
        folder = place
        for part in name.split("."):
            for file in (folder / f"{part}.py", folder / part / "__init__.py"):
                if os.path.isfile(file):
                    yield file
            folder /= part


def _imported_by(file: Path, places: Collection[Path]) -> Iterator[Path]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):  # running it will say what is wrong
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from files_of_module(alias.name, places)
        elif isinstance(node, ast.ImportFrom):
            within = (file.parents[node.level - 1],) if node.level else places
            for alias in node.names:
                yield from files_of_module(f"{node.module or ''}.{alias.name}".strip("."), within)


def hashes(directory: Path, files: Iterable[Path]) -> dict[str, str]:
    """Return the SHA-256 (hex) of each file by its name: below `directory`, or its whole path.

    Raises SetupError on a file that cannot be read, and when there is too much to read.
    """
    found, size = {}, 0
    for file in files:
        try:
            size += file.stat().st_size
            if size > MOST_BYTES:  # before it is read: it may be a data set
                raise SetupError(
                    f"{file} is too large to be pinned as a source (more than "
                    f"{MOST_BYTES >> 20} MiB in all). Data that argv names can be a placeholder: "
                    'fixed = { data = "PATH" } and "{data}" in argv'
                )
            name = file.relative_to(directory) if file.is_relative_to(directory) else file
            found[name.as_posix()] = sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            raise SetupError(f"cannot read the source {file}: {error.strerror}") from error
    return dict(sorted(found.items()))


def require_same(pinned: Mapping[str, str], directory: Path) -> None:
    """Raises SetupError, naming them, if files differ from those that a run was planned with."""
    changed = [name for name, digest in pinned.items() if _digest(directory / name) != digest]
    if changed:
        raise SetupError(
            f"the sources in {directory} have changed since the run was planned: "
            f"{', '.join(changed[:MOST_NAMED])}{', ...' * (len(changed) > MOST_NAMED)}. Put them "
            "back and repeat the command, or begin another run with --run-id"
        )


def _digest(file: Path) -> str | None:
    try:
        return sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None
