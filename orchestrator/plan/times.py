"""What a run's wall clock loses beside its evaluations, as a ledger has measured it."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Literal

from budgets import verdict as luck
from budgets.calibration import ONE_SCORE, EvalSeconds, Noise, eval_seconds, measure, noise
from budgets.events import GenerationTold, Opened, Reserved, Settled, Status
from budgets.formatting import PROGRAM, counted, in_bytes, plain
from budgets.ledger import LEAST_FREE_BYTES, LEDGER, LedgerCorruptError, Record, read
from budgets.plan import Calibration, Devices, Plan, Sample
from budgets.state import ImpossibleEventError, fold
from objectives.api import Objective
from orchestrator.plan.history import Prior, find_calibration, nearest, read_history, scaled_seconds
from orchestrator.records.recorded import first_plan, last_changed, ledgers


@dataclass(frozen=True)
class Overheads:
    """Seconds that no evaluation takes. Those named in `assumed` nobody has measured."""

    startup_seconds: float  # of a command, until its first evaluation may begin
    gap_seconds: float  # of a device, for each evaluation: before it starts and after it ended
    generation_seconds: float  # between a generation's last evaluation and the next one's first
    assumed: tuple[str, ...] = ()


NOTHING = Overheads(0.0, 0.0, 0.0)

ASSUMED = Overheads(10.0, 0.03, 0.1, ("start-up", "gap", "between generations"))
"""Where nothing was measured: Ray on two cores, an evaluation forked from a warm process, and a
guided search's model of some hundred scores (docs/benchmarks.md)."""


def overheads(records: Sequence[Record], default: Overheads = ASSUMED) -> Overheads:
    """Those of a run or a calibration, from its ledger; what it does not tell is the default's.

    The start-up is the first session's: later runs of one command find the engine started. Times
    between generations are their mean, for a search's model takes longer the more it knows.
    """
    found = {
        "start-up": next(_startups(records), None),
        "gap": _gap(records),
        "between generations": _mean(list(_between_generations(records))),
    }
    usual = {
        "start-up": default.startup_seconds,
        "gap": default.gap_seconds,
        "between generations": default.generation_seconds,
    }
    seconds = [usual[name] if value is None else value for name, value in found.items()]
    unknown = [name for name, value in found.items() if value is None and name in default.assumed]
    return Overheads(seconds[0], seconds[1], seconds[2], tuple(unknown))


def _startups(records: Sequence[Record]) -> Iterator[float]:
    """Of each session that evaluated something: from its opening to its first reservation."""
    is_begun = False
    for record in records:
        if isinstance(record.event, Opened):
            is_begun = True
        elif isinstance(record.event, Reserved) and is_begun:
            is_begun = False
            yield record.elapsed_ms / 1000


def _gap(records: Sequence[Record]) -> float | None:
    """What an attempt's device waits before and after the attempt itself; medians."""
    around, after = list(_around(records)), list(_after(records))
    return max(0.0, median(around)) + _median(after) if around else None


def _around(records: Sequence[Record]) -> Iterator[float]:
    """From each reservation to its settlement, less the evaluation itself."""
    open_since: dict[tuple[object, ...], int] = {}
    for record in records:
        event = record.event
        if isinstance(event, Opened):
            open_since = {}  # another clock, and nobody waited for what was in flight
        elif isinstance(event, Reserved):
            open_since[event.attempt_key] = record.elapsed_ms
        elif isinstance(event, Settled):
            since = open_since.pop(event.attempt_key, None)
            if since is not None:
                yield (record.elapsed_ms - since) / 1000 - event.seconds


def _after(records: Sequence[Record]) -> Iterator[float]:
    """From each settlement to the reservation that follows it at once."""
    for record, following in pairwise(records):
        if isinstance(record.event, Settled) and isinstance(following.event, Reserved):
            yield (following.elapsed_ms - record.elapsed_ms) / 1000


def _between_generations(records: Sequence[Record]) -> Iterator[float]:
    settled: int | None = None
    is_told = False
    for record in records:
        if isinstance(record.event, Opened):
            settled, is_told = None, False
        elif isinstance(record.event, Settled) and not is_told:
            settled = record.elapsed_ms
        elif isinstance(record.event, GenerationTold):
            is_told = True
        elif isinstance(record.event, Reserved) and is_told:
            if settled is not None:
                yield (record.elapsed_ms - settled) / 1000
            is_told = False


def _median(values: list[float]) -> float:
    return median(values) if values else 0.0


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None


BLOCK = 4096

EVALUATION_BYTES = 6 * BLOCK
"""Assumed of an evaluation: its directory, and five files with something in them."""

LEDGER_BYTES = 930
"""Of an evaluation: its reservation (210) and its settlement (720)."""

GENERATION_BYTES = 490
"""Of a generation asked and told, beside its points."""

NUMBER_BYTES = 21
"""Of one coordinate as a ledger writes it, with its comma."""

RUN_BYTES = 5_500
"""Of a plan, a session and a conclusion."""

REPORT_BYTES = 3_300
"""Of the two reports of a generation."""

EVALUATION_ROW_BYTES = 740
"""Of `progress.csv` (160) and `metrics.jsonl` (580)."""


@dataclass(frozen=True)
class Room:
    """Bytes that a run takes, all its panels and the rung included."""

    evaluations: int  # their directories
    ledger: int
    reports: int  # and the other files beside the ledger
    measured: bool  # an evaluation's directory, by the calibration's; else assumed
    free: int | None  # where the runs live; None where nobody can tell

    @property
    def needed(self) -> int:
        """All of it, with what the ledger keeps free for itself."""
        return self.evaluations + self.ledger + self.reports + LEAST_FREE_BYTES

    @property
    def suffices(self) -> bool | None:
        return None if self.free is None else self.free >= self.needed


def room(plan: Plan, root: Path, evaluation_bytes: int | None) -> Room:
    """What the plan's run would take where the runs live. `root` need not be there yet."""
    shape = plan.resolved
    count = shape.evaluations + plan.comparison_evaluations
    dimension = 0 if plan.search is None else len(plan.search.start)
    asked = shape.population * dimension * NUMBER_BYTES
    files = shape.generations * REPORT_BYTES
    above = shape.generations * (1 + shape.population) * BLOCK  # gen_0000/cand_0000
    each = EVALUATION_BYTES if evaluation_bytes is None else evaluation_bytes
    return Room(
        evaluations=count * each + above,
        ledger=RUN_BYTES + count * LEDGER_BYTES + shape.generations * (GENERATION_BYTES + asked),
        reports=files + count * EVALUATION_ROW_BYTES,
        measured=evaluation_bytes is not None,
        free=free_bytes(root),
    )


def free_bytes(root: Path) -> int | None:
    """What is free where `root` is, or would be made."""
    there = root.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    with suppress(OSError):
        return shutil.disk_usage(there).free
    return None


def bytes_of_evaluations(run: Path) -> int | None:
    """What one evaluation's directory takes on disk, on average; None where there is none.

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


Origin = Literal["measured", "prior", "assumed", "none"]
"""Measured here on such devices; estimated from another measurement; a person's word; nothing."""

LOOKED_AT = 50
"""Runs of the same objective are looked for among so many, the latest first."""


@dataclass(frozen=True)
class Latest:
    """What the latest run of the same objective on such devices took."""

    run_id: str
    eval_seconds: float  # median of its search's healthy evaluations
    evaluations: int  # of those
    own_noise: float | None  # sd that two points on one seed do not share, in the score's unit
    overheads: Overheads


@dataclass(frozen=True)
class Times:
    """The times, noise and sizes to plan with. Without a calibration there is no number."""

    origin: Origin = "none"
    calibration: Calibration | None = None
    prior: Prior | None = None  # the earlier run that the calibration is scaled from
    overheads: Overheads = ASSUMED
    measured: Path | None = None  # the calibration's directory
    measured_at: datetime | None = None
    attempts: int = 0  # evaluations of the calibration and the latest run that ended
    timeouts: int = 0  # ... at their limit
    evaluation_bytes: int | None = None  # on disk, of one evaluation's directory
    latest: Latest | None = None
    notes: tuple[str, ...] = field(default=())  # what could not be read

    def is_to_measure(self, calibration: Calibration) -> bool:
        """Whether a run that is planned with this `calibration` would first measure its own."""
        is_scaled = not calibration.samples
        return is_scaled and self.origin != "assumed"

    @property
    def drift(self) -> float | None:
        """The latest run's evaluation by the calibrated one; None without one."""
        if self.latest is None or self.calibration is None:
            return None
        return self.latest.eval_seconds / self.calibration.median_seconds

    @property
    def own_noise(self) -> float | None:
        """Of one evaluation, relative to the baseline's score, what no seed adds to all alike.

        Measured where points met on the same seeds; else all of the calibration's. None unless
        that has two healthy seeds and a score that can be told from 0.
        """
        whole = None if self.calibration is None else noise(self.calibration)
        if whole is None or whole.sd is None or whole.is_about_zero:
            return None
        measured = None if self.latest is None else self.latest.own_noise
        return (whole.sd if measured is None else measured) / abs(whole.mean)

    def for_work(self, factor: float) -> Calibration | None:
        """The same of an evaluation with `factor` times the FLOPs: assumed, throughput x 0.7."""
        if self.calibration is None:
            return None
        seconds = self.calibration.median_seconds
        is_assumed = self.prior is None or not self.prior.is_assumed  # once is enough
        scaled = scaled_seconds(seconds, self._startup_seconds(), factor, is_assumed=is_assumed)
        return Calibration(assumed_seconds=scaled)

    def _startup_seconds(self) -> float:
        """Of an evaluation: what no FLOPs change. 0 where nobody measured it."""
        if self.prior is not None and self.prior.entry.evaluation is not None:
            return self.prior.entry.evaluation.startup_seconds
        samples = () if self.calibration is None else self.calibration.samples
        return median(s.startup_seconds for s in samples) if samples else 0.0


def known_time(
    root: Path, objective: Objective, devices: Devices, assumed_seconds: float | None = None
) -> Times:
    """The best there is of an evaluation alone: somebody's word, else a calibration, else the
    nearest earlier run.

    Raises as reading a damaged calibration does.
    """
    if assumed_seconds is not None:
        return Times("assumed", Calibration(assumed_seconds=assumed_seconds))
    if (found := find_calibration(root, objective, devices)) is not None:
        return Times("measured", measure(found.state), measured=found.directory)
    if (prior := nearest(read_history(root), objective, devices)) is not None:
        return Times("prior", prior.calibration(), prior=prior)
    return Times()


def times_here(
    root: Path, objective: Objective, devices: Devices, assumed_seconds: float | None = None
) -> Times:
    """The same, and what its calibration and the latest run say besides.

    Raises as `known_time`; other runs that cannot be read are noted.
    """
    known = known_time(root, objective, devices, assumed_seconds)
    latest, records, notes = _latest(root, objective, devices)
    known = replace(known, latest=latest, notes=notes)
    if known.measured is None:
        return known if latest is None else replace(known, overheads=latest.overheads)
    own = read(known.measured / LEDGER).records
    ends = [r.event for r in (*own, *records) if isinstance(r.event, Settled)]
    return replace(
        known,
        overheads=_together(overheads(own), latest),
        measured_at=datetime.fromisoformat(own[-1].at),
        attempts=len(ends),
        timeouts=sum(end.status is Status.TIMEOUT for end in ends),
        evaluation_bytes=bytes_of_evaluations(known.measured),
    )


def _together(own: Overheads, latest: Latest | None) -> Overheads:
    """The calibration's, with what a search adds: time between generations, a longer start-up.

    A run that was calibrated by the same command found its workers started: that is not shorter.
    """
    if latest is None:
        return own
    there = latest.overheads
    if "start-up" not in there.assumed:
        own = replace(own, startup_seconds=max(own.startup_seconds, there.startup_seconds))
    if "between generations" in there.assumed:
        return own
    return replace(
        own,
        generation_seconds=there.generation_seconds,
        assumed=tuple(name for name in own.assumed if name != "between generations"),
    )


def _latest(
    root: Path, objective: Objective, devices: Devices
) -> tuple[Latest | None, Sequence[Record], tuple[str, ...]]:
    """The latest search that has told of a generation, its records, and what could not be read."""
    notes: list[str] = []
    searches = [*ledgers(root, "phase1"), *ledgers(root, "phase2")]
    for path in sorted(searches, key=last_changed, reverse=True)[:LOOKED_AT]:
        try:
            if not _is_of(first_plan(path), objective, devices):
                continue
            records = read(path).records
            if (found := _measured(records)) is not None:
                return found, records, tuple(notes)
        except (LedgerCorruptError, ImpossibleEventError, ValueError, OSError) as error:
            notes.append(f"{path} was left out: {error}")
    return None, (), tuple(notes)


def _is_of(plan: Plan | None, objective: Objective, devices: Devices) -> bool:
    return (
        plan is not None
        and plan.objective_fingerprint == objective.fingerprint
        and (plan.devices.kind, plan.devices.name, plan.devices.count, plan.devices.threads)
        == (devices.kind, devices.name, devices.count, devices.threads)
    )


def _measured(records: Sequence[Record]) -> Latest | None:
    state = fold(iter(records))
    seconds = [
        end.seconds
        for generation in state.completed
        for end in generation.results()
        if end.status is Status.OK
    ]
    if not seconds:
        return None
    noise = luck.noise(state)
    whole = None if noise is None else noise * state.plan.resolved.seeds_per_candidate**0.5
    return Latest(state.plan.run_id, median(seconds), len(seconds), whole, overheads(records))


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
    if calibration is None:
        return [in_short(times)]
    notes = [f"Note: {plain(note)}." for note in times.notes]
    if times.origin != "measured":
        return [in_short(times), "", *(f"- {one}" for one in (_beside(times), *notes))]
    lines = [*calibration_lines(calibration), _beside(times), *notes]
    return ["**Measured here:**", "", *(f"- {one}" for one in lines)]


def _beside(times: Times) -> str:
    own = times.overheads

    def marked(name: str) -> str:
        return " (assumed)" if name in own.assumed else ""

    return (
        f"Beside the evaluations: {own.startup_seconds:.1f} s until the first one may begin"
        f"{marked('start-up')}, {own.gap_seconds:.2g} s of a device for each"
        f"{marked('gap')}, {own.generation_seconds:.2g} s between generations"
        f"{marked('between generations')}."
    )


def calibration_lines(calibration: Calibration) -> list[str]:
    """A measured calibration in words."""
    samples = calibration.samples
    lines = [_took(calibration)]
    if trained := _trained(samples):
        lines.append(trained)
    measured = noise(calibration)
    assert measured is not None
    return [*lines, _spread(measured), _failures(measured)]


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
    return "" if low == high else f"; {low} to {high} s, nine in ten within {_seconds(took.p90)} s"


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.3g}"


def _trained(samples: Sequence[Sample]) -> str:
    """What an evaluation does of steps, tokens and FLOPs, as far as its objective tells."""
    steps = round(median(s.steps for s in samples))
    if not steps:
        return ""
    rates = [s.tokens / s.train_seconds for s in samples if s.train_seconds]
    rate = median(rates) if rates else 0.0
    flops = median(s.train_flops for s in samples)
    evaluation = median(s.eval_flops for s in samples)
    memory = max(s.peak_memory_bytes for s in samples)
    scored = f" (and {evaluation:.3g} to score)" if evaluation else ""
    done = (
        counted(steps, "step"),
        f"{rate:,.0f} tokens a second" if rate else "",
        f"{flops:.3g} FLOPs{scored}" if flops else "",
    )
    return f"It trains {', '.join(filter(None, done))}, in {in_bytes(memory)} at most."


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
        f"95% interval {low:.2%} to {high:.2%}). So far the seed alone moves a score: two "
        "that differ by no more may be equally good."
    )


def _failures(of: Noise) -> str:
    failed, total = of.failed or "None", of.seeds + of.failed
    return (
        f"{failed} of {total} evaluations of the baseline failed ({of.failure_rate:.1%}; 95% "
        f"interval {of.failure_low:.1%} to {of.failure_high:.1%})."
    )
