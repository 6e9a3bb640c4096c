"""A finished text handed over: written where it belongs, or printed."""

from pathlib import Path

from budgets.ledger.storage import write_aside
from budgets.plain import printable
from orchestrator.cli.terminal import print_json, print_line, write_bytes
from orchestrator.look.page import STDOUT, named_place, own_place


def deliver(
    text: str, directory: Path, name: str, out: Path | None, *, as_json: bool = False
) -> None:
    """`text` as the file `name` in a run's own `reports/`, or `out`; and where that is, in words.

    Raises ValueError where it cannot be written, or two things would be printed.
    """
    form = name.rpartition(".")[2]
    data = text.encode("utf-8", "replace")
    if out == STDOUT:
        if as_json:
            raise ValueError("--out - prints the report itself: leave --json out, or name a file")
        write_bytes(data)
        return
    path = own_place(directory, name) if out is None else named_place(out, form)
    write_aside(path, data)
    if as_json:
        print_json({"file": str(path), "bytes": len(data), "url": path.resolve().as_uri()})
        return
    print_line(printable(str(path)))
    if form == "html":
        print_line(printable(f"Open it in a browser: {path.resolve().as_uri()}"))
