"""`history`: what runs took against what their plans said."""

from collections.abc import Sequence
from typing import Annotated

from typer import Option

from budgets.pace import GOOD_ACCURACY, good_on_devices
from budgets.plain import plain, printable
from orchestrator.look.text import BESIDE, RECALIBRATE
from budgets.table import table
from budgets.words import duration
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.planning.history import HISTORY, Entry, append, read_history, rebuilt

Write = Annotated[bool, Option("--write", help="Add the runs that only their ledgers know.")]


def history(root: Root = DEFAULT_ROOT, write: Write = False, as_json: Json = False) -> None:
    """What runs took, and how good their estimates were. The next plan learns from it.

    Writes nothing, but with --write the missing runs into RUNS_DIR/history.jsonl.
    """
    known = read_history(root)
    found = rebuilt(root, known)
    if write and found.missing:
        append(root, found.missing)
        known = read_history(root)
    if as_json:
        document = {
            "file": str(root / HISTORY),
            "runs": [entry.model_dump(mode="json", by_alias=True) for entry in known.entries],
            "lines_left_out": known.left_out,
            "missing": [] if write else [entry.run_id for entry in found.missing],
            "written": [entry.run_id for entry in found.missing] if write else [],
            "unreadable": list(found.unreadable),
        }
        print_json(document)
        return
    print_markdown(to_markdown(known.entries))
    if known.left_out:
        print_line(f"{known.left_out} lines of {root / HISTORY} say nothing: left out.")
    if found.missing:
        names = ", ".join(entry.run_id for entry in found.missing)
        verb = "Added from their ledgers" if write else "Not in it (history --write adds them)"
        print_line(printable(f"{verb}: {names}."))
    for why in found.unreadable:
        print_line(printable(f"Warning: {why}."))


def to_markdown(entries: Sequence[Entry]) -> str:
    """One row a run."""
    columns = ("run", "ended", "objective", ">evaluations", ">median", ">estimated", ">actual")
    lines = table((*columns, ">accuracy"), map(_row, entries))
    if marked := [entry for entry in entries if not _is_good(entry)]:
        low, high = GOOD_ACCURACY
        mend = BESIDE if all(map(_is_good_on_devices, marked)) else RECALIBRATE
        lines += ["", f"*: not within {low:.0f} to {high:.0f}%. {mend}"]
    return "\n".join(lines) if entries else "No run has ended here yet."


def _row(entry: Entry) -> tuple[str, ...]:
    star = "" if _is_good(entry) else " \\*"
    return (
        plain(entry.run_id),
        f"{entry.ended_at:%Y-%m-%d %H:%M}",
        f"{plain(entry.objective)} on {entry.devices} x {plain(entry.device_name)}",
        f"{entry.evaluations}/{entry.evaluations_planned}",
        "-" if entry.evaluation is None else f"{entry.evaluation.seconds:.3g} s",
        _hours(entry.estimated_hours),
        _hours(entry.actual_hours),
        "-" if entry.accuracy is None else f"{entry.accuracy:.0f}%{star}",
    )


def _hours(hours: float | None) -> str:
    return "-" if hours is None else duration(3600 * hours)


def _is_good(entry: Entry) -> bool:
    low, high = GOOD_ACCURACY
    return entry.accuracy is None or low <= entry.accuracy <= high


def _is_good_on_devices(entry: Entry) -> bool:
    estimated, actual = entry.estimated_device_hours, entry.actual_device_hours
    return estimated is not None and actual is not None and good_on_devices(estimated, actual)
