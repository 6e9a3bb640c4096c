"""Whether a training stands where the search that it is from stood then."""

from budgets.plan import Plan
from budgets.state import RunState
from orchestrator.records.diverged import DivergedError
from orchestrator.records.recommended import best_point


def trained_where_it_stood(plan: Plan, then: RunState | None) -> str:
    """`then` is that search when the training was planned; None where it is gone.

    Raises DivergedError where the point is another one.
    """
    assert plan.campaign is not None
    assert plan.parent is not None
    whose = plan.parent.run_id
    if then is None:
        return f"training: the ledger of {whose} is not beside this run, or another one"
    points = [c.point for c in plan.campaign.conditions if c.point is not None]
    if any(point != best_point(then, compared=True) for point in points):
        raise DivergedError(f"what is trained is not what {whose} had found")
    return f"training: {whose} had found the point that is trained"
