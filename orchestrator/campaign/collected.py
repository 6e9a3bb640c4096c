"""What a command leaves of a whole campaign: `effects.json` and `manifest.json`."""

from os.path import relpath
from pathlib import Path

from budgets.campaign.matrix import PENDING, Cell, Matrix
from budgets.ledger.chain import LEDGER
from budgets.terms import CampaignTerms, Condition
from orchestrator.campaign.cells import campaign_name, campaign_of, cells_of
from orchestrator.campaign.conditions import agreed, factors_of
from orchestrator.campaign.searches import SearchCell, campaign_directory
from orchestrator.config import Config
from orchestrator.planning.configured import request_of
from orchestrator.planning.request import run_directory
from orchestrator.records.manifest import (
    Manifest,
    described,
    read_manifest,
    source_of,
    write_manifest,
)
from orchestrator.records.recorded import is_there
from orchestrator.running.place import make_directory


def begin_searches(root: Path, resolved: Config, cells: tuple[SearchCell, ...]) -> Path:
    """Write the manifest of a campaign of searches; its directory.

    Raises ValueError where that belongs to a campaign of trainings.
    """
    directory = campaign_directory(root, resolved)
    if is_there(directory / LEDGER):
        raise ValueError(
            f"{directory} is a campaign of trainings: give this one another name in [campaign]"
        )
    make_directory(directory)
    write_manifest(directory, manifest_of_searches(root, directory, resolved, cells))
    return directory


def refuse_searches(directory: Path) -> None:
    """Raises ValueError where a campaign of searches has the place of one of trainings."""
    manifest = None if is_there(directory / LEDGER) else read_manifest(directory)
    if manifest is not None and manifest.kind == "search":
        raise ValueError(
            f"{directory} is a campaign of searches: give this one another name in [campaign]"
        )


def manifest_of_searches(
    root: Path, directory: Path, resolved: Config, cells: tuple[SearchCell, ...]
) -> Manifest:
    """With all of them pending."""
    terms = CampaignTerms(
        name=campaign_name(resolved),
        conditions=tuple(
            Condition(
                name=cell.name,
                settings=dict(cell.settings),
                knobs={},
                levels=dict(cell.levels),
                control=cell.control,
            )
            for cell in cells_of(resolved)
        ),
        seeds=tuple(campaign_of(resolved).seeds),
        factors=agreed(factors_of(resolved.factors)),
    )
    numbers = {condition.name: number for number, condition in enumerate(terms.conditions)}
    places = {
        (numbers[cell.condition], cell.seed): relpath(
            run_directory(root, request_of(cell.resolved).phase, cell.run_id), directory
        )
        for cell in cells
    }
    row = (Cell(status=PENDING),) * len(terms.seeds)
    matrix = Matrix(terms=terms, rows=(row,) * len(terms.conditions))
    source = {} if resolved.file is None else source_of(resolved.file)
    return described(matrix, places, "search", source, {}, resolved.objective)
