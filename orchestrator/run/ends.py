"""An attempt's id, and how its end is recorded."""

import hashlib
import math
from typing import Any

from budgets.events import Reserved, Settled, Status
from budgets.failure_causes import cause_of, is_unexplained
from budgets.formatting import one_line
from budgets.state import RunState
from orchestrator.execution.api import Outcome
from orchestrator.execution.trainer import CAUSE_CHARACTERS

PLACE = ("comparison", "generation", "candidate", "seed", "attempt")
OBSERVED = ("seconds", "startup_seconds", "cpu_seconds", "peak_memory_bytes", "device")
REPORTED = ("train_seconds", "steps", "tokens", "train_flops", "eval_flops")


def attempt_id(state: RunState, reserved: Reserved | Settled) -> str:
    """Return an id that is unique to the run (by its first record), the attempt and its point.

    So no result is taken for that of another point, even if the ledger has lost records.
    """
    configuration = state.batch(reserved).configurations[reserved.candidate]
    identity = f"{state.genesis}/{reserved.place}/{configuration.point}"
    if configuration.settings:
        identity += f"/{sorted(configuration.settings.items())}"
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def settled(reserved: Reserved | Settled, outcome: Outcome, *, recovered: bool = False) -> Settled:
    """Return the ledger's event for an outcome. Only finite numbers enter it."""
    own, status, score = outcome.measurement, outcome.status, None
    found: dict[str, Any] = {name: getattr(reserved, name) for name in PLACE}
    found |= {name: getattr(outcome, name) for name in OBSERVED}
    if own is not None:
        found |= {name: getattr(own, name) for name in REPORTED}
        found["metrics"] = {k: v for k, v in own.metrics.items() if math.isfinite(v)}
    if status is Status.OK:
        score = own.score if own is not None and math.isfinite(own.score) else None
        status = Status.NAN if score is None else status
    return Settled(
        status=status,
        score=score,
        charged_ms=math.ceil(1000 * outcome.seconds - 1e-6),  # n / 1000 s cost n, not n + 1
        cause=one_line(outcome.cause, CAUSE_CHARACTERS),
        recovered=recovered,
        **found,
    )


def judged(state: RunState, end: Settled) -> Settled:
    """Return the end as it is recorded: as it is, as lost, or to be retried.

    A failure that may be the machine's is retried once; one of the infrastructure or of the setup
    is `lost`. An evaluation that is lost `attempts_per_session` times becomes its configuration's
    failure, but only after such losses have paused the run and a person has resumed it; attempts
    that ended with their orchestrator do not count.
    """
    cause = cause_of(end.status, end.cause)
    if cause is None or end.status is Status.CANCELLED or cause.whose == "configuration":
        return end
    attempts = state.batch(end).attempts[end.candidate, end.seed][: end.attempt - 1]
    earlier = [one.settled for one in attempts if one.settled is not None]
    if cause.whose == "ambiguous":
        return end if any(one.retry for one in earlier) else end.model_copy(update={"retry": True})
    lost = end.model_copy(update={"status": Status.LOST})
    limit = state.plan.thresholds.attempts_per_session
    ends = [one for one in (*earlier, lost) if is_unexplained(one.status, one.cause)]
    counted = [one for one in ends if not one.recovered]
    has_paused = any(fired.rule == "infrastructure" for fired in state.fired)
    if lost not in counted or len(counted) < limit or not has_paused:
        return lost
    cause_text = one_line(f"lost {len(counted)} times: {lost.cause}")
    return lost.model_copy(update={"status": Status.ERROR, "cause": cause_text})
