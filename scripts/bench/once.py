"""How long an executor takes for one evaluation, whatever is evaluated."""

import time
from pathlib import Path

from budgets.terms import Limits
from objectives.api import Objective
from orchestrator.execution import processes
from orchestrator.execution.evaluate import Attempt, Executor


def evaluated(executor: Executor, objective: Objective, directory: Path) -> float:
    """Milliseconds from `submit` to the outcome, which is well."""
    directory.mkdir()
    attempt = Attempt(
        attempt_id=directory.name,
        directory=directory,
        objective=objective.spec,
        knobs={knob.name: knob.baseline for knob in objective.space.knobs},
        seed=1,
        limits=Limits(wall_seconds=60.0),
        owner=processes.this_owner(),
    )
    began = time.perf_counter()
    executor.submit(attempt)
    (outcome,) = executor.wait(120.0)
    taken = time.perf_counter() - began
    assert outcome.status == "ok", outcome
    return 1e3 * taken
