"""The cells of a campaign that a configuration describes: conditions, factorial, controls."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from budgets.terms import CampaignTerms
from objectives import registry
from objectives.settings import shown
from orchestrator.campaign.conditions import (
    Cell,
    agreed,
    check_names,
    condition,
    controls,
    dotted,
    factorial,
    factors_of,
)
from orchestrator.config import TRAINING, Campaign, Config, check_key
from orchestrator.planning.request import check_run_id

OF_A_SEARCH = (TRAINING, "search", "evaluation", "verdict", "thresholds")
"""Tables that the conditions of searches may change."""

IS_ITS_NAME = ("search.run_id", "search.seed", "search.phase")
"""What tells cells apart already."""


def campaign_of(resolved: Config) -> Campaign:
    """The table of that name. Raises ValueError where there is none."""
    if resolved.campaign is None:
        raise ValueError(f"{resolved.file} describes no campaign: it has no table [campaign]")
    return resolved.campaign


def campaign_name(resolved: Config) -> str:
    """Its own name, or that of its file. Raises ValueError where no directory has such a name."""
    name = campaign_of(resolved).name
    if name is None:
        stem = "campaign" if resolved.file is None else resolved.file.stem.lower()
        name = re.sub(r"[^a-z0-9._-]+", "-", stem).strip("-._") or "campaign"
    check_run_id(name, "[campaign] name")
    return name


def cells_of(resolved: Config) -> tuple[Cell, ...]:
    """Conditions as they are written, then the full factorial, then the controls.

    What each sets is by dotted key. Raises ValueError on what no campaign can be made of.
    """
    campaign = campaign_of(resolved)
    written = tuple(_written(number, entry) for number, entry in enumerate(campaign.conditions, 1))
    crossed = factorial(factors_of(resolved.factors))
    own = [*written, *crossed]
    if not own:
        raise ValueError(
            "a campaign needs conditions: [[campaign.conditions]] with a name each, or [factors]"
        )
    if campaign.controls:
        own += controls(resolved.load_objective())
    check_names(own)
    for cell in own:
        _check_keys(
            cell, campaign.cell, registry.named(resolved.objective, resolved.training).aside
        )
    return _without_twins(resolved, own)


def _without_twins(resolved: Config, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Nothing is evaluated twice: a cell that is a control's configuration is that control.

    Raises ValueError on two conditions of different names that are the same.
    """
    kept: dict[str, Cell] = {}
    for cell in cells:
        first = kept.setdefault(_identity(resolved, cell), cell)
        if first is cell:
            continue
        if not cell.control:
            raise ValueError(f"conditions {first.name} and {cell.name} are the same configuration")
        kept[_identity(resolved, cell)] = replace(first, control=True)
    return tuple(kept.values())


def _identity(resolved: Config, cell: Cell) -> str:
    """What is evaluated in the cell, in whatever words. Raises ValueError where nothing can be."""
    start, spec = f"{TRAINING}.", resolved.load_objective().spec
    own = {k.removeprefix(start): v for k, v in cell.settings.items() if k.startswith(start)}
    try:
        varied = registry.varied(spec, own)
    except ValueError as error:
        raise ValueError(f"condition {cell.name}: {error}") from error
    others = {k: v for k, v in cell.settings.items() if not k.startswith(start)}
    return json.dumps([varied.settings, others], sort_keys=True, default=str)


def _written(number: int, entry: Mapping[str, Any]) -> Cell:
    """A condition as the file has it: a name, and tables."""
    place = f"campaign.conditions, entry {number}"
    name = entry.get("name")
    if not isinstance(name, str):
        raise ValueError(f"{place}: expected a name, got {shown(name)}")
    return Cell(name, dotted({k: v for k, v in entry.items() if k != "name"}, place))


def _check_keys(cell: Cell, kind: str, aside: Collection[str]) -> None:
    """Raises ValueError where it sets what it may not, or what no evaluation has."""
    tables = (TRAINING,) if kind == "training" else OF_A_SEARCH
    for key in cell.settings:
        check_key(key, f"condition {cell.name}")
        table, _, name = key.partition(".")
        if table not in tables or key in IS_ITS_NAME:
            raise ValueError(
                f"condition {cell.name}: {key} is the same for all cells of a campaign of "
                f"{kind} runs: expected keys of {', '.join(f'[{table}]' for table in tables)}"
            )
        if table == TRAINING and name in aside:
            raise ValueError(
                f"condition {cell.name}: {name} is for a training by itself, no evaluation has it"
            )


def terms_of(resolved: Config) -> CampaignTerms:
    """What a campaign of trainings agrees on. Raises ValueError, naming the cell, if it cannot."""
    campaign, objective = campaign_of(resolved), resolved.load_objective()
    cells = cells_of(resolved)
    return CampaignTerms(
        name=campaign_name(resolved),
        conditions=tuple(condition(objective, cell) for cell in cells),
        seeds=tuple(campaign.seeds),
        factors=agreed(factors_of(resolved.factors)),
        parallel=campaign.parallel,
        max_workers=campaign.max_workers,
        stagger_seconds=campaign.stagger_seconds,
    )


def runs_of(resolved: Config) -> Iterator[tuple[Cell, int, str]]:
    """Each cell on each seed, and the name of that run."""
    for cell in cells_of(resolved):
        for seed in campaign_of(resolved).seeds:
            yield cell, seed, f"{cell.name}_s{seed}"
