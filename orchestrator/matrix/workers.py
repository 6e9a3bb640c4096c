"""`check workers`: the baseline's throughput at 1, 2, 4 ... workers, a run of its own at each.

Each is a calibration run in all but name, so it resumes and is not paid twice. Its name begins with
`sweep-`, so that it is never used as a calibration: its evaluations are fewer, and its machine is
loaded on purpose. All levels are measured in one go, under like conditions.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from math import ceil, isinf, sqrt
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from budgets.events import Status
from budgets.formatting import figure, table
from budgets.plan import Plan
from budgets.state import Attempt, RunState
from orchestrator.capacity import AtMost
from orchestrator.config import Config
from orchestrator.execution.api import Slots
from orchestrator.execution.engine import devices_of
from orchestrator.matrix.matrix import evaluate
from orchestrator.plan.resolve import Overrides, calibration_plan, run_directory, short_hash
from orchestrator.records.runs import Result, recorded_state
from orchestrator.run.session import Session
from orchestrator.scalability import Fit, Level

LEAST_EVALUATIONS, LEAST_ROUNDS = 4, 2


@dataclass(frozen=True)
class Swept:
    """What a number of workers did, as a sweep's ledger has it."""

    workers: int
    evaluations: int  # healthy ones that count
    left_out: int  # failed, or taken up from a process that died
    evaluations_per_hour: float
    median_seconds: float  # of one evaluation
    noise: float  # relative standard error of the throughput; 0 of one evaluation
    directory: Path

    @property
    def level(self) -> Level:
        """As the law is fitted to it."""
        return Level(self.workers, self.evaluations_per_hour, self.noise)


def worker_counts(devices: int) -> tuple[int, ...]:
    """The powers of two up to the devices, and the devices."""
    powers = (2**n for n in range(devices.bit_length()))
    return tuple(sorted({*(n for n in powers if n <= devices), devices}))


def evaluations_at(workers: int, least: int = LEAST_EVALUATIONS) -> int:
    """Whole rounds, so that no worker is idle at the end: two at least, and `least` evaluations."""
    return workers * max(LEAST_ROUNDS, ceil(least / workers))


@dataclass(frozen=True)
class Sweep:
    """What is to be measured; `slots` are all there are."""

    config: Config
    slots: Slots
    counts: tuple[int, ...]
    least: int = LEAST_EVALUATIONS  # at each number of workers
    reason: str = ""  # to sweep again, although that was done
    overrides: Overrides = ()  # of the level that a rule holds up

    def carry_out(self, session: Session) -> Iterator[Result]:
        """Measure each level, fewest workers first; one that was begun is resumed.

        Every level has the threads that all slots together have, because they decide the score.
        """
        baseline = (self.config.tuned.space.baseline,)
        for workers in self.counts:
            plan = self.plan(workers)
            recorded = recorded_state(run_directory(session.root, "calibration", plan.run_id))
            is_held_up = recorded is not None and recorded.concluded is None
            session.say(f"Throughput of {workers} at once: {plan.resolved.evaluations} seeds.")
            overrides = self.overrides if is_held_up else ()
            pace = AtMost(workers)
            yield evaluate(session, plan, self.slots, baseline, overrides, pace=pace)

    def plan(self, workers: int) -> Plan:
        """The plan of a level: the baseline on some seeds, `workers` of them at once.

        For each reason to sweep again it is another run.
        """
        devices = devices_of(replace(self.slots, count=workers))
        evaluations = evaluations_at(workers, self.least)
        plan = calibration_plan(self.config, devices, evaluations)
        name, reasons = f"sweep-{plan.run_id}", tuple[str, ...]()
        if reason := self.reason.strip():
            name, reasons = f"{name}-{short_hash(reason)}", (f"swept again: {reason}",)
        return plan.model_copy(update={"run_id": name, "reasons": reasons})


def swept(state: RunState, directory: Path) -> Swept:
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
            f"{directory} measured no throughput ({len(healthy)} healthy evaluations in "
            f"{span_ms / 1000:g} s; {cause or 'too quick to measure'}). Sweep again with: "
            "check workers --again --reason WHY"
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
        directory=directory,
    )


def _span_ms(tries: list[Attempt], session: int) -> int:
    """From a session's first reservation to the last settlement of an attempt that it watched."""
    own = [one for one in tries if one.session == session]
    ends = [
        one.settled_at.ms
        for one in own
        if one.settled is not None and one.settled_at is not None and not one.settled.recovered
    ]
    return max(ends) - min(one.reserved_ms for one in own) if ends else 0


def as_document(levels: list[Swept], fit: Fit, devices: int) -> dict[str, Any]:
    """The levels, the fitted law and the recommendation as JSON; what cannot be told is null."""
    law, optimum = fit.law, fit.optimum
    one = levels[0].evaluations_per_hour if levels[0].workers == 1 else law.one
    rows = [
        {
            **asdict(level),
            "efficiency": level.evaluations_per_hour / level.workers / one,
            "fitted_per_hour": law.throughput(level.workers),
            "regime": fit.regime(level.workers),
            "directory": str(level.directory),
        }
        for level in levels
    ]
    return {
        "levels": rows,
        "law": {"lambda": law.one, "sigma": law.contention, "kappa": law.coherency},
        "residual": fit.residual,
        "optimum": None if optimum is None or isinf(optimum) else optimum,
        "optimum_is_told": optimum is not None,
        "untold": list(fit.untold),
        "noise": fit.noise,
        "recommended_workers": fit.recommended(devices),
        "retrograde": [row["workers"] for row in rows if row["regime"] == "retrograde"],
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
    if found["optimum_is_told"]:
        peak = "none: more workers always do more" if optimum is None else f"{optimum:.3g}"
        lines.append(f"Optimum N* = {peak}.")
    lines += [f"Unknown: {what}." for what in found["untold"]]
    lines += ["", f"Recommended: `--workers {found['recommended_workers']}`."]
    if worse := found["retrograde"]:
        lines.append(f"\nRetrograde from {worse[0]} workers on: fewer would do more together.")
    if left_out := sum(level["left_out"] for level in found["levels"]):
        lines.append(f"\n{left_out} evaluations failed or were interrupted: they do not count.")
    return "\n".join([*lines, ""])
