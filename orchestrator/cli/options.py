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
