"""Which runs are meant: by id, by directory, or all of a campaign's cells."""

from collections.abc import Iterator, Sequence
from os.path import isdir, normpath
from pathlib import Path

from budgets.ledger.chain import LEDGER
from budgets.plain import PROGRAM
from orchestrator.campaign.runs import DEPTHS
from orchestrator.records.manifest import read_manifest
from orchestrator.records.recorded import find_run, is_there, recorded_plan

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
    return f": it is a campaign, whose conditions its report compares. See: {PROGRAM} report RUN"


def _runs_of(name: str, root: Path) -> Iterator[Path]:
    for place in (Path(name), root / "campaign" / name):
        if isdir(place) and not is_there(place / LEDGER):
            manifest = read_manifest(place)
            if manifest is not None:
                cells = (_run_in(Path(normpath(place / run.directory))) for run in manifest.runs)
                yield from (cell for cell in cells if cell is not None)
                return
    yield find_run(name, root)


def _run_in(place: Path) -> Path | None:
    """The run of a cell, there or in its runs directory: no calibration and no check."""
    for depth in DEPTHS:
        for ledger in sorted(place.glob(f"{depth}{LEDGER}")):
            plan = recorded_plan(ledger.parent)
            if plan is not None and plan.phase not in ("calibration", "check"):
                return ledger.parent
    return None
