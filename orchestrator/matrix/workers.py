"""`check workers`: the throughput of the baseline on 1, 2, 4 ... workers, one run for each.

These runs resume as calibrations do. Their names begin with `sweep-`, so that none is used as a
calibration: they have fewer evaluations, on a machine that is loaded on purpose.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, sqrt
from statistics import fmean, median, stdev
from typing import Any, NamedTuple

from budgets.events import Settled, Status
from budgets.formatting import number, table
from budgets.state import Attempt, RunState
from orchestrator.capacity import AtMost, Level, fit
from orchestrator.config import Config
from orchestrator.execution.api import Slots
from orchestrator.execution.engine import devices_of
from orchestrator.matrix.matrix import evaluate
from orchestrator.plan.resolve import calibration_plan
from orchestrator.records.runs import Result
from orchestrator.run.session import Session

LEAST_EVALUATIONS, LEAST_ROUNDS = 4, 2


def worker_counts(devices: int) -> tuple[int, ...]:
    """Return the powers of two up to the number of devices, and that number."""
    powers = (2**n for n in range(devices.bit_length()))
    return tuple(sorted({*(n for n in powers if n <= devices), devices}))


def evaluations_at(workers: int, least: int = LEAST_EVALUATIONS) -> int:
    """Return at least `least` evaluations, in two or more whole rounds: no worker idles."""
    return workers * max(LEAST_ROUNDS, ceil(least / workers))


def sweep(
    session: Session,
    config: Config,
    slots: Slots,
    counts: Sequence[int],
    least: int = LEAST_EVALUATIONS,
) -> Iterator[Result]:
    """Measure, or resume, each number of workers, all with the same threads."""
    for workers in counts:
        devices = devices_of(replace(slots, count=workers))
        plan = calibration_plan(config, devices, evaluations_at(workers, least))
        plan = plan.model_copy(update={"run_id": f"sweep-{plan.run_id}"})
        session.say(f"Throughput of {workers} at once: {plan.resolved.evaluations} seeds.")
        points = (config.tuned.space.baseline,)
        yield evaluate(session, plan, slots, points, pace=AtMost(workers))


class Throughput(NamedTuple):
    """What a number of workers did together."""

    workers: int
    evaluations: int  # healthy ones
    evaluations_per_hour: float
    median_seconds: float  # of one evaluation
    noise: float  # relative standard error of the throughput; 0 for one evaluation


def throughput(state: RunState) -> Throughput:
    """Return the healthy evaluations of a finished run over the time of its sessions.

    Only those count that ended in the session that started them. Raises ValueError without any.
    """
    watched = [
        (attempt, end, attempt.settled_at.ms)
        for attempts in state.generations[0].attempts.values()
        for attempt in attempts
        if (end := attempt.settled) and attempt.settled_at and not end.recovered
    ]
    healthy = [end.seconds for _, end, _ in watched if end.status is Status.OK]
    span_ms = sum(_spans_ms(watched))
    if not healthy or span_ms <= 0:
        raise ValueError(
            f"{state.plan.run_id} measured no throughput: {len(healthy)} healthy evaluations in "
            f"{span_ms / 1000:g} s. Repeat it on other seeds with --set evaluation.seed=N"
        )
    mean = fmean(healthy)
    spread = stdev(healthy) / mean if len(healthy) > 1 and mean > 0 else 0.0
    return Throughput(
        workers=state.plan.devices.count,
        evaluations=len(healthy),
        evaluations_per_hour=3.6e6 * len(healthy) / span_ms,
        median_seconds=median(healthy),
        noise=spread / sqrt(len(healthy)),
    )


def _spans_ms(watched: Sequence[tuple[Attempt, Settled, int]]) -> Iterator[int]:
    """For each session, the time from its first reservation to its last settlement."""
    for session in {attempt.session for attempt, _, _ in watched}:
        own = [(one.reserved_ms, ended) for one, _, ended in watched if one.session == session]
        yield max(ended for _, ended in own) - min(began for began, _ in own)


def as_document(levels: Sequence[Throughput], devices: int) -> dict[str, Any]:
    """Return the levels, the fitted law and the recommendation as JSON; null: unknown."""
    fitted = fit(Level(one.workers, one.evaluations_per_hour, one.noise) for one in levels)
    law = fitted.law
    rows = [
        {
            **level._asdict(),
            "fitted_per_hour": law.throughput(level.workers),
            "regime": law.regime(level.workers),
        }
        for level in levels
    ]
    return {
        "levels": rows,
        "law": {"lambda": law.one, "sigma": law.contention, "kappa": law.coherency},
        "residual": fitted.residual,
        "optimum": fitted.optimum,
        "noise": fitted.noise,
        "recommended_workers": fitted.recommended(devices),
    }


def to_markdown(name: str, found: dict[str, Any]) -> str:
    """Return the document as a table, the law and a recommendation."""
    columns = (">workers", ">evaluations/hour", ">seconds each", ">fitted", "regime")
    rows = (
        (
            level["workers"],
            f"{number(level['evaluations_per_hour'], 4)} ± "
            f"{number(level['noise'] * level['evaluations_per_hour'], 4)}",
            f"{level['median_seconds']:.3g}",
            number(level["fitted_per_hour"], 4),
            level["regime"],
        )
        for level in found["levels"]
    )
    law, optimum = found["law"], found["optimum"]
    lines = [
        f"# Throughput of {name}",
        "",
        *table(columns, rows),
        "",
        f"X(N) = {number(law['lambda'], 4)} N / (1 + {law['sigma']:.3g} (N-1) + "
        f"{law['kappa']:.3g} N (N-1)) an hour: contention sigma = {law['sigma']:.3g}, coherency "
        f"kappa = {law['kappa']:.3g}, residual {found['residual']:.1%}. "
        f"Optimum: {'none found' if optimum is None else f'N* = {optimum:.3g}'}.",
        "",
        f"Recommended: `--workers {found['recommended_workers']}`.",
        "",
    ]
    return "\n".join(lines)
