"""The source files that decide a program's score, as one hash: a search is of one version."""

import os
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

from objectives.api import SetupError

MOST_FILES, MOST_BYTES = 2000, 64 << 20
LEFT_OUT = frozenset({"__pycache__", "node_modules", "site-packages", "wandb", "venv"})
"""Directories that hold nobody's own source, beside those whose names begin with a dot."""

DEFAULT = ("*.py",)


def digest(directory: Path, patterns: Sequence[str], also: Collection[Path] = ()) -> str:
    """SHA-256 (hex) over names and contents of the files that the patterns find, and `also`.

    Raises SetupError on too many of them, and on one that cannot be read.
    """
    found = sorted({*matching(directory, patterns), *also})
    whole, size = sha256(), 0
    for path in found:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise SetupError(f"cannot read the source {path}: {error.strerror}") from error
        size += len(content)
        if size > MOST_BYTES:
            raise _too_many(directory, f"more than {MOST_BYTES >> 20} MiB")
        name = path.relative_to(directory) if path.is_relative_to(directory) else path
        whole.update(f"{name.as_posix()}\0{sha256(content).hexdigest()}\n".encode())
    return whole.hexdigest()


def require_same(pinned: str, found: str, directory: Path) -> None:
    """Raises SetupError if the sources are not those that a search was planned with."""
    if pinned != found:
        raise SetupError(
            f"the sources in {directory} have changed since the run was planned (sha256 "
            f"{pinned[:12]} then, {found[:12]} now): put them back and repeat the command, or "
            "begin another run with --run-id"
        )


def matching(directory: Path, patterns: Sequence[str]) -> Iterator[Path]:
    """The files that they find: one without a slash is looked for at any depth, as git's are.

    Raises SetupError on too many.
    """
    if not patterns:  # a module may lie in somebody's home
        return
    count = 0
    for place, folders, names in os.walk(directory):
        folders[:] = [folder for folder in folders if _may_hold_sources(folder)]
        for name in names:
            path = Path(place, name)
            relative = path.relative_to(directory).as_posix()
            if any(fnmatchcase(relative if "/" in p else name, p) for p in patterns):
                count += 1
                if count > MOST_FILES:
                    raise _too_many(directory, f"more than {MOST_FILES} files")
                yield path


def is_among(path: Path, directory: Path) -> bool:
    """Whether a file lies in the directory, and nowhere in it where nobody's own source does."""
    if not path.is_relative_to(directory):
        return False
    return all(map(_may_hold_sources, path.relative_to(directory).parts[:-1]))


def _may_hold_sources(folder: str) -> bool:
    return folder not in LEFT_OUT and not folder.startswith(".")


def _too_many(directory: Path, how_many: str) -> SetupError:
    return SetupError(
        f"{directory} has {how_many} of source: name those that decide the score with the setting "
        'sources, for example sources = ["train.py", "model/*.py"]'
    )
