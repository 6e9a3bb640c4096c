"""A campaign of searches: a run of its own for each cell, with its share of the budget."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from os.path import relpath
from pathlib import Path

from pydantic import ValidationError

from budgets.ledger.chain import LEDGER
from budgets.rules import BEFORE_THE_RUN
from budgets.ruling import judge
from budgets.state import RunState
from orchestrator.campaign.conditions import campaign_name, cells_of, runs_of
from orchestrator.config import Budget, Config, Values, resolve
from orchestrator.execution.api import Slots
from orchestrator.execution.engine import devices_of
from orchestrator.planning.calibrations import CALIBRATION_SEEDS
from orchestrator.planning.names import Overrides, check_run_id, run_directory, run_name
from orchestrator.planning.plan import calibration_plan, search_plan
from orchestrator.records.manifest import (
    Manifest,
    ManifestRun,
    manifest_of_runs,
    read_manifest,
    source_of,
    write_manifest,
)
from orchestrator.records.recorded import is_there, recorded_state
from orchestrator.running.place import make_directory


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


def search_cells(config: Config) -> tuple[SearchCell, ...]:
    """Every search of the campaign, in its order.

    Raises ValueError, naming the cell, where one cannot be.
    """
    window = config.budget.window
    if window is not None and window.strip()[-1:] in "smhd":  # it would begin anew with each search
        raise ValueError(
            f"[budget] window: expected a moment such as 2026-11-27T18:00 for a campaign of "
            f"searches, one after the other, got {window!r}"
        )
    runs, name = list(runs_of(config)), campaign_name(config)
    share = shares(config.budget, len(runs), "searches")
    cells: list[SearchCell] = []
    for cell, seed, run in runs:
        run_id = re.sub(r"[+=]", "-", f"{name}.{run}".lower())
        check_run_id(run_id, f"condition {cell.name}: its run's name")
        if run_id in (other.run_id for other in cells):
            raise ValueError(f"two searches would be called {run_id!r}: rename a condition")
        own: Values = {**cell.settings, **share, "search.run_id": run_id, "search.seed": seed}
        one = resolve(replace(config.layers, cell=(cell.name, own)))
        cells.append(SearchCell(cell.name, seed, cell.control, one))
    return tuple(cells)


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


def begin_searches(root: Path, config: Config, searches: Sequence[SearchCell]) -> Path:
    """Write the campaign's manifest; its directory.

    Raises ValueError where that belongs to a campaign of trainings.
    """
    directory = root / "campaign" / campaign_name(config)
    if is_there(directory / LEDGER):
        raise ValueError(
            f"{directory} is a campaign of trainings: give this one another name in [campaign]"
        )
    make_directory(directory)
    write_manifest(directory, _manifest(root, directory, config, searches))
    return directory


def refuse_searches(directory: Path) -> None:
    """Raises ValueError where a campaign of searches has the place of one of trainings."""
    manifest = None if is_there(directory / LEDGER) else read_manifest(directory)
    if manifest is not None and manifest.kind == "search":
        raise ValueError(
            f"{directory} is a campaign of searches: give this one another name in [campaign]"
        )


def _manifest(
    root: Path, directory: Path, config: Config, searches: Sequence[SearchCell]
) -> Manifest:
    cells = {cell.name: cell for cell in cells_of(config)}
    runs = [
        ManifestRun(
            name=f"{one.condition}_s{one.seed}",
            directory=relpath(
                run_directory(root, one.resolved.search.phase, one.run_id), directory
            ),
            condition=one.condition,
            seed=one.seed,
            control=one.control,
            levels=dict(cells[one.condition].levels),
        )
        for one in searches
    ]
    conditions = {name: asdict(cell) for name, cell in cells.items()}
    name = campaign_name(config)
    found = manifest_of_runs(name, "search", config.objective, runs, conditions)
    return found.model_copy(update={} if config.file is None else source_of(config.file))


def check_plans(searches: Sequence[SearchCell], slots: Slots) -> None:
    """Raises ValueError, naming the cell, where one cannot be planned: before any is paid for."""
    for search in searches:
        if search.resolved.search.tier is None:
            raise ValueError(
                "--tier, or tier in [search]: say how much each search may spend: min, target or "
                f"max. {search.condition} has none"
            )
        try:
            search_plan(search.resolved, devices_of(slots), None)
        except ValidationError:
            raise  # it names a flag
        except ValueError as error:
            raise ValueError(f"condition {search.condition}: {error}") from error


def overrides_of(
    root: Path, searches: Sequence[SearchCell], slots: Slots, overrides: Overrides
) -> dict[str, Overrides]:
    """Of each search, by its id, the overrides of rules that hold it up.

    Raises ValueError on one that no search needs.
    """
    own: dict[str, Overrides] = {}
    for search in searches if overrides else ():
        needed = _rules_in_the_way(_recorded(root, search.resolved, slots))
        own[search.run_id] = tuple(
            (rule, why) for rule, why in overrides if rule in needed or (rule, why) in needed
        )
    for override in overrides:
        if all(override not in some for some in own.values()):
            raise ValueError(f"--override {override[0]}: that rule holds up no search of these")
    return own


def _rules_in_the_way(state: RunState | None) -> set[object]:
    """Rules that hold the search up, and overrides that its ledger has, with their reasons."""
    if state is None:
        return set(BEFORE_THE_RUN)
    holding = {trigger.rule for trigger in judge(state).triggers}
    return holding | {(one.rule, one.reason) for one in state.overridden}


def _recorded(root: Path, config: Config, slots: Slots) -> RunState | None:
    """The search as far as it is made, or the calibration that is being made for it."""
    state = recorded_state(run_directory(root, config.search.phase, run_name(config)))
    if state is not None:
        return state
    plan = calibration_plan(config, devices_of(slots), CALIBRATION_SEEDS)
    state = recorded_state(run_directory(root, "calibration", plan.run_id))
    return None if state is None or state.concluded is not None else state
