"""What a plan says of its objective, as the objective's own models."""

from budgets.state import Batch, Generation
from budgets.terms import Plan
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from objectives.space import SearchSpace


def space_of(plan: Plan) -> SearchSpace:
    return SearchSpace.model_validate(plan.space)


def spec_of(plan: Plan) -> ObjectiveSpec:
    return ObjectiveSpec.model_validate(plan.objective)


def objective_of(plan: Plan) -> Objective:
    """Loaded anew. Raises ValueError where it is not what it was."""
    return registry.load(spec_of(plan))


def knobs_of(batch: Batch, candidate: int, space: SearchSpace) -> dict[str, float]:
    """Those of the candidate's point; a campaign's conditions have their own."""
    if isinstance(batch, Generation) and batch.conditions:
        return dict(batch.conditions[candidate].knobs)
    return space.decode(batch.points[candidate])
