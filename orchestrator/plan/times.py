"""The times, noise and sizes to plan with: measured here, from an earlier run, assumed, or none."""

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Literal

from budgets.calibration import ONE_SCORE, EvalSeconds, Noise, eval_seconds, measure, noise
from budgets.formatting import PROGRAM, counted, in_bytes, plain
from budgets.ledger import LEAST_FREE_BYTES
from budgets.plan import Calibration, Devices, Plan, Sample
from objectives.api import Objective
from orchestrator.plan.history import (
    Entry,
    Prior,
    entry_of,
    find_calibration,
    nearest,
    on_such,
    read_history,
    scaled_seconds,
)

Origin = Literal["measured", "prior", "assumed", "none"]
"""Measured here on such devices; from another measurement; stated by the user; nothing."""


@dataclass(frozen=True)
class Overheads:
    """Seconds that no evaluation takes. Those named in `assumed` nobody has measured."""

    startup_seconds: float  # of a command, until its first evaluation may begin
    gap_seconds: float  # of a device, for each evaluation: before it starts and after it ended
    generation_seconds: float  # between a generation's last evaluation and the next one's first
    assumed: tuple[str, ...] = ()


NOTHING = Overheads(0.0, 0.0, 0.0)

_ASSUMED = {"startup_seconds": 10.0, "gap_seconds": 0.03, "generation_seconds": 0.1}
"""Where nothing was measured: Ray on two cores, an evaluation forked from a warm process, and a
guided search's model of some hundred scores (docs/benchmarks.md)."""


def overheads_of(*measured: Mapping[str, float]) -> Overheads:
    """Return those that were measured, an earlier argument's first, and assumed ones for the rest.

    The start-up is the longest: a run that was calibrated by the same command found its workers
    started.
    """
    found = {name: seconds for one in reversed(measured) for name, seconds in one.items()}
    if startups := [one["startup_seconds"] for one in measured if "startup_seconds" in one]:
        found["startup_seconds"] = max(startups)
    assumed = tuple(name for name in _ASSUMED if name not in found)
    return Overheads(**{**_ASSUMED, **found}, assumed=assumed)


ASSUMED = overheads_of()


@dataclass(frozen=True)
class Times:
    """The times, noise and sizes to plan with. Without a calibration there is no number."""

    origin: Origin = "none"
    calibration: Calibration | None = None
    prior: Prior | None = None  # the earlier run that the calibration is scaled from
    overheads: Overheads = ASSUMED
    measured_at: datetime | None = None
    attempts: int = 0  # evaluations of the calibration and the latest run that ended
    timeouts: int = 0  # ... at their limit
    evaluation_bytes: int | None = None  # on disk, of one evaluation's directory
    latest: Entry | None = None  # the latest search of the same objective on such devices

    def is_to_measure(self, calibration: Calibration) -> bool:
        """Whether a run that is planned with this `calibration` would first measure its own."""
        return self.origin == "prior" or (self.origin == "measured" and not calibration.samples)

    @property
    def drift(self) -> float | None:
        """The latest run's evaluation by the calibrated one; None without one."""
        there = None if self.latest is None else self.latest.evaluation
        if there is None or self.calibration is None:
            return None
        return there.seconds / self.calibration.median_seconds

    def for_work(self, factor: float) -> Calibration | None:
        """Return the time of an evaluation with `factor` times the FLOPs.

        Other FLOPs are assumed, at 0.7 of the throughput; equal FLOPs are the same price.
        """
        if self.calibration is None:
            return None
        is_assumed = factor != 1 and (self.prior is None or not self.prior.is_assumed)
        samples = self.calibration.samples
        startup = median(s.startup_seconds for s in samples) if samples else 0.0
        if self.prior is not None:
            startup = self.prior.evaluation.startup_seconds
        seconds = self.calibration.median_seconds
        scaled = scaled_seconds(seconds, startup, factor, is_assumed=is_assumed)
        return Calibration(assumed_seconds=scaled)


def times_here(
    root: Path, objective: Objective, devices: Devices, assumed_seconds: float | None = None
) -> Times:
    """Return what the user states of an evaluation, else a calibration, else the nearest run.

    Raises as reading a damaged calibration does.
    """
    history = read_history(root)
    latest = _latest(history, objective, devices)
    learned = {} if latest is None else latest.overheads
    found = find_calibration(root, objective, devices)
    if assumed_seconds is None and found is not None:
        own = entry_of(found.state)
        both = [own, *([] if latest is None else [latest])]
        return Times(
            "measured",
            measure(found.state),
            overheads=overheads_of(own.overheads, learned),
            measured_at=own.ended_at,
            attempts=sum(one.attempts for one in both),
            timeouts=sum(one.timeouts for one in both),
            evaluation_bytes=bytes_of_evaluations(found.directory),
            latest=latest,
        )
    overheads = overheads_of(learned)
    if assumed_seconds is not None:
        calibration = Calibration(assumed_seconds=assumed_seconds)
        return Times("assumed", calibration, overheads=overheads, latest=latest)
    if (prior := nearest(history, objective, devices)) is not None:
        calibration = Calibration(assumed_seconds=prior.eval_seconds)
        return Times("prior", calibration, prior, overheads, latest=latest)
    return Times(overheads=overheads)


def _latest(history: Sequence[Entry], objective: Objective, devices: Devices) -> Entry | None:
    """The last search of the same objective on as many such devices."""
    for entry in reversed(history):
        is_search = entry.phase in ("phase1", "phase2") and entry.evaluation is not None
        is_same = entry.fingerprint == objective.fingerprint and entry.devices == devices.count
        if is_search and is_same and on_such(entry, devices):
            return entry
    return None


# Disk


BLOCK = 4096
EVALUATION_BYTES = 6 * BLOCK  # assumed: its directory, and five files with something in them
EVALUATION_ROWS = 930 + 740  # in the ledger; in progress.csv and metrics.jsonl
GENERATION_BYTES = 490 + 3_300  # in the ledger, beside its points; its two reports
NUMBER_BYTES = 21  # one coordinate as a ledger writes it, with its comma
RUN_BYTES = 5_500  # a plan, a session and a conclusion


@dataclass(frozen=True)
class Disk:
    """Bytes that a run takes, all its comparisons and the long run included."""

    evaluations: int  # their directories
    records: int  # the ledger, reports and tables
    measured: bool  # an evaluation's directory, by the calibration's; else assumed
    free: int | None  # where the runs live; None where nobody can tell

    @property
    def needed(self) -> int:
        """All of it, with what the ledger keeps free for itself."""
        return self.evaluations + self.records + LEAST_FREE_BYTES

    @property
    def suffices(self) -> bool | None:
        return None if self.free is None else self.free >= self.needed


def disk_of(plan: Plan, root: Path, evaluation_bytes: int | None) -> Disk:
    """Return what the plan's run would take where the runs live. `root` need not be there yet."""
    shape, count = plan.resolved, plan.resolved.evaluations + plan.comparison_evaluations
    dimension = 0 if plan.search is None else len(plan.search.start)
    points = shape.population * dimension * NUMBER_BYTES
    directories = shape.generations * (1 + shape.population)  # gen_0000/cand_0000
    each = EVALUATION_BYTES if evaluation_bytes is None else evaluation_bytes
    return Disk(
        evaluations=count * each + directories * BLOCK,
        records=RUN_BYTES
        + count * EVALUATION_ROWS
        + shape.generations * (GENERATION_BYTES + points),
        measured=evaluation_bytes is not None,
        free=free_bytes(root),
    )


def free_bytes(root: Path) -> int | None:
    """Return what is free where `root` is, or would be made."""
    there = root.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    with suppress(OSError):
        return shutil.disk_usage(there).free
    return None


def bytes_of_evaluations(run: Path) -> int | None:
    """Return what one evaluation's directory takes on disk, on average; None where there is none.

    Without those above it: the seeds of a calibration share them, candidates have their own.
    """
    total, count = 0, 0
    for place, _, files in os.walk(run / "eval"):
        if any(part.startswith("seed_") for part in Path(place).relative_to(run).parts):
            total += sum(_blocks(Path(place, name)) for name in ("", *files))
            count += Path(place).name.startswith("seed_") and "config.json" in files
    return round(total / count) if count else None


def _blocks(path: Path) -> int:
    with suppress(OSError):
        return path.lstat().st_blocks * 512
    return 0


# In words


def in_short(times: Times) -> str:
    """How long an evaluation takes, and who says so, in a line."""
    calibration = times.calibration
    if calibration is None:
        return (
            f"Not calibrated here, so no times. Measure with `{PROGRAM} calibrate` and the same "
            "--objective and --set, or say `--assume-eval-seconds X`."
        )
    if times.prior is not None:
        return (
            f"**Estimated, not calibrated here**: {plain(times.prior.sentence())}. The run "
            "calibrates first."
        )
    if times.origin == "assumed":
        return f"**Assumed, not measured**: {calibration.median_seconds:g} s an evaluation."
    return f"**Measured here:** {_took(calibration)}"


def times_lines(times: Times) -> list[str]:
    """Where times and noise come from; first of all whether anybody measured them here."""
    calibration = times.calibration
    if calibration is None or times.origin != "measured":
        return [in_short(times), "", *([f"- {_beside(times)}"] if calibration else [])]
    lines = [*calibration_lines(calibration), _beside(times)]
    return ["**Measured here:**", "", *(f"- {one}" for one in lines)]


def _beside(times: Times) -> str:
    own = times.overheads

    def marked(name: str) -> str:
        return " (assumed)" if name in own.assumed else ""

    return (
        f"Beside the evaluations: {own.startup_seconds:.1f} s until the first one may begin"
        f"{marked('startup_seconds')}, {own.gap_seconds:.2g} s of a device for each"
        f"{marked('gap_seconds')}, {own.generation_seconds:.2g} s between generations"
        f"{marked('generation_seconds')}."
    )


def calibration_lines(calibration: Calibration) -> list[str]:
    """A measured calibration in words."""
    measured = noise(calibration)
    assert measured is not None
    trained = _trained(calibration.samples)
    return [_took(calibration), *trained, _spread(measured), _failures(measured)]


def _took(calibration: Calibration) -> str:
    samples, took = calibration.samples, eval_seconds(calibration)
    startup = median(s.startup_seconds for s in samples)
    training = median(s.train_seconds for s in samples)
    return (
        f"An evaluation takes {_seconds(took.median)} s (median of {len(samples)}"
        f"{_reach(took)}): start-up {startup:.2f} s, training {_seconds(training)} s. "
        f"One device does {3600 / took.median:.0f} an hour."
    )


def _reach(took: EvalSeconds) -> str:
    """Nothing where all took the same, as far as is shown."""
    low, high = _seconds(took.min), _seconds(took.max)
    return "" if low == high else f"; {low} to {high} s, p90 {_seconds(took.p90)} s"


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.3g}"


def _trained(samples: Sequence[Sample]) -> list[str]:
    """What an evaluation does of steps, tokens and FLOPs, as far as its objective tells."""
    steps = round(median(s.steps for s in samples))
    if not steps:
        return []
    rates = [s.tokens / s.train_seconds for s in samples if s.train_seconds]
    rate = median(rates) if rates else 0.0
    flops = median(s.train_flops for s in samples)
    scoring = median(s.eval_flops for s in samples)
    memory = max(s.peak_memory_bytes for s in samples)
    scored = f" (and {scoring:.3g} to score)" if scoring else ""
    done = (
        counted(steps, "step"),
        f"{rate:,.0f} tokens a second" if rate else "",
        f"{flops:.3g} FLOPs{scored}" if flops else "",
    )
    return [f"It trains {', '.join(filter(None, done))}, in {in_bytes(memory)} at most."]


def _spread(of: Noise) -> str:
    if of.sd is None or of.sd_low is None or of.sd_high is None:
        return f"The baseline scores {of.mean:.5g}, on one seed."
    if of.is_about_zero:
        return (
            f"The baseline scores {of.mean:.3g}, sd {of.sd:.3g} over {of.seeds} seeds. That cannot "
            "be told from 0, and a gain is a share of it: no search of it can end in a verdict."
        )
    if of.sd == 0:
        return f"The baseline scores {of.mean:.5g} on each of {of.seeds} seeds: {ONE_SCORE}."
    share, low, high = (sd / abs(of.mean) for sd in (of.sd, of.sd_low, of.sd_high))
    return (
        f"The baseline scores {of.mean:.5g}, sd {of.sd:.3g} over {of.seeds} seeds ({share:.2%}; "
        f"95% interval {low:.2%} to {high:.2%}). The seed alone moves a score so far: two "
        "that differ by no more may be equally good."
    )


def _failures(of: Noise) -> str:
    failed, total = of.failed or "None", of.seeds + of.failed
    return (
        f"{failed} of {total} evaluations of the baseline failed ({of.failure_rate:.1%}; 95% "
        f"interval {of.failure_low:.1%} to {of.failure_high:.1%})."
    )
