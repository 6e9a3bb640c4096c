"""Whether all that a plan is sure to evaluate can be evaluated here."""

from collections.abc import Iterator

from budgets.plan import Plan, Variant
from objectives import registry
from objectives.api import Objective, SetupError


def preflight(objective: Objective, plan: Plan) -> Iterator[str]:
    """Warnings of the objective, and of what else is evaluated: those name it.

    Raises SetupError, likewise, where something cannot be evaluated at all.
    """
    yield from objective.preflight()
    for varied in _varied(plan):
        other = registry.load(registry.varied(objective.spec, varied.settings))
        try:
            yield from (f"{varied.label}: {warning}" for warning in other.preflight())
        except SetupError as error:
            raise SetupError(f"{varied.label}: {error}") from error


def _varied(plan: Plan) -> Iterator[Variant]:
    """What else than the objective itself the plan is sure to evaluate."""
    if plan.proxy is not None:
        yield plan.proxy.variant
    for condition in () if plan.campaign is None else plan.campaign.conditions:
        yield Variant(label=condition.name, settings=condition.settings)
