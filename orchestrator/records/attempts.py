"""An attempt by what its reservation says: where its files lie."""

from budgets.events import Reserved, Settled


def attempt_place(reserved: Reserved | Settled) -> str:
    """The attempt's directory under the run's `eval/`."""
    again = "" if reserved.attempt == 1 else f".{reserved.attempt}"
    batch = f"{reserved.comparison or 'gen'}_{reserved.generation:04d}"
    return f"{batch}/cand_{reserved.candidate:04d}/seed_{reserved.seed}{again}"
