"""What is looked at: the run or the campaign that a configuration describes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from budgets.plain import shell_word
from budgets.tiers import TIERS
from objectives.api import Objective
from orchestrator.campaign.cells import campaign_name, campaign_of, cells_of
from orchestrator.config import Config, resolve
from orchestrator.planning.configured import Conduct, conduct_of

EVERY_TIER = {f"{phase} {tier}": sized.evaluations for (phase, tier), sized in TIERS.items()}


@dataclass(frozen=True)
class Subject:
    """The run that somebody has in mind, and what of it is to be looked at."""

    objective: Objective
    conduct: Conduct
    evaluations: Mapping[str, int] = field(default_factory=lambda: EVERY_TIER)  # that may be made
    conditions: Mapping[str, Objective] = field(default_factory=dict)  # of a campaign, by name
    options: str = ""  # of the command line, that name all this again
    quick: bool = False

    @property
    def objectives(self) -> dict[str, Objective]:
        """All that will be evaluated, by the name of the condition; the run's own has none."""
        return {"": self.objective, **self.conditions}


def subject_of(resolved: Config, *, as_json: bool, quick: bool) -> Subject:
    """Raises ValueError on what no run can be made of."""
    return Subject(
        objective=resolved.load_objective(),
        conduct=conduct_of(resolved, as_json=as_json),
        evaluations=_evaluations(resolved),
        conditions={} if resolved.campaign is None else _conditions(resolved),
        options="".join(f" {shell_word(word)}" for word in resolved.layers.words()),
        quick=quick,
    )


def _evaluations(resolved: Config) -> dict[str, int]:
    """How many evaluations are described; of a search without a tier, those of each tier."""
    search = resolved.search
    tier = None if search.tier is None else f"{search.phase} {search.tier}"
    if resolved.campaign is None:
        return EVERY_TIER if tier is None else {tier: EVERY_TIER[tier]}
    runs = len(cells_of(resolved)) * len(campaign_of(resolved).seeds)
    each = 1
    if resolved.campaign.cell == "search":
        each = EVERY_TIER[tier or f"{search.phase} target"]
    return {f"campaign {campaign_name(resolved)}": runs * each}


def _conditions(resolved: Config) -> dict[str, Objective]:
    cells = {cell.name: (cell.name, dict(cell.settings)) for cell in cells_of(resolved)}
    return {
        name: resolve(replace(resolved.layers, cell=cell)).load_objective()
        for name, cell in cells.items()
    }
