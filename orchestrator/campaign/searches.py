"""A campaign whose cells are searches: each a run of its own, with its share of the budget."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.campaign.cells import campaign_name, campaign_of, runs_of
from orchestrator.config import Budget, Config, Values, resolve
from orchestrator.planning.request import check_run_id


@dataclass(frozen=True)
class SearchCell:
    """One search of a campaign."""

    condition: str
    seed: int
    control: bool
    resolved: Config

    @property
    def run_id(self) -> str:
        run_id = self.resolved.search.run_id
        assert run_id is not None, "a cell has a name"
        return run_id


def search_cells(resolved: Config) -> tuple[SearchCell, ...]:
    """Every search of the campaign, in its order.

    Raises ValueError, naming the cell, where one cannot be.
    """
    runs = list(runs_of(resolved))
    _refuse_hours(resolved)
    share = shares(resolved.budget, len(runs), "searches")
    name = campaign_name(resolved)
    cells: list[SearchCell] = []
    for cell, seed, run in runs:
        run_id = re.sub(r"[+=]", "-", f"{name}.{run}".lower())
        check_run_id(run_id, f"condition {cell.name}: its run's name")
        if run_id in (other.run_id for other in cells):
            raise ValueError(f"two searches would be called {run_id!r}: rename a condition")
        own: Values = {**cell.settings, **share, "search.run_id": run_id, "search.seed": seed}
        one = resolve(replace(resolved.layers, cell=(cell.name, own)))
        one.objective  # noqa: B018 - what it cannot be is said now
        cells.append(SearchCell(cell.name, seed, cell.control, one))
    return tuple(cells)


def _refuse_hours(resolved: Config) -> None:
    """Raises ValueError on a window of hours: it would begin anew with each search."""
    window = resolved.budget.window
    if window is not None and window.strip()[-1:] in "smhd":
        raise ValueError(
            f"[budget] window: expected a moment such as 2026-11-27T18:00 for a campaign of "
            f"searches, one after the other, got {window!r}"
        )


def shares(budget: Budget, runs: int, what: str) -> Values:
    """Caps are the whole campaign's: each run has an equal part, a whole number of evaluations.

    Raises ValueError on less. `what`: what the runs are.
    """
    found: Values = {}
    for name in ("max_evals", "max_device_hours", "max_hours", "max_cost"):
        if (cap := getattr(budget, name)) is not None:
            part = cap // runs if name == "max_evals" else cap / runs
            if not part:
                raise ValueError(f"[budget] {name}: {cap} cannot be shared by {runs} {what}")
            found[f"budget.{name}"] = part
    return found


def campaign_directory(root: Path, resolved: Config) -> Path:
    """Where what is said of the whole campaign lies."""
    campaign_of(resolved)
    return root / "campaign" / campaign_name(resolved)
