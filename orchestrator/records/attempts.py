"""An attempt by what its reservation says: where its files lie, and which knobs it has."""

from budgets.events import Reserved, Settled
from budgets.state import Batch
from budgets.terms import Plan
from objectives.space import SearchSpace


def attempt_place(reserved: Reserved | Settled) -> str:
    """The attempt's directory under the run's `eval/`."""
    again = "" if reserved.attempt == 1 else f".{reserved.attempt}"
    batch = f"{reserved.panel or 'gen'}_{reserved.generation:04d}"
    return f"{batch}/cand_{reserved.candidate:04d}/seed_{reserved.seed}{again}"


def knobs_of(plan: Plan, batch: Batch, candidate: int) -> dict[str, float]:
    """Those of the candidate's point; a campaign's conditions have their own."""
    if plan.campaign is not None:
        return dict(plan.campaign.conditions[candidate].knobs)
    return SearchSpace.model_validate(plan.space).decode(batch.points[candidate])
