"""Which runs are meant: by id, by directory, or all of a campaign's cells."""

from collections.abc import Iterator, Sequence
from os.path import normpath
from pathlib import Path

from budgets.ledger.chain import LEDGER
from orchestrator.campaign.runs import DEPTHS
from orchestrator.records.manifest import manifest_at
from orchestrator.records.recorded import find_run, recorded_plan

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
    return ": it is a campaign, whose conditions its report compares. See: orchestrator report RUN"


def _runs_of(name: str, root: Path) -> Iterator[Path]:
    found = manifest_at(name, root)
    if found is None:
        yield find_run(name, root)
        return
    place, manifest = found
    cells = (_run_in(Path(normpath(place / run.directory))) for run in manifest.runs)
    yield from (cell for cell in cells if cell is not None)


def _run_in(place: Path) -> Path | None:
    """The run of a cell, there or in its runs directory: no calibration and no check."""
    for depth in DEPTHS:
        for ledger in sorted(place.glob(f"{depth}{LEDGER}")):
            plan = recorded_plan(ledger.parent)
            if plan is not None and plan.phase not in ("calibration", "check"):
                return ledger.parent
    return None
