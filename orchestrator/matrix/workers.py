"""`check workers`: the baseline's throughput at 1, 2, 4 ... workers, a run of its own at each.

They are calibration runs in all but name, so each resumes and none is paid twice. The name begins
with `sweep-`: a calibration is found by a name that begins with its objective's, and a sweep,
whose evaluations are fewer and whose machine is loaded on purpose, must never be taken for one.
Nor is a calibration taken for a level: all levels are measured in one go, under like conditions.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, fsum, isinf, sqrt
from pathlib import Path
from statistics import median, stdev
from typing import Any

from budgets.events import Opened, Planned, Reserved, Settled, Status
from budgets.formatting import figure, table
from budgets.ledger import LEDGER, Record, read
from budgets.plan import Plan
from orchestrator.capacity import AtMost
from orchestrator.config import Config
from orchestrator.execution.engine import devices_of
from orchestrator.execution.evaluate import Slots
from orchestrator.matrix.matrix import evaluate
from orchestrator.plan.resolve import Overrides, calibration_plan, run_directory, short_hash
from orchestrator.records.recorded import Result, recorded_state
from orchestrator.running.session import Session
from orchestrator.scalability import Fit, Level

SWEEP = "sweep"
LEAST_EVALUATIONS, LEAST_ROUNDS = 4, 2


@dataclass(frozen=True, slots=True)
class Swept:
    """What so many workers did, as a sweep's ledger has it."""

    workers: int
    evaluations: int  # healthy ones that count
    left_out: int  # failed, or taken up from a process that died
    span_seconds: float  # from the first reservation to the last settlement, sessions added up
    median_seconds: float  # of one evaluation
    spread: float  # relative standard deviation of that; 0 of one evaluation
    directory: Path

    @property
    def per_hour(self) -> float:
        return 3600 * self.evaluations / self.span_seconds

    @property
    def level(self) -> Level:
        """As the law is fitted to it."""
        return Level(self.workers, self.per_hour, self.spread / sqrt(self.evaluations))


def worker_counts(devices: int) -> tuple[int, ...]:
    """The powers of two up to the devices, and the devices."""
    powers = (2**n for n in range(devices.bit_length()))
    return tuple(sorted({*(n for n in powers if n <= devices), devices}))


def evaluations_at(workers: int, least: int = LEAST_EVALUATIONS) -> int:
    """Whole rounds, so that no worker idles at the end: two at least, and `least` evaluations."""
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
        """How each level ended, fewest workers first: measured, or what was begun taken up.

        Every level has the threads that all slots together have: they would decide the score.
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
        name, reasons = f"{SWEEP}-{plan.run_id}", tuple[str, ...]()
        if reason := self.reason.strip():
            name, reasons = f"{name}-{short_hash(reason)}", (f"swept again: {reason}",)
        return plan.model_copy(update={"run_id": name, "reasons": reasons})


def swept(directory: Path) -> Swept:
    """What the finished level in `directory` measured.

    Raises ValueError where not one evaluation was healthy and heard of by who began it, or where
    they took no time.
    """
    records = read(directory / LEDGER).records
    settled = [record.event for record in records if isinstance(record.event, Settled)]
    healthy = [event for event in settled if event.status is Status.OK and not event.recovered]
    span_ms = sum(_span_ms(session) for session in _sessions(records))
    if not healthy or span_ms <= 0:
        cause = settled[-1].cause if settled else "nothing was evaluated"
        raise ValueError(
            f"{directory} measured no throughput ({len(healthy)} healthy evaluations in "
            f"{span_ms / 1000:g} s; {cause or 'too quick to measure'}). Sweep again with: "
            "check workers --again --reason WHY"
        )
    workers = next(
        record.event.plan.devices.count for record in records if isinstance(record.event, Planned)
    )
    seconds = [event.seconds for event in healthy]
    mean = fsum(seconds) / len(seconds)
    return Swept(
        workers=workers,
        evaluations=len(healthy),
        left_out=len(settled) - len(healthy),
        span_seconds=span_ms / 1000,
        median_seconds=median(seconds),
        spread=stdev(seconds) / mean if len(seconds) > 1 and mean > 0 else 0.0,
        directory=directory,
    )


def _sessions(records: Iterable[Record]) -> list[list[Record]]:
    """Records by the process that wrote them: their clocks have nothing to do with each other."""
    sessions: list[list[Record]] = []
    for record in records:
        if isinstance(record.event, Opened):
            sessions.append([])
        if sessions:
            sessions[-1].append(record)
    return sessions


def _span_ms(session: Sequence[Record]) -> int:
    """From the first reservation to the last settlement of an attempt that it heard of itself."""
    reserved = [r.elapsed_ms for r in session if isinstance(r.event, Reserved)]
    heard = [
        r.elapsed_ms for r in session if isinstance(r.event, Settled) and not r.event.recovered
    ]
    return max(heard) - reserved[0] if reserved and heard else 0


_COLUMNS = (">workers", ">evaluations/hour", ">seconds each", ">efficiency", ">fitted", "regime")


def to_markdown(name: str, levels: list[Swept], fit: Fit, devices: int) -> str:
    """The table, the law, and what to do about it."""
    lines = [
        f"# Throughput of {name}",
        "",
        *table(_COLUMNS, (_row(level, levels[0], fit) for level in levels)),
        "",
        *_in_words(fit),
        "",
        f"Recommended: `--workers {fit.recommended(devices)}`.",
    ]
    return "\n".join([*lines, *_warnings(levels, fit), ""])


def _row(level: Swept, first: Swept, fit: Fit) -> tuple[object, ...]:
    noise = figure(level.level.noise * level.per_hour)
    return (
        level.workers,
        f"{figure(level.per_hour)} ± {noise}",
        f"{level.median_seconds:.3g}",
        f"{efficiency(level, first, fit):.0%}",
        figure(fit.law.throughput(level.workers)),
        fit.regime(level.workers),
    )


def efficiency(level: Swept, first: Swept, fit: Fit) -> float:
    """Throughput per worker, of that of one worker: measured, or else by the law."""
    one = first.per_hour if first.workers == 1 else fit.law.one
    return level.per_hour / level.workers / one


def _in_words(fit: Fit) -> list[str]:
    law = fit.law
    said = (
        f"X(N) = {figure(law.one)} N / (1 + {law.contention:.3g} (N-1) + "
        f"{law.coherency:.3g} N (N-1)) an hour: contention sigma = "
        f"{law.contention:.3g}, coherency kappa = {law.coherency:.3g}, residual {fit.residual:.1%}."
    )
    if fit.optimum is None:
        return [said, f"Untold: {'; '.join(fit.untold)}."]
    peak = "none: more workers always do more" if isinf(fit.optimum) else f"{fit.optimum:.3g}"
    return [said, f"Optimum N* = {peak}.", *(f"Untold: {one}." for one in fit.untold)]


def _warnings(levels: list[Swept], fit: Fit) -> list[str]:
    lines = []
    worse = [level.workers for level in levels if fit.regime(level.workers) == "retrograde"]
    if worse:
        lines.append(
            f"\nRetrograde from {worse[0]} workers on: they do less together than fewer would."
        )
    left_out = sum(level.left_out for level in levels)
    if left_out:
        lines.append(f"\n{left_out} evaluations failed or were interrupted: they do not count.")
    return lines


def as_document(levels: list[Swept], fit: Fit, devices: int) -> dict[str, Any]:
    """The same as one document. What cannot be told, or is infinite, is null."""
    law, optimum = fit.law, fit.optimum
    return {
        "levels": [
            {
                "workers": level.workers,
                "evaluations": level.evaluations,
                "left_out": level.left_out,
                "evaluations_per_hour": level.per_hour,
                "noise": level.level.noise,
                "median_seconds": level.median_seconds,
                "efficiency": efficiency(level, levels[0], fit),
                "fitted_per_hour": law.throughput(level.workers),
                "regime": fit.regime(level.workers),
                "directory": str(level.directory),
            }
            for level in levels
        ],
        "law": {"lambda": law.one, "sigma": law.contention, "kappa": law.coherency},
        "residual": fit.residual,
        "optimum": None if optimum is None or isinf(optimum) else optimum,
        "optimum_is_told": optimum is not None,
        "untold": list(fit.untold),
        "noise": fit.noise,
        "recommended_workers": fit.recommended(devices),
        "retrograde": [x.workers for x in levels if fit.regime(x.workers) == "retrograde"],
    }
