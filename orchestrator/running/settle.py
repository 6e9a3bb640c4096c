"""From an outcome to the ledger's word for it; and which attempt a reservation is for."""

import hashlib
import math

from budgets.events import Reserved, Settled, Status
from budgets.failures import was_given_up
from budgets.formatting import one_line
from budgets.state import RunState
from orchestrator.execution.api import Outcome
from orchestrator.execution.trainer import MOST_CHARACTERS, MOST_SETUP_CHARACTERS
from orchestrator.records.attempts import attempt_place


def attempt_id(state: RunState, reserved: Reserved | Settled) -> str:
    """Differs between runs, by the hash of the run's first record, between attempts and points.

    So nobody takes a result for that of another point, whatever became of the ledger in between.
    """
    batch = state.batch(reserved)
    identity = f"{state.genesis}/{attempt_place(reserved)}/{batch.points[reserved.candidate]}"
    if changed := batch.settings(reserved.candidate):
        identity += f"/{sorted(changed.items())}"
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def settles(outcome: Outcome, recorded: Settled) -> bool:
    """Whether this outcome, not silence, is what the attempt was settled with.

    An error of the machine's, of the setup or on a full disk was settled as lost, and so was what
    somebody else cancelled.
    """
    same = {recorded.status}
    if was_given_up(recorded.status, recorded.cause):
        same = {Status.LOST, Status.ERROR, Status.CANCELLED}
    return outcome.status in same and outcome.seconds == recorded.seconds


def settled(reserved: Reserved | Settled, outcome: Outcome, *, recovered: bool = False) -> Settled:
    """The ledger's word for how an attempt ended. Only finite numbers enter it."""
    measurement = outcome.measurement
    status, score = outcome.status, None
    if status is Status.OK:
        if measurement is not None and math.isfinite(measurement.score):
            score = measurement.score
        else:
            status = Status.NAN
    is_setup = outcome.cause.startswith("SetupError")
    measured = {}
    if measurement is not None:
        fields = ("train_seconds", "steps", "tokens", "train_flops", "eval_flops")
        measured = {name: getattr(measurement, name) for name in fields}
        measured["metrics"] = {k: v for k, v in measurement.metrics.items() if math.isfinite(v)}
    return Settled(
        panel=reserved.panel,
        generation=reserved.generation,
        candidate=reserved.candidate,
        seed=reserved.seed,
        attempt=reserved.attempt,
        status=status,
        score=score,
        charged_ms=math.ceil(1000 * outcome.seconds - 1e-6),  # of n / 1000 s: n, not one more
        seconds=outcome.seconds,
        startup_seconds=outcome.startup_seconds,
        cpu_seconds=outcome.cpu_seconds,
        peak_memory_bytes=outcome.peak_memory_bytes,
        device=outcome.device,
        cause=one_line(outcome.cause, MOST_SETUP_CHARACTERS if is_setup else MOST_CHARACTERS),
        recovered=recovered,
        **measured,
    )
