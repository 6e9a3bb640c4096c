"""An attempt's files: where they lie, and what in them is a number."""

import math

from budgets.events import Reserved, Settled


def attempt_place(reserved: Reserved | Settled) -> str:
    """The attempt's directory under the run's `eval/`."""
    again = "" if reserved.attempt == 1 else f".{reserved.attempt}"
    batch = f"{reserved.panel or 'gen'}_{reserved.generation:04d}"
    return f"{batch}/cand_{reserved.candidate:04d}/seed_{reserved.seed}{again}"


def as_number(written: object) -> float | None:
    """What an attempt's own files say, where it is a finite number."""
    if isinstance(written, bool) or not isinstance(written, int | float):
        return None
    return float(written) if math.isfinite(written) else None
