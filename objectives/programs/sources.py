"""The source files that decide a program's score: found, hashed, compared with the plan's.

Which files they are follows from the sources alone, never from what lies beside them: a program
may write new files, copies of itself among them, without becoming another program.
"""

import ast
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from glob import iglob
from hashlib import sha256
from pathlib import Path, PurePath

from objectives.api import SetupError

MOST_FILES, MOST_BYTES = 2000, 64 << 20
IGNORED = frozenset({"__pycache__", "node_modules", "site-packages", "wandb", "venv"})
"""Directories that hold nobody's own source, beside those whose names begin with a dot."""

WHICH = "Which files decide the score, the setting sources says"
MOST_NAMED = 3
"""Of the files that a message speaks of."""


def matching(directory: Path, patterns: Iterable[str]) -> set[Path]:
    """The files below `directory` that the patterns find, as `glob` reads them: `**` is any depth.

    Hidden files and `IGNORED` directories are passed over. Raises SetupError on too many.
    """
    found = set[Path]()
    for pattern in patterns:
        for name in iglob(pattern.lstrip("/"), root_dir=directory, recursive=True):
            if IGNORED.isdisjoint(PurePath(name).parts) and os.path.isfile(directory / name):
                found.add(directory / name)
                _require_few(found, directory)
    return found


def with_imports(files: Iterable[Path], places: Collection[Path]) -> set[Path]:
    """The files, and the modules below `places` that they import, directly or through each other.

    They are read, not run: what is imported by a name made at run time is not seen. Raises
    SetupError on too many.
    """
    found, pending = set[Path](), list(files)
    while pending:
        file = pending.pop()
        if file not in found:
            found.add(file)
            _require_few(found, file.parent)
            pending.extend(_imported_by(file, places) if file.suffix == ".py" else ())
    return found


def files_of_module(name: str, places: Iterable[Path]) -> Iterator[Path]:
    """What importing `a.b` below the places reads: `a/__init__.py` and `a/b.py`, as far as there.

    A name that ends in a function's or a class's is that of its module.
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


def digest(directory: Path, files: Iterable[Path]) -> str:
    """SHA-256 (hex) over names and contents, the same wherever `directory` lies.

    Raises SetupError on a file that cannot be read, and on too much.
    """
    whole, size = sha256(), 0
    for name, file in sorted((_name(file, directory), file) for file in files):
        try:
            size += file.stat().st_size
            if size > MOST_BYTES:  # before it is read: it may be a data set
                raise _too_much(directory, f"more than {MOST_BYTES >> 20} MiB of source")
            own = sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            raise SetupError(f"cannot read the source {file}: {error.strerror}") from error
        whole.update(f"{name}\0{own}\n".encode(errors="surrogateescape"))
    return whole.hexdigest()


def require_same(pinned: str, directory: Path, files: Collection[Path]) -> None:
    """Raises SetupError if the files are not those that a run was planned with."""
    found = digest(directory, files)
    if pinned != found:
        raise SetupError(
            f"the sources in {directory} have changed since the run was planned (sha256 "
            f"{pinned[:8]} then, {found[:8]} now): put them back and repeat the command, or begin "
            f"another run with --run-id. {WHICH}. They are, the last changed first: "
            f"{in_short(last_changed_first(files), directory)}"
        )


def last_changed_first(files: Iterable[Path]) -> list[Path]:
    return sorted(files, key=lambda path: -path.stat().st_mtime)


def in_short(files: Sequence[Path], directory: Path) -> str:
    """The first few by their names below the directory."""
    names = [_name(path, directory) for path in files[:MOST_NAMED]]
    rest = len(files) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def _name(path: Path, directory: Path) -> str:
    """Below the directory, or the whole path of what lies elsewhere."""
    return (path.relative_to(directory) if path.is_relative_to(directory) else path).as_posix()


def _require_few(found: Collection[Path], directory: Path) -> None:
    if len(found) > MOST_FILES:
        raise _too_much(directory, f"more than {MOST_FILES} files of source")


def _too_much(directory: Path, what: str) -> SetupError:
    return SetupError(
        f"{directory} has {what}: name what decides the score with the setting sources, for "
        'example sources = ["train.py", "model/**/*.py"]'
    )
