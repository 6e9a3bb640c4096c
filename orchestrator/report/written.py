"""Where a report goes: into the run's own `reports/`, a file that is named, or standard output."""

from pathlib import Path

from budgets.ledger.storage import write_aside
from orchestrator.running.place import make_directory

STDOUT = Path("-")

ENDINGS = {"html": (".html", ".htm"), "md": (".md", ".markdown", ".txt")}
"""How the name of a file ends that a report may be written to, or replace."""


def own_reports(directory: Path) -> Path:
    """The run's own `reports/`, there or not. Raises ValueError where it is a link."""
    reports = directory / "reports"
    if reports.is_symlink():
        raise ValueError(
            f"{reports} is a symbolic link: expected a run's own directory. Name a file with --out"
        )
    return reports


def own_place(directory: Path, name: str) -> Path:
    """A file in there, which is made. Raises ValueError where something else is in its place."""
    path = _plain(own_reports(directory) / name)
    make_directory(path.parent)
    return path


def named_file(flag: str, path: Path) -> Path:
    """The file that a person names. Raises ValueError where there can be none."""
    if not str(path).isprintable():
        raise ValueError(f"{flag}: expected a file's name, got {str(path)!r}")
    if path.is_dir():
        raise ValueError(f"{flag}: {path} is a directory: name a file in it")
    if not path.parent.is_dir():
        raise ValueError(f"{flag}: {path.parent} is no directory: make it, or name another place")
    return path


def named_place(out: Path, form: str) -> Path:
    """A file that a report may be written to. Raises ValueError where it cannot be."""
    named_file("--out", out)
    if out.suffix.lower() not in ENDINGS[form]:
        raise ValueError(
            f"--out: with --{form} expected a name that ends with {' or '.join(ENDINGS[form])}, "
            f"got {out}: name another file"
        )
    return _plain(out)


def _plain(path: Path) -> Path:
    """Raises ValueError where there is something else than a plain file."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise ValueError(
            f"{path} is no plain file: expected one, or nothing. Move it away, or name another "
            "with --out"
        )
    return path


def write(path: Path, text: str) -> int:
    """The whole file or nothing; returns how many bytes."""
    data = text.encode("utf-8", "replace")
    write_aside(path, data)
    return len(data)
