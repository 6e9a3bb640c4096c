"""The options of commands that look at runs; `flags.py` has those of a configuration."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from orchestrator.records.runs import RUNS_DIR

ROOT = Path(RUNS_DIR)

Root = Annotated[
    Path, Option("--runs-dir", metavar="DIR", help=f"Of the runs; default: {RUNS_DIR}.",
                 show_default=False)
]  # fmt: skip
RunName = Annotated[
    str | None, Argument(metavar="RUN", help="Run id or directory; default: the latest.")
]
Json = Annotated[bool, Option("--json", help="Print one JSON document.")]
Reason = Annotated[str, Option("--reason", metavar="TEXT", help="Why; goes on record.")]


def for_record(reason: str) -> str:
    """The reason as it is. Raises ValueError on what no ledger should keep."""
    from objectives.secrets import redacted

    if not reason.isprintable() or redacted(reason, {}) != reason:
        raise ValueError(
            f"--reason goes on record: expected one printable line without secrets, got {reason!r}"
        )
    return reason


STDOUT = Path("-")


def named_file(path: Path, *endings: str) -> Path:
    """The file that a person names by --out. Raises ValueError where there can be none."""
    if not str(path).isprintable():
        raise ValueError(f"--out: expected a file's name, got {str(path)!r}")
    if path.is_dir():
        raise ValueError(f"--out: {path} is a directory: name a file in it")
    if not path.parent.is_dir():
        raise ValueError(f"--out: {path.parent} is no directory: make it, or name another place")
    if endings and path.suffix.lower() not in endings:
        raise ValueError(f"--out: name a file that ends with {' or '.join(endings)}, not {path}")
    return path


def own_file(directory: Path, name: str) -> Path:
    """A file in the run's own `reports/`, which is made. Raises ValueError where it cannot be."""
    from orchestrator.run.files import make_directory

    reports = directory / "reports"
    if reports.is_symlink():
        raise ValueError(f"{reports} is a symbolic link: name a file with --out")
    make_directory(reports)
    return reports / name
