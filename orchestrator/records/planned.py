"""What a plan says of its objective, as the objective's own models."""

from budgets.plan import Plan
from budgets.state import Batch
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


def same_objective(plan: Plan) -> Objective:
    """The objective that was evaluated. Raises ValueError where it would score otherwise now."""
    objective = objective_of(plan)
    if objective.fingerprint != plan.objective_fingerprint:
        raise ValueError(
            f"{plan.run_id} searched {plan.objective['name']} "
            f"{plan.objective_fingerprint[:10]}, which is {objective.fingerprint[:10]} here: its "
            "data or its code has changed since"
        )
    return objective


def knobs_of(batch: Batch, candidate: int, space: SearchSpace) -> dict[str, float]:
    """Those of the candidate's point; a campaign's conditions have their own."""
    own = batch.configurations[candidate]
    return space.decode(own.point) if own.knobs is None else dict(own.knobs)
