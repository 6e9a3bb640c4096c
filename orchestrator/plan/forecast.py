"""How long an evaluation takes here, and the one forecast: how long a plan takes, and how much a
cap must leave free for it.

`plan`, `plan --fit`, campaigns and the SLURM export read it. It simulates the run evaluation by
evaluation, with the barrier after each generation. Each simulated run draws log-normal times fitted
to a resample of the calibration, so that few samples give wide forecasts (B. Efron, "Bootstrap
methods: another look at the jackknife", Annals of Statistics 7 (1979) 1-26).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heapreplace
from math import log, sqrt
from operator import itemgetter
from pathlib import Path
from random import Random
from statistics import fmean, median, stdev

from budgets.accounts import MS_PER_HOUR
from budgets.events import Status
from budgets.measurements import liveness, measure, noise
from budgets.plan import Calibration, Devices, Plan
from budgets.schedule import expected
from budgets.state import RunState
from budgets.stats import detectable
from objectives.api import Objective, SetupError
from objectives.registry import kind, short_name
from orchestrator.plan.resolve import calibration_name, family_of
from orchestrator.records.runs import Result, finished_runs

CALIBRATION_SEEDS = 8

UNMEASURED = 0.7
"""Share of the throughput that is expected of other FLOPs or another number of devices."""

# Calibrations, and the time of an evaluation


def find_calibration(root: Path, objective: Objective, devices: Devices) -> Result | None:
    """Return the newest finished calibration of the objective on such devices."""
    return newest_calibration(root, calibration_name(objective, devices))


def newest_calibration(root: Path, family: str) -> Result | None:
    """Return the newest finished calibration whose name begins with `family`, by its ledger."""
    finished = finished_runs(root, "calibration", family)
    return max(finished, key=lambda found: found.state.accounts.began_ms, default=None)


@dataclass(frozen=True)
class Times:
    """The time of an evaluation to plan with, and where it is from.

    One without samples and without a prior is stated by the user.
    """

    calibration: Calibration | None = None  # None: unknown
    prior: str | None = None  # the calibration elsewhere that it was scaled from, in words
    timeouts: float = 0.0  # share of the measured evaluations that were killed at their limit

    @property
    def calibrates(self) -> bool:
        """Whether a run that is planned with it would first measure its own."""
        return self.prior is not None


def scaled(calibration: Calibration, factor: float, share: float = UNMEASURED) -> Calibration:
    """Return the time with `factor` times the FLOPs at a `share` of the throughput.

    The start-up is fixed; of a time that was not measured it is not known.
    """
    startup = median([s.startup_seconds for s in calibration.samples] or [0.0])
    working = max(0.0, calibration.median_seconds - startup)
    return Calibration(assumed_seconds=startup + working * factor / share)


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
        return Times(Calibration(assumed_seconds=assumed_seconds))
    if (found := find_calibration(root, objective, devices)) is not None:
        killed = fmean(end.status is Status.TIMEOUT for end in found.state.ends())
        return Times(measure(found.state), timeouts=killed)
    runs = finished_runs(root, "calibration", short_name(objective.spec))
    priors = filter(None, (_prior(run.state, objective, devices) for run in runs))
    return min(priors, key=itemgetter(0), default=((), Times()))[1]


def _prior(
    state: RunState, objective: Objective, devices: Devices
) -> tuple[tuple[float, ...], Times] | None:
    """Return how different that calibration is, and times scaled from it where that is possible.

    The same objective is nearest, then as many devices, then the nearest FLOPs, then the newest.
    """
    plan, there, seen = state.plan, state.plan.devices, state.seen
    facts = [(one.kind, one.name, one.threads) for one in (there, devices)]
    if facts[0] != facts[1] or kind(plan.objective) != kind(objective.spec):
        return None
    try:
        source = measure(state)
    except ValueError:  # none of its evaluations was healthy
        return None
    factor, is_other_count = 1.0, there.count != devices.count
    if is_other := plan.objective_fingerprint != objective.fingerprint:
        flops = objective.flops()
        work = median(sample.train_flops + sample.eval_flops for sample in source.samples)
        if flops is None or not work:
            return None
        factor = flops.total / work
    # on fewer seeds than devices they were not all busy
    is_like = factor == 1 and not is_other_count and there.count <= len(source.samples)
    time = scaled(source, factor, 1.0 if is_like else UNMEASURED)
    said = (
        f"times from calibration {plan.run_id} of {seen:%Y-%m-%d} on {there.count} x {there.name} "
        f"(median {source.median_seconds:.3g} s), {factor:.3g} x its FLOPs: "
        f"{time.median_seconds:.3g} s an evaluation, "
        f"{'measured' if is_like else f'assumed, throughput x {UNMEASURED}'}"
    )
    return (is_other, is_other_count, abs(log(factor)), -seen.timestamp()), Times(time, said)


def known_knobs(root: Path, objective: Objective, kind: str) -> dict[str, str]:
    """Return what finished checks of the objective on that kind of device have shown of its knobs.

    By name: `alive`; `dead` in a check, and alive in none; or `unknown`.
    """
    runs = finished_runs(root, "check", family_of(objective, kind))
    found = [own for run in runs if (own := liveness(run.state)) is not None]
    shown = {name: how for how in ("dead", "alive") for one in found for name in one.names(how)}
    return {knob.name: shown.get(knob.name, "unknown") for knob in objective.space.knobs}


# The forecast

SEED = 20_247
"""Fixed, so that equal plans have equal figures."""

LEAST_RUNS, MOST_RUNS, MOST_EVALUATIONS = 50, 400, 20_000
"""Number of simulated runs: fewer if each has more evaluations."""

STARTUP_SECONDS = 10.0
"""Assumed: from the command to the first evaluation, as seen with Ray on two cores."""

GAP_SECONDS = 0.03
"""Assumed: of a device, before and after each evaluation."""


@dataclass(frozen=True)
class Forecast:
    """Wall-clock hours from the command's start, and device-hours.

    They include a calibration that comes first and the verdict, not the long run after a Go.
    """

    hours_p50: float
    hours_p90: float
    device_hours_p50: float
    long_run_hours_p50: float  # in addition, after a Go
    hours_free: float  # what a window or a cap on hours must leave free
    device_hours_free: float  # what a cap on device-hours must leave free


def forecast_of(plan: Plan, *, calibrates: bool = False) -> Forecast | None:
    """Return the forecast; None where no time of an evaluation is known.

    `calibrates`: the run first measures its own time.
    """
    calibration, devices, work = plan.calibration, plan.devices.count, work_of(plan)
    if calibration is None:
        return None
    over, longer, busy = zip(*_simulated(plan, work, calibration), strict=True)
    typical, limits = calibration.median_seconds / 3600, plan.limits
    one = (CALIBRATION_SEEDS, CALIBRATION_SEEDS)
    first, calibrating = expected([one] * calibrates, calibration, devices)
    # The last attempt of the search, and of the verdict, must find its whole reservation free.
    longest, long_run = max(work["generation"]), sum(work.pop("long_run", ())) * typical
    last = max(0.0, limits.stretched(longest).reserve_ms / MS_PER_HOUR - typical * longest)
    last += 0.0 if plan.confirmation is None else limits.reserve_ms / MS_PER_HOUR
    batches = [work.pop("generation")] * plan.resolved.generations + [*work.values()]
    works = [(len(lengths), sum(lengths)) for lengths in batches]
    by_the_rules = STARTUP_SECONDS / 3600 + expected(works, calibration, devices)[1]
    p90 = _hours(over, 9)
    return Forecast(
        hours_p50=calibrating + _hours(over, 5),
        hours_p90=calibrating + p90,
        device_hours_p50=first + _hours(busy, 5),
        long_run_hours_p50=_hours(longer, 5),
        hours_free=calibrating + max(p90, by_the_rules) + _hours(longer, 9) + last,
        device_hours_free=first + _hours(busy, 9) + long_run + last,
    )


def _hours(seconds: Sequence[float], tenth: int) -> float:
    """Return a quantile, in tenths, as hours."""
    return sorted(seconds)[(len(seconds) - 1) * tenth // 10] / 3600


def work_of(plan: Plan) -> dict[str, tuple[float, ...]]:
    """Return the costs of the evaluations of each generation and comparison.

    They are relative to an evaluation of the search.
    """
    work: dict[str, tuple[float, ...]] = {"generation": (1.0,) * plan.resolved.per_generation}
    if plan.campaign is not None:  # all conditions on a seed, then the next seed
        lengths = tuple(condition.cost_factor for condition in plan.campaign.conditions)
        work["generation"] = lengths * plan.resolved.seeds_per_candidate
    sizes = plan.comparisons.items()
    return {**work, **{name: (cost / n,) * n for name, (n, cost) in sizes if n}}


Simulated = tuple[float, float, float]
"""Seconds: from the command's start until the verdict, of the long run, and of all devices
together without the long run."""


def _simulated(
    plan: Plan, work: Mapping[str, tuple[float, ...]], calibration: Calibration
) -> Iterator[Simulated]:
    """Yield each simulated run: one where the calibration has no spread."""
    measured = [log(sample.seconds) for sample in calibration.samples]
    if len(measured) < 2:
        yield _one_run(plan, work, lambda: calibration.median_seconds)
        return
    count = plan.resolved.generations * len(work["generation"]) + sum(map(len, work.values()))
    random = Random(SEED)  # noqa: S311 - no secret
    for _ in range(min(MOST_RUNS, max(LEAST_RUNS, MOST_EVALUATIONS // count))):
        logs = random.choices(measured, k=len(measured))
        yield _one_run(plan, work, partial(random.lognormvariate, fmean(logs), stdev(logs)))


def _one_run(
    plan: Plan, work: Mapping[str, tuple[float, ...]], draw: Callable[[], float]
) -> Simulated:
    """Return one run, each of whose evaluations takes `draw()` seconds times its cost.

    The device that becomes free first takes the next one, and the reference fills the devices that
    generations leave idle.
    """
    stagger = 0.0 if plan.campaign is None else plan.campaign.stagger_seconds
    now, taken = STARTUP_SECONDS, list[float]()
    free = [now + place * stagger for place in range(plan.devices.count)]  # a heap

    def end_of(costs: Iterable[float], now: float) -> float:
        ends = [now]
        for cost in costs:
            taken.append(cost * draw())
            ends.append(max(free[0], now) + taken[-1] + GAP_SECONDS)
            heapreplace(free, ends[-1])
        return max(ends)

    waiting, filled = deque(work.get("reference", ())), now
    for _ in range(plan.resolved.generations):
        end = end_of(work["generation"], now)
        while waiting and max(free[0], now) < end:
            filled = max(filled, end_of([waiting.popleft()], now))
        now = end
    now = max(filled, end_of(waiting, now))
    for name in ("finalists", "winner"):
        now = end_of(work.get(name, ()), now)
    busy = sum(taken)
    return now, end_of(work.get("long_run", ()), now) - now, busy


def detectable_gain(plan: Plan) -> float | None:
    """Return the true gain, relative to the baseline, that the verdict shows with 80 % power.

    It assumes that scores on the same seed are independent, the worst case. None without a
    comparison or without a known noise.
    """
    confirmation, measured = plan.confirmation, noise(plan.calibration)
    if confirmation is None or measured is None or measured.sd is None or measured.is_about_zero:
        return None
    paired = sqrt(2) * measured.sd / abs(measured.mean)
    return detectable(paired, confirmation.seeds, plan.thresholds.go_level) if paired else 0.0
