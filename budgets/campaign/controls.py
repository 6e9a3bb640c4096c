"""Which controls a condition is compared with."""

from collections.abc import Sequence

from budgets.terms import Condition


def controls_of(number: int, conditions: Sequence[Condition]) -> list[int]:
    """The numbers of the controls that the condition of that number is compared with.

    A control with levels that other conditions share is theirs (`1B_base` of `1B_rank4`, not of
    `3B_rank4`); every other control is everybody's. Controls are compared with those before them.
    """
    own = conditions[number]
    return [
        other
        for other, control in enumerate(conditions)
        if control.control
        and other != number
        and not (own.control and other > number)
        and (shares(own, control) or not any(shares(c, control) for c in conditions))
    ]


def shares(condition: Condition, control: Condition) -> bool:
    """Whether the condition, no control itself, has all the levels that the control has."""
    if condition.control or not control.levels:
        return False
    return control.levels.items() <= condition.levels.items()
