"""The source files that decide a program's score, as one hash: a search is of one version."""

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

from objectives.api import SetupError

MOST_FILES, MOST_BYTES, MOST_NAMES = 2000, 64 << 20, 100_000
LEFT_OUT = frozenset({"__pycache__", "node_modules", "site-packages", "wandb", "venv"})
"""Directories that hold nobody's own source, beside those whose names begin with a dot."""

NO_SOURCE = frozenset({"pyvenv.cfg", "ledger.jsonl", ".hydra"})
"""What is in a virtual environment, a run of ours and the output of a run of Hydra."""

DEFAULT = ("*.py",)

WHICH = "Which files decide the score, the setting sources says"
MOST_NAMED = 3
"""Of the files that a message speaks of."""


def digest(directory: Path, patterns: Sequence[str], also: Collection[Path] = ()) -> str:
    """SHA-256 (hex) over names and contents of the files that the patterns find, and `also`.

    Of equal files the one that lies least deep counts: a program may copy itself to its results. A
    pattern without a slash is looked for at any depth, as git's are; `/train.py` is in the
    directory itself. Hidden files and links to directories are passed over. Raises SetupError on
    too many files, and on one that cannot be read.
    """
    whole, size, seen = sha256(), 0, set[str]()
    names = _names(directory, patterns, also)
    for name in sorted(names, key=lambda name: (name.count("/"), name)):
        path = os.path.join(directory, name)  # strings: paths would take as long as the reading
        try:
            size += os.stat(path).st_size
            if size > MOST_BYTES:  # before it is read: it may be a data set
                raise _too_much(directory, f"more than {MOST_BYTES >> 20} MiB of source")
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            raise SetupError(f"cannot read the source {path}: {error.strerror}") from error
        own = sha256(content).hexdigest()
        if own not in seen:
            seen.add(own)
            whole.update(f"{name}\0{own}\n".encode(errors="surrogateescape"))
    return whole.hexdigest()


def files(directory: Path, patterns: Sequence[str], also: Collection[Path] = ()) -> list[Path]:
    """Those that `digest` is of. Raises SetupError on too many."""
    return [directory / name for name in _names(directory, patterns, also)]


def _names(directory: Path, patterns: Sequence[str], also: Collection[Path]) -> list[str]:
    names = {_name(path, directory) for path in also}
    return sorted(names.union(matching(directory, patterns)))


def _name(path: Path, directory: Path) -> str:
    """Below the directory, or the whole path of what lies elsewhere."""
    return (path.relative_to(directory) if path.is_relative_to(directory) else path).as_posix()


def require_same(
    pinned: str, found: str, directory: Path, looked_at: Callable[[], Iterable[Path]]
) -> None:
    """Raises SetupError if the sources are not those that a search was planned with."""
    if pinned != found:
        raise SetupError(
            f"the sources in {directory} have changed since the run was planned (sha256 "
            f"{pinned[:8]} then, {found[:8]} now): put them back and repeat the command, or begin "
            f"another run with --run-id. {WHICH}. They are, the last changed first: "
            f"{named(last_changed_first(looked_at()), directory)}"
        )


def last_changed_first(looked_at: Iterable[Path]) -> list[Path]:
    return sorted(looked_at, key=lambda path: -path.stat().st_mtime)


def named(looked_at: Sequence[Path], directory: Path) -> str:
    """The first few by their names below the directory."""
    names = [_name(path, directory) for path in looked_at[:MOST_NAMED]]
    rest = len(looked_at) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def matching(directory: Path, patterns: Sequence[str]) -> Iterator[str]:
    """Names below the directory of what the patterns find. Raises SetupError on too many."""
    seen = count = 0
    for place, folders, names in os.walk(directory):
        seen += len(folders) + len(names)
        if seen > MOST_NAMES:
            raise _too_much(directory, f"more than {MOST_NAMES} files to look through")
        inner = Path(place).relative_to(directory).as_posix()
        below = "" if inner == "." else f"{inner}/"
        if below and not NO_SOURCE.isdisjoint((*names, *folders)):
            folders.clear()
            continue
        folders[:] = [f for f in folders if _is_entered(f, f"{below}{f}/", patterns)]
        for name in names:
            if _is_source(name, f"{below}{name}", patterns) and _is_file(f"{place}/{name}"):
                count += 1
                if count > MOST_FILES:
                    raise _too_much(directory, f"more than {MOST_FILES} files of source")
                yield f"{below}{name}"


def finding_nothing(directory: Path, patterns: Sequence[str]) -> list[str]:
    """The patterns that no file has: whoever wrote them means others. Raises SetupError."""
    return [one for one in patterns if next(matching(directory, (one,)), None) is None]


def is_among(path: Path, directory: Path) -> bool:
    """Whether a file is in the directory, and below nothing there that holds nobody's own source.

    Of `NO_SOURCE` that says nothing.
    """
    if not path.is_relative_to(directory):
        return False
    folders = path.relative_to(directory).parts[:-1]
    return not any(_is_passed_over(folder) for folder in folders)


def _is_passed_over(folder: str) -> bool:
    return folder in LEFT_OUT or folder.startswith(".")


def _is_entered(name: str, below: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns can find something in that directory."""
    if _is_passed_over(name):
        return False
    return any("/" not in p or _agree(_literal(p), below) for p in patterns)


def _literal(pattern: str) -> str:
    """What every path begins with that the pattern finds."""
    return re.split(r"[*?\[]", pattern.removeprefix("/"), maxsplit=1)[0]


def _agree(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _is_source(name: str, relative: str, patterns: Sequence[str]) -> bool:
    if name.startswith("."):
        return False
    return any(
        fnmatchcase(relative, p.removeprefix("/")) if "/" in p else fnmatchcase(name, p)
        for p in patterns
    )


def _is_file(path: str) -> bool:
    """A pipe would never end, and the lock file of an editor is a link to nothing."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _too_much(directory: Path, what: str) -> SetupError:
    return SetupError(
        f"{directory} has {what}: name what decides the score with the setting sources, for "
        'example sources = ["/train.py", "model/*.py"]'
    )
