"""Where a report goes: into the run's own `reports/`, a file that is named, or standard output."""

from pathlib import Path

from budgets.ledger.storage import write_aside
from orchestrator.running.session import make_directory

STDOUT = Path("-")

ENDINGS = {"html": (".html", ".htm"), "md": (".md", ".markdown", ".txt")}
"""A file that is there is replaced only if its name says that it may be such a one."""


def own_reports(directory: Path) -> Path:
    """The run's own `reports/`, which is made. Raises ValueError where it is a link."""
    reports = directory / "reports"
    if reports.is_symlink():
        raise ValueError(
            f"{reports} is a symbolic link: expected a run's own directory. Name a file with --out"
        )
    make_directory(reports)
    return reports


def own_place(directory: Path, name: str) -> Path:
    """A file in there. Raises ValueError where something else is in its place."""
    return _plain(own_reports(directory) / name)


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
    if out.exists() and out.suffix.lower() not in ENDINGS[form]:
        raise ValueError(
            f"--out: {out} is there already, and its name does not end with "
            f"{' or '.join(ENDINGS[form])}: name another file, or move that one away"
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
