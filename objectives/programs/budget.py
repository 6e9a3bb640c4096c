"""The budget of an evaluation, in whatever unit its program takes it."""

from objectives.api import Variant, require_factor

BUDGET = "budget"
"""The setting."""


def rung(budget: float | None, factor: float) -> Variant | None:
    """`factor` times the budget, a whole one if it is whole; None without a budget.

    Raises ValueError on a factor that is no positive number.
    """
    require_factor(factor)
    if budget is None:
        return None
    scaled = round(budget * factor) if isinstance(budget, int) else budget * factor
    if scaled <= 0:
        return None
    label = f"{factor:g} x budget"
    return Variant(label=label, settings={BUDGET: scaled}, length=scaled / budget)
