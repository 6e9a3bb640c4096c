"""`check workers`: the baseline's throughput at 1, 2, 4 ... workers, a run of its own at each.

Each is a calibration run in all but name, so it resumes and is not paid twice. Its name begins with
`sweep-`, so that it is never used as a calibration: its evaluations are fewer, and its machine is
loaded on purpose. All levels are measured in one go, under like conditions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil, isinf, sqrt
from statistics import fmean, median, stdev
from typing import Any

from budgets.events import Status
from budgets.formatting import figure, table
from budgets.state import Attempt, RunState
from orchestrator.capacity import AtMost
from orchestrator.config import Config
from orchestrator.execution.api import Slots
from orchestrator.execution.engine import devices_of
from orchestrator.matrix.matrix import evaluate
from orchestrator.plan.resolve import calibration_plan
from orchestrator.records.runs import Result
from orchestrator.run.session import Session
from orchestrator.scalability import Fit, Level

LEAST_EVALUATIONS, LEAST_ROUNDS = 4, 2


def worker_counts(devices: int) -> tuple[int, ...]:
    """The powers of two up to the devices, and the devices."""
    powers = (2**n for n in range(devices.bit_length()))
    return tuple(sorted({*(n for n in powers if n <= devices), devices}))


def evaluations_at(workers: int, least: int = LEAST_EVALUATIONS) -> int:
    """Whole rounds, so that no worker is idle at the end: two at least, and `least` evaluations."""
    return workers * max(LEAST_ROUNDS, ceil(least / workers))


def sweep(
    session: Session,
    config: Config,
    slots: Slots,
    counts: Sequence[int],
    least: int = LEAST_EVALUATIONS,
) -> Iterator[Result]:
    """Measure each number of workers, the fewest first; what was begun is resumed.

    Every level has the threads that all `slots` together have, because they decide the score.
    """
    for workers in counts:
        devices = devices_of(replace(slots, count=workers))
        plan = calibration_plan(config, devices, evaluations_at(workers, least))
        plan = plan.model_copy(update={"run_id": f"sweep-{plan.run_id}"})
        session.say(f"Throughput of {workers} at once: {plan.resolved.evaluations} seeds.")
        points = (config.tuned.space.baseline,)
        yield evaluate(session, plan, slots, points, pace=AtMost(workers))


@dataclass(frozen=True)
class Swept:
    """What a number of workers did, as a sweep's ledger has it."""

    workers: int
    evaluations: int  # healthy ones that count
    left_out: int  # failed, or taken up from a process that died
    evaluations_per_hour: float
    median_seconds: float  # of one evaluation
    noise: float  # relative standard error of the throughput; 0 of one evaluation

    @property
    def level(self) -> Level:
        """As the law is fitted to it."""
        return Level(self.workers, self.evaluations_per_hour, self.noise)


def swept(state: RunState) -> Swept:
    """What a finished level measured: its healthy evaluations, over the time of its sessions.

    Raises ValueError where no evaluation was healthy and seen to its end by the session that
    started it, or where they took no time.
    """
    tries = [one for tries in state.generations[0].attempts.values() for one in tries]
    ends = [one.settled for one in tries if one.settled is not None]
    healthy = [end for end in ends if end.status is Status.OK and not end.recovered]
    span_ms = sum(_span_ms(tries, session) for session in range(len(state.opened)))
    if not healthy or span_ms <= 0:
        cause = ends[-1].cause if ends else "nothing was evaluated"
        raise ValueError(
            f"{state.plan.run_id} measured no throughput ({len(healthy)} healthy evaluations in "
            f"{span_ms / 1000:g} s; {cause or 'too quick to measure'}). Sweep again on other seeds "
            "with --set evaluation.seed=N"
        )
    seconds = [end.seconds for end in healthy]
    mean = fmean(seconds)
    spread = stdev(seconds) / mean if len(seconds) > 1 and mean > 0 else 0.0
    return Swept(
        workers=state.plan.devices.count,
        evaluations=len(healthy),
        left_out=len(ends) - len(healthy),
        evaluations_per_hour=3.6e6 * len(healthy) / span_ms,
        median_seconds=median(seconds),
        noise=spread / sqrt(len(healthy)),
    )


def _span_ms(tries: Sequence[Attempt], session: int) -> int:
    """From a session's first reservation to the last settlement of an attempt that it watched."""
    own = [one for one in tries if one.session == session]
    ends = [
        one.settled_at.ms
        for one in own
        if one.settled is not None and one.settled_at is not None and not one.settled.recovered
    ]
    return max(ends) - min(one.reserved_ms for one in own) if ends else 0


def as_document(levels: Sequence[Swept], fit: Fit, devices: int) -> dict[str, Any]:
    """The levels, the fitted law and the recommendation as JSON; what cannot be told is null."""
    law, optimum = fit.law, fit.optimum
    one = levels[0].evaluations_per_hour if levels[0].workers == 1 else law.one
    rows = [
        {
            **asdict(level),
            "efficiency": level.evaluations_per_hour / level.workers / one,
            "fitted_per_hour": law.throughput(level.workers),
            "regime": fit.regime(level.workers),
        }
        for level in levels
    ]
    return {
        "levels": rows,
        "law": {"lambda": law.one, "sigma": law.contention, "kappa": law.coherency},
        "residual": fit.residual,
        "optimum": None if optimum is None or isinf(optimum) else optimum,
        "noise": fit.noise,
        "recommended_workers": fit.recommended(devices),
    }


def to_markdown(name: str, found: dict[str, Any]) -> str:
    """The same document for people: the table, the law, and what to do about it."""
    columns = (">workers", ">evaluations/hour", ">seconds each", ">efficiency", ">fitted", "regime")
    rows = (
        (
            level["workers"],
            f"{figure(level['evaluations_per_hour'])} ± "
            f"{figure(level['noise'] * level['evaluations_per_hour'])}",
            f"{level['median_seconds']:.3g}",
            f"{level['efficiency']:.0%}",
            figure(level["fitted_per_hour"]),
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
        f"X(N) = {figure(law['lambda'])} N / (1 + {law['sigma']:.3g} (N-1) + "
        f"{law['kappa']:.3g} N (N-1)) an hour: contention sigma = {law['sigma']:.3g}, coherency "
        f"kappa = {law['kappa']:.3g}, residual {found['residual']:.1%}.",
    ]
    if optimum is not None:
        lines.append(f"Optimum N* = {optimum:.3g}.")
    elif len(found["levels"]) > 2:
        lines.append("Optimum N*: none, more workers always do more.")
    else:
        lines.append("Optimum N*: not known from so few numbers of workers.")
    lines += ["", f"Recommended: `--workers {found['recommended_workers']}`."]
    if left_out := sum(level["left_out"] for level in found["levels"]):
        lines.append(f"\n{left_out} evaluations failed or were interrupted: they do not count.")
    return "\n".join([*lines, ""])
