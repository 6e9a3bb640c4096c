"""What was measured here: calibrations, times scaled from them, and checks of knobs."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import log
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

from budgets.checks import liveness, measure
from budgets.events import Status
from budgets.plan import Calibration, Devices
from budgets.schedule import last_seen
from budgets.state import RunState
from objectives.api import Objective, SetupError
from objectives.registry import kind, short_name
from orchestrator.plan.resolve import calibration_name, family_of
from orchestrator.records.runs import Result, finished_runs

CALIBRATION_SEEDS = 8

UNMEASURED = 0.7
"""Share of the throughput that is expected of other FLOPs or another number of devices."""

BUDGET = ("target_flops", "num_batches", "num_epochs")
"""Settings of how long to train. The first that is set decides."""


# Calibrations


def find_calibration(root: Path, objective: Objective, devices: Devices) -> Result | None:
    """Return the newest finished calibration of the objective on such devices."""
    return newest_calibration(root, calibration_name(objective, devices))


def newest_calibration(root: Path, family: str) -> Result | None:
    """Return the newest finished calibration whose name begins with `family`, by its ledger."""
    finished = finished_runs(root, "calibration", family)
    return max(finished, key=lambda found: found.state.began_ms, default=None)


# The time of an evaluation

Origin = Literal["measured", "prior", "assumed", "none"]
"""Calibrated here on such devices; scaled from another calibration; stated by the user; unknown."""


@dataclass(frozen=True)
class Times:
    """The time of an evaluation to plan with, and where it is from."""

    origin: Origin = "none"
    calibration: Calibration | None = None
    prior: str | None = None  # the calibration that it was scaled from, in words
    attempts: int = 0  # finished evaluations of a calibration made here
    timeouts: int = 0  # those of them that were killed at their limit
    basis: tuple[Calibration, float] | None = None  # of a prior: its calibration; FLOPs over its

    def is_to_measure(self, calibration: Calibration) -> bool:
        """Whether a run planned with this `calibration` would first measure its own."""
        return self.origin == "prior" or (self.origin == "measured" and not calibration.samples)


def scaled(calibration: Calibration, factor: float) -> Calibration:
    """Return the time with `factor` times the FLOPs: start-up is fixed, the rest is scaled."""
    startups = [sample.startup_seconds for sample in calibration.samples]
    startup = median(startups) if startups else 0.0
    working = max(0.0, calibration.median_seconds - startup)
    return Calibration(assumed_seconds=startup + working * factor / UNMEASURED)


def relative_flops(objective: Objective, other: Objective) -> float | None:
    """Return the FLOPs of an evaluation over those of the other's; None if they are not known."""
    try:
        own, base = objective.flops(), other.flops()
    except SetupError:  # they depend on data that is not there
        return None
    return (own and base and base.total and own.total / base.total) or None


def times_here(
    root: Path, objective: Objective, devices: Devices, assumed_seconds: float | None = None
) -> Times:
    """Return the user's figure, else a calibration on such devices, else one scaled from elsewhere.

    Raises as reading a damaged calibration does.
    """
    if assumed_seconds is not None:
        return Times("assumed", Calibration(assumed_seconds=assumed_seconds))
    if (found := find_calibration(root, objective, devices)) is not None:
        ends = list(found.state.ends())
        timeouts = sum(end.status is Status.TIMEOUT for end in ends)
        return Times("measured", measure(found.state), attempts=len(ends), timeouts=timeouts)
    priors = (
        prior
        for run in finished_runs(root, "calibration", short_name(objective.spec))
        for prior in _priors(run.state, objective, devices)
    )
    _, nearest = min(priors, key=itemgetter(0), default=((), Times()))
    return nearest


def _priors(
    state: RunState, objective: Objective, devices: Devices
) -> Iterator[tuple[tuple[float, ...], Times]]:
    """Yield how far that calibration is from what is asked, and times scaled from it, if possible.

    The same objective is nearest, then as many devices, then the nearest FLOPs, then the newest.
    """
    plan, there, seen = state.plan, state.plan.devices, last_seen(state)
    facts = [(one.kind, one.name, one.threads) for one in (there, devices)]
    if facts[0] != facts[1] or kind(plan.objective) != kind(objective.spec):
        return
    with suppress(ValueError):  # none of its evaluations was healthy
        source, factor = measure(state), 1.0
        is_other = plan.objective_fingerprint != objective.fingerprint
        if is_other:
            work = median(one.train_flops + one.eval_flops for one in source.samples)
            here = objective.flops()
            if here is None or not here.total or not work:
                return
            factor = here.total / work
        # on fewer seeds than devices they were not all busy
        is_like = factor == 1 and there.count == devices.count <= len(source.samples)
        time = scaled(source, factor)
        if is_like:
            time = Calibration(assumed_seconds=source.median_seconds)
        how = "measured" if is_like else "assumed, throughput x 0.7"
        said = (
            f"times from calibration {plan.run_id} of {seen:%Y-%m-%d} on {there.count} x "
            f"{there.name} (median {source.median_seconds:.3g} s), {factor:.3g} x its FLOPs: "
            f"{time.median_seconds:.3g} s an evaluation, {how}"
        )
        distance = (is_other, there.count != devices.count, abs(log(factor)), -seen.timestamp())
        yield distance, Times("prior", time, said, basis=(source, factor))


# Checks of knobs


class Known(NamedTuple):
    """What finished checks have shown about an objective's knobs, by name."""

    alive: tuple[str, ...]
    dead: tuple[str, ...]  # in one check, and alive in none
    neither: tuple[str, ...]


def known_knobs(root: Path, objective: Objective, kind: str) -> Known:
    """Return what all finished checks of the objective on that kind of device have shown."""
    runs = finished_runs(root, "check", family_of(objective, kind))
    found = [own for run in runs if (own := liveness(run.state)) is not None]
    alive = {name for one in found for name in one.names("alive")}
    dead = {name for one in found for name in one.names("dead")} - alive
    names = [knob.name for knob in objective.space.knobs]
    parts = (alive, dead, set(names) - alive - dead)
    return Known(*(tuple(name for name in names if name in part) for part in parts))
