"""A sum whose last bit is the same in every Python, for what a ledger must replay to."""

from collections.abc import Iterable
from functools import reduce
from operator import add


def total(values: Iterable[float]) -> float:
    """Each added to those before it. Since Python 3.12 `sum` makes up for what that rounds off."""
    return reduce(add, values, 0.0)
