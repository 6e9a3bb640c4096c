"""What has been measured here: calibrations, what they say of other lengths, checks of knobs."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from math import log
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple, get_args

from budgets.calibration import measure
from budgets.events import Status
from budgets.formatting import PROGRAM
from budgets.ledger import LEAST_FREE_BYTES, LedgerCorruptError
from budgets.liveness import Liveness, liveness
from budgets.pace import last_seen
from budgets.plan import Calibration, Devices, Plan
from budgets.state import ImpossibleEventError, RunState
from objectives.api import Objective
from objectives.registry import kind, short_name
from orchestrator.plan.resolve import calibration_name, family_of
from orchestrator.records.runs import Result, finished_runs, ledgers, recorded_state

CALIBRATION_SEEDS = 8

UNMEASURED = 0.7
"""Of a throughput that was measured elsewhere or otherwise: what is counted on."""

BUDGET = ("target_flops", "num_batches", "num_epochs")
"""Settings that say how long to train, and nothing of what. The first that is set decides."""


# Calibrations


def find_calibration(root: Path, objective: Objective, devices: Devices) -> Result | None:
    """Return the newest finished calibration of the objective on such devices, if there is one."""
    return newest_calibration(root, calibration_name(objective, devices))


def newest_calibration(root: Path, family: str) -> Result | None:
    """Return the finished calibration that was begun last of those whose names begin like this.

    By the ledger's own clock: a copied file is younger than what is in it.
    """
    finished = finished_runs(root, "calibration", family)
    return max(finished, key=lambda found: found.state.began_ms, default=None)


def calibration_here(root: Path, objective: Objective, devices: Devices) -> Calibration | None:
    """Return what was measured of an evaluation on such devices."""
    found = find_calibration(root, objective, devices)
    return None if found is None else measure(found.state)


# The time of an evaluation


@dataclass(frozen=True)
class Overheads:
    """Seconds that no evaluation takes."""

    startup_seconds: float = 10.0  # of a command, until its first evaluation may begin
    gap_seconds: float = 0.03  # of a device, for each evaluation: before it starts and after it
    generation_seconds: float = 0.1  # between two generations: a guided search's model
    are_measured: bool = False  # the first two; else as they were on Ray with two cores


Origin = Literal["measured", "prior", "assumed", "none"]
"""Calibrated here on such devices; from another calibration; stated by the user; nothing."""


@dataclass(frozen=True)
class Times:
    """The time of an evaluation to plan with, and what else its calibration measured.

    Without a calibration there is no number.
    """

    origin: Origin = "none"
    calibration: Calibration | None = None
    prior: "Prior | None" = None  # the earlier measurement that the calibration is scaled from
    overheads: Overheads = Overheads()
    measured_at: datetime | None = None
    attempts: int = 0  # evaluations of the calibration that ended
    timeouts: int = 0  # ... at their limit
    evaluation_bytes: int | None = None  # on disk, of one evaluation's directory

    def is_to_measure(self, calibration: Calibration) -> bool:
        """Whether a run that is planned with this `calibration` would first measure its own."""
        return self.origin == "prior" or (self.origin == "measured" and not calibration.samples)

    def for_work(self, factor: float) -> Calibration | None:
        """Return the time of an evaluation with `factor` times the FLOPs.

        Other FLOPs are assumed, at 0.7 of the throughput; equal FLOPs are the same price.
        """
        if self.calibration is None:
            return None
        is_assumed = factor != 1 and (self.prior is None or not self.prior.is_assumed)
        startup = _startup(self.calibration if self.prior is None else self.prior.calibration)
        seconds = self.calibration.median_seconds
        scaled = scaled_seconds(seconds, startup, factor, is_assumed=is_assumed)
        return Calibration(assumed_seconds=scaled)


def times_here(
    root: Path, objective: Objective, devices: Devices, assumed_seconds: float | None = None
) -> Times:
    """Return what the user states of an evaluation, else a calibration, else the nearest one.

    Raises as reading a damaged calibration does.
    """
    found = find_calibration(root, objective, devices)
    overheads = Overheads() if found is None else overheads_of(found.state)
    if assumed_seconds is not None:
        return Times("assumed", Calibration(assumed_seconds=assumed_seconds), overheads=overheads)
    if found is not None:
        ends = list(found.state.ends())
        return Times(
            "measured",
            measure(found.state),
            overheads=overheads,
            measured_at=last_seen(found.state),
            attempts=len(ends),
            timeouts=sum(end.status is Status.TIMEOUT for end in ends),
            evaluation_bytes=bytes_of_evaluations(found.directory),
        )
    if (prior := nearest(root, objective, devices)) is not None:
        return Times("prior", Calibration(assumed_seconds=prior.eval_seconds), prior)
    return Times()


def overheads_of(state: RunState) -> Overheads:
    """Return what a calibration measured beside its evaluations."""
    attempts = [one for batch in state.batches() for own in batch.attempts.values() for one in own]
    gaps = [
        (one.settled_at.ms - one.reserved_ms) / 1000 - one.settled.seconds
        for one in attempts
        if one.settled is not None and one.settled_at is not None
        if one.settled_at.session == one.session
    ]
    if not gaps or not state.starts_ms:
        return Overheads()
    startup = state.starts_ms[min(state.starts_ms)] / 1000
    return Overheads(startup, max(0.0, median(gaps)), are_measured=True)


Nearness = Literal["the same objective", "the same model", "the same kind of objective"]


@dataclass(frozen=True)
class Prior:
    """An earlier calibration, and what it says of an evaluation here."""

    run_id: str
    measured_at: datetime
    devices: Devices
    calibration: Calibration
    nearness: Nearness
    factor: float  # FLOPs of an evaluation here over one there, training and scoring
    is_assumed: bool  # other FLOPs, or another number of devices

    @property
    def eval_seconds(self) -> float:
        """Start-up as it was, the rest by the FLOPs; 0.7 of an assumed throughput counts."""
        seconds, startup = self.calibration.median_seconds, _startup(self.calibration)
        return scaled_seconds(seconds, startup, self.factor, is_assumed=self.is_assumed)

    def sentence(self) -> str:
        """The calibration by name, with its figures, the factor and what comes of it."""
        there, work = self.calibration, _flops(self.calibration)
        scaled = "" if self.factor == 1 else f", {self.factor:.3g} x its FLOPs"
        how = "assumed, throughput x 0.7" if self.is_assumed else "measured"
        return (
            f"times from calibration {self.run_id} of {self.measured_at:%Y-%m-%d} on "
            f"{self.devices.count} x {self.devices.name} ({self.nearness}; median "
            f"{there.median_seconds:.3g} s of {len(there.samples)}"
            f"{f', {work:.3g} FLOPs' if work else ''}){scaled}: {self.eval_seconds:.3g} s an "
            f"evaluation, {how}"
        )


def scaled_seconds(seconds: float, startup: float, factor: float, *, is_assumed: bool) -> float:
    """startup + (seconds - startup) * factor, the latter over 0.7 where it is not measured."""
    work = max(0.0, seconds - startup) * factor
    return startup + (work / UNMEASURED if is_assumed else work)


def _startup(calibration: Calibration) -> float:
    return median(s.startup_seconds for s in calibration.samples) if calibration.samples else 0.0


def _flops(calibration: Calibration) -> float:
    return median(s.train_flops + s.eval_flops for s in calibration.samples)


def nearest(root: Path, objective: Objective, devices: Devices) -> Prior | None:
    """Return the calibration that says most of an evaluation of `objective` here, if any does.

    The same objective before the same model trained for longer or shorter, that before any other
    of its name; then as many devices; the nearest in FLOPs before the newest. Never one on another
    kind of device.
    """
    found = (_prior(state, objective, devices) for state in _earlier(root, objective))
    return min(
        (prior for prior in found if prior is not None),
        key=lambda prior: (
            get_args(Nearness).index(prior.nearness),
            prior.devices.count != devices.count,
            abs(log(prior.factor)),
            -prior.measured_at.timestamp(),
        ),
        default=None,
    )


def _earlier(root: Path, objective: Objective) -> Iterator[RunState]:
    """Finished calibrations of what has the objective's name; a damaged one says nothing."""
    for path in ledgers(root, "calibration", f"{short_name(objective.spec)}-*"):
        with suppress(LedgerCorruptError, ImpossibleEventError, ValueError, OSError):
            state = recorded_state(path.parent)
            if state is not None and state.concluded is not None:
                yield state


def _prior(state: RunState, objective: Objective, devices: Devices) -> Prior | None:
    """None where it says nothing: another objective, or one whose FLOPs nobody counts.

    Equal FLOPs are the same price, whatever setting differs.
    """
    plan, there = state.plan, state.plan.devices
    own = plan.objective
    facts = [(one.kind, one.name, one.threads) for one in (there, devices)]
    if facts[0] != facts[1] or kind(own) != kind(objective.spec):
        return None
    try:
        calibration = measure(state)
    except ValueError:  # no evaluation was healthy
        return None
    nearness: Nearness = "the same objective"
    factor = 1.0
    if plan.objective_fingerprint != objective.fingerprint:
        here, work = objective.flops(), _flops(calibration)
        if here is None or not here.total or not work:
            return None
        factor = here.total / work
        models = [
            {name: value for name, value in spec.settings.items() if name not in BUDGET}
            for spec in (own, objective.spec)
        ]
        is_model = models[0] == models[1]
        nearness = "the same model" if is_model else "the same kind of objective"
    # on fewer seeds than devices they were not all busy
    is_like = factor == 1 and there.count == devices.count <= len(calibration.samples)
    seen = last_seen(state)
    return Prior(plan.run_id, seen, there, calibration, nearness, factor, is_assumed=not is_like)


# Disk

BLOCK = 4096
EVALUATION_BYTES = 6 * BLOCK  # assumed: its directory, and five files with something in them
ROW_BYTES = 1_700  # of an evaluation, in ledger and tables
GENERATION_BYTES = 10_000  # in the ledger, its reports, its directory
RUN_BYTES = 5_500  # a plan, a session and a conclusion


class Disk(NamedTuple):
    """Bytes that a run takes, its comparisons and what a ledger keeps free included."""

    needed: int
    measured: bool  # an evaluation's directory, by the calibration's; else assumed
    free: int | None  # where the runs live; None where nobody can tell

    @property
    def suffices(self) -> bool | None:
        return None if self.free is None else self.free >= self.needed


def disk_of(plan: Plan, root: Path, evaluation_bytes: int | None) -> Disk:
    """Return what the plan's run would take where the runs live. `root` need not be there yet."""
    shape, each = plan.resolved, ROW_BYTES + (evaluation_bytes or EVALUATION_BYTES)
    generation = GENERATION_BYTES + shape.population * BLOCK  # a directory for each candidate
    count = shape.evaluations + plan.comparison_evaluations
    needed = RUN_BYTES + count * each + shape.generations * generation + LEAST_FREE_BYTES
    return Disk(needed, evaluation_bytes is not None, free_bytes(root))


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
    places = list(run.glob("eval/*/*/seed_*"))
    files = (path for place in places for path in (place, *place.rglob("*")))
    taken = sum(path.lstat().st_blocks * 512 for path in files)
    return taken // len(places) or None if places else None


# Checks of knobs


class Known(NamedTuple):
    """What finished checks have shown about an objective's knobs, by name."""

    alive: tuple[str, ...]
    dead: tuple[str, ...]  # in one check, and alive in none
    neither: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Sentences for a person who is about to search."""
        if self.dead:
            yield (
                f"Warning: {', '.join(self.dead)} did not move the score when checked: a search "
                "wastes budget there."
            )
        if self.neither:
            some = self.alive or self.dead
            which = f"{', '.join(self.neither)} have not" if some else "no knob has"
            yield (
                f"Note: {which} been shown to move the score yet; `{PROGRAM} check knobs` with "
                "the same options finds out."
            )


def known_knobs(root: Path, objective: Objective, kind: str) -> Known:
    """Return what all finished checks of the objective on that kind of device show together."""
    runs = finished_runs(root, "check", family_of(objective, kind))
    found = [f for run in runs if (f := liveness(run.state)) is not None]
    return together([knob.name for knob in objective.space.knobs], found)


def together(names: Sequence[str], found: Sequence[Liveness]) -> Known:
    """Return what several checks show about the knobs of these names."""
    alive = {name for one in found for name in one.names("alive")}
    dead = {name for one in found for name in one.names("dead")} - alive
    parts = (alive, dead, set(names) - alive - dead)
    return Known(*(tuple(name for name in names if name in part) for part in parts))
