"""Which runs are meant: by id, by directory, or all of a campaign's cells."""

from collections.abc import Iterator, Sequence
from itertools import islice
from os.path import normpath
from pathlib import Path

from budgets.plain import command
from orchestrator.records.manifest import campaign_of_runs
from orchestrator.records.recorded import find_run, recorded_plan, runs_of_cell

FEWEST, MOST = 2, 20
"""Runs that are side by side."""


def places(names: Sequence[str], root: Path) -> list[Path]:
    """The directories of those runs, each once, in their order.

    A campaign whose cells are runs of their own stands for those of them that have begun. Raises
    ValueError on what is no run, on too few of them and on too many.
    """
    found: dict[Path, Path] = {}
    for name in names:
        for place in _runs_of(name, root):
            found.setdefault(place.resolve(), place)
    if not FEWEST <= len(found) <= MOST:
        raise ValueError(
            f"expected {FEWEST} to {MOST} different runs to compare, got {len(found)}"
            f"{_hint(list(found.values()))}"
        )
    return list(found.values())


def _hint(found: Sequence[Path]) -> str:
    """What compares the conditions of a campaign in one ledger."""
    plan = recorded_plan(found[0]) if len(found) == 1 else None
    if plan is None or plan.campaign is None:
        return ""
    look = command("report", str(found[0]))
    return f": it is a campaign, whose conditions its report compares. See: {look}"


def _runs_of(name: str, root: Path) -> Iterator[Path]:
    campaign = campaign_of_runs(name, root)
    if campaign is None:
        yield find_run(name, root)
        return
    place, manifest = campaign
    for run in manifest.runs:
        yield from islice(runs_of_cell(Path(normpath(place / run.directory))), 1)
