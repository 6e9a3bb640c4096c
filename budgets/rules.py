"""Rules that pause or stop a run, and what follows from them.

Each rule is a pure function of the state that returns a `Reading`, whether it fires or not: numbers
and names alone, which `orchestrator.look.text` puts in words. Limits are in `plan.Thresholds`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from statistics import fmean, median
from typing import Literal

from budgets.accounts import Accounts, Refusal
from budgets.events import Facts, Fired, Settled, Status
from budgets.ledger import LEAST_FREE_BYTES
from budgets.plan import Source
from budgets.schedule import (
    blocking_batches,
    expected,
    left_for_the_verdict,
    next_action,
    open_batches,
    search_is_over,
)
from budgets.state import Batch, Evaluation, RunState

OVERRIDABLE = ("go", "unproven_knobs", "crash_rate", "sustained_nan", "runaway_time", "patience")
"""Rules that a person may override. The others name something to repair, or a cap to amend."""

DECISIONS: dict[str, Literal["pause", "stop"]] = {
    **dict.fromkeys((*OVERRIDABLE, "baseline_failed", "setup_failed"), "pause"),
    **dict.fromkeys(("infrastructure", "storage"), "pause"),
    **dict.fromkeys(("patience", "budget"), "stop"),
}
"""What each rule leads to, as the ledger and `--override` know it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a rule observes, against its limit."""

    rule: str
    generation: int
    observed: float | None = None  # None: nothing to observe yet
    limit: float | None = None  # None: the rule is off
    fires: bool = False
    facts: Facts = field(default_factory=dict)  # further numbers and names

    @property
    def decision(self) -> Literal["pause", "stop"]:
        """What follows when it fires."""
        return DECISIONS[self.rule]

    def fired(self) -> Fired:
        """The event that records a firing."""
        assert self.observed is not None, "a rule fires on an observation"
        assert self.limit is not None, "... beyond a limit"
        return Fired(
            rule=self.rule,
            generation=self.generation,
            decision=self.decision,
            observed=self.observed,
            limit=self.limit,
            facts=self.facts,
        )


def place_of(state: RunState, batch: Batch) -> int:
    """The generation that a rule about the batch names: its own, or the next of a comparison."""
    return batch.number if batch.comparison is None else state.begun


# A phase 2 and the run that it follows


def follows_a_go(source: Source) -> Iterator[Reading]:
    """Whether `source` ended with a Go, and whether the knobs that are added move the score."""
    is_go = source.grade in ("go", "go_persists")
    yield Reading("go", 0, float(is_go), 1.0, fires=not is_go)
    if source.added:
        yield Reading("unproven_knobs", 0, len(source.unproven), 0, fires=bool(source.unproven))


# Failures and losses


def crash_rate(state: RunState, generation: Batch) -> Reading:
    """Failed evaluations, of all that are planned for the generation.

    So it fires as soon as the rate can no longer stay below its limit. Lost attempts do not count,
    nor do NaNs of extreme candidates or those for which `sustained_nan` fires.
    """
    limits, failed = state.plan.thresholds, generation.failed
    nans = [] if sustained_nan(state, generation).fires else unexplained(state, generation)
    failed = [one for one in failed if one.status is not Status.NAN or one in nans]
    count, rate, limit = len(failed), len(failed) / generation.planned, limits.crash_rate_pause
    fires = rate > limit and count >= limits.crash_count_pause
    return Reading("crash_rate", generation.number, rate, limit, fires, {"failed": count})


def sustained_nan(state: RunState, generation: Batch) -> Reading:
    """NaNs of candidates that are not extreme: many in the generation, or some in several running.

    Generations up to one that was overridden are not counted again.
    """
    limits, count = state.plan.thresholds, len(unexplained(state, generation))
    overridden = (o.generation for o in state.overridden if o.rule == "sustained_nan")
    first = max((n + 1 for n in overridden if n < generation.number), default=0)
    numbers = range(generation.number, first - 1, -1)
    streak = takewhile(lambda n: unexplained(state, state.generations[n]), numbers)
    running, observed = sum(1 for _ in streak), count / generation.planned
    limit, facts = limits.nan_rate_pause, Facts(nans=count, running=running)
    fires = observed > limit and count >= limits.nan_count_pause
    if not fires and running >= limits.nan_generations_pause:
        observed, limit, fires = running, limits.nan_generations_pause, True
    return Reading("sustained_nan", generation.number, observed, limit, fires, facts)


def unexplained(state: RunState, generation: Batch) -> list[Settled]:
    """NaN results of candidates that are not extreme.

    A candidate is extreme at an end of a knob's range, unless the search's start is there too. The
    search learns by itself to avoid NaNs there; elsewhere they may be a defect.
    """
    edge, search = state.plan.thresholds.edge, state.plan.search

    def ends(point: tuple[float, ...]) -> list[int]:
        return [(unit >= 1 - edge) - (unit <= edge) for unit in point]

    start = ends(generation.points[0] if search is None else search.start)
    extreme = [
        any(own not in (0, at_start) for own, at_start in zip(ends(point), start, strict=True))
        for point in generation.points
    ]
    nans = (one for one in generation.failed if one.status is Status.NAN)
    return [one for one in nans if not extreme[one.candidate]]


def baseline_failed(generation: Batch) -> Reading:
    """A check's baseline, candidate 0, failed, so nothing can be compared with it.

    No override: the evaluation is paid for and would fail again.
    """
    count = sum(one.candidate == 0 for one in generation.failed)
    return Reading("baseline_failed", generation.number, count, 0, fires=count > 0)


def setup_failed(state: RunState) -> Reading:
    """An evaluation found that nothing can be evaluated; a new session makes another attempt."""
    end = state.setup_failed
    if end is None:
        return Reading("setup_failed", state.begun, 0, 0)
    batch = state.batch(end)
    facts = _evaluation(batch, (end.candidate, end.seed))
    return Reading("setup_failed", place_of(state, batch), 1, 0, fires=True, facts=facts)


def infrastructure(state: RunState, batch: Batch) -> Reading:
    """This session lost one evaluation too often; a new session makes another attempt."""
    limit, number = state.plan.thresholds.attempts_per_session, place_of(state, batch)
    most, key = max(((count, key) for key, count in batch.losses.items()), default=(0, (0, 0)))
    facts = _evaluation(batch, key)
    return Reading("infrastructure", number, most, limit, fires=most >= limit, facts=facts)


def _evaluation(batch: Batch, key: Evaluation) -> Facts:
    """Names an evaluation of the reading's generation, or of a comparison."""
    return {"comparison": batch.comparison or "", "candidate": key[0], "seed": key[1]}


def disk_full(generation: int, free_bytes: int) -> Reading:
    """The pause for a disk without space for further results."""
    return Reading("storage", generation, free_bytes, LEAST_FREE_BYTES, fires=True)


# Time and progress


def runaway_time(state: RunState, generation: Batch) -> Reading:
    """The generation's median evaluation takes more than twice the calibrated time.

    Judged by CPU seconds on CPUs, where wall clock depends on what else runs.
    """
    calibration, limits = state.plan.calibration, state.plan.thresholds
    number, limit, calibrated, on_cpu = generation.number, limits.time_drift_pause, 0.0, False
    if calibration is not None and generation.closed:
        cpu_seconds = calibration.median_cpu_seconds
        on_cpu = state.plan.devices.kind == "cpu" and cpu_seconds is not None
        calibrated = (cpu_seconds if on_cpu else calibration.median_seconds) or 0.0
    healthy = [one for one in generation.results() if one.status is Status.OK]
    if not calibrated or calibrated < limits.time_drift_floor_seconds or not healthy:
        return Reading("runaway_time", number, None, limit)
    taken = median(one.cpu_seconds if on_cpu else one.seconds for one in healthy)
    drift, facts = taken / calibrated, Facts(seconds=taken, of="CPU" if on_cpu else "wall")
    return Reading("runaway_time", number, drift, limit, drift > limit, facts)


def patience(state: RunState) -> Reading:
    """The search hardly improved over the last N = `patience_generations` generations.

    Compares medians, over generations, of the healthy candidates' mean score: of the last N told,
    and of the N before them, or as many as there are. A generation's seeds move its mean, and a
    median ignores one outlier. Scores are divided by the baseline's, or without a
    calibration by the first mean.

    It fires between generations, never after the last. After an override it waits for N more.
    """
    limits, number = state.plan.thresholds, max(len(state.completed) - 1, 0)
    count, limit = limits.patience_generations, limits.patience_improve
    measured = [g for g in state.completed if g.healthy]
    if count is None or len(measured) <= count:
        return Reading("patience", number, None, None if count is None else limit)
    means = [fmean(generation.healthy) for generation in measured]
    calibration = state.plan.calibration
    baseline = None if calibration is None else calibration.mean_score
    before, after = median(means[-2 * count : -count]), median(means[-count:])
    size = abs(means[0] if baseline is None else baseline) or 1.0
    gain = state.plan.sign * (before - after) / size
    goes_on = state.current is None and state.finished < state.plan.resolved.generations
    overridden = [o.generation for o in state.overridden if o.rule == "patience"]
    # an override of the latest generation itself is for `_firing` to see
    waits = any(measured[-count].number <= n < len(state.completed) - 1 for n in overridden)
    fires = gain <= limit and goes_on and not waits
    return Reading("patience", number, gain, limit, fires, {"generations": count})


# What the readings mean for the run

Decision = Literal["continue", "pause", "stop", "done"]


@dataclass(frozen=True, slots=True)
class Ruling:
    """What happens next, and why."""

    decision: Decision
    triggers: tuple[Reading, ...] = ()


def judge(state: RunState) -> Ruling:
    """What the recorded facts allow next. The same ledger always gets the same ruling."""
    firing = _firing(state)
    for decision in ("pause", "stop"):
        if fired := tuple(one for one in firing if one.decision == decision):
            return Ruling(decision, fired)
    is_over = state.concluded is not None or next_action(state) == "over"
    return Ruling("done" if is_over else "continue")


def ruling_of(state: RunState) -> Ruling:
    """How the run stands; a stop that only ends its search lets it continue."""
    ruling = judge(state)
    return Ruling("continue") if only_ends_the_search(state, ruling) else ruling


def only_ends_the_search(state: RunState, ruling: Ruling) -> bool:
    """Whether the run continues after this stop, to compare what the search found."""
    is_compared = state.plan.confirmation is not None and bool(state.completed)
    return ruling.decision == "stop" and is_compared and not search_is_over(state)


def held_up_by(state: RunState, rule: str) -> tuple[Reading, ...]:
    """The firing readings of that rule which hold the run up."""
    return tuple(reading for reading in _firing(state) if reading.rule == rule)


def _firing(state: RunState) -> list[Reading]:
    """Readings that fire and that are not overridden."""
    if state.decided is not None or state.concluded is not None:
        return []
    overridden = {(o.rule, o.generation) for o in state.overridden if o.rule in OVERRIDABLE}
    read = _of_the_run(state) if search_is_over(state) else readings(state)
    return [r for r in read if r.fires and (r.rule, r.generation) not in overridden]


def readings(state: RunState) -> list[Reading]:
    """What each rule observes in the run and its latest generation, whether it fires or not.

    Without `storage`: no record says how full the disk is.
    """
    plan, read, latest = state.plan, _of_the_run(state), (None, *state.generations)[-1]
    if latest is None or plan.campaign is not None:  # a condition that fails is a finding
        return read
    if plan.phase == "check":  # an end of a range that fails or takes long is a finding
        return read if plan.proxy is not None else [*read, baseline_failed(latest)]
    read += [crash_rate(state, latest), sustained_nan(state, latest)]
    read.append(runaway_time(state, latest))
    return read if plan.search is None else [*read, patience(state)]


def _of_the_run(state: RunState) -> list[Reading]:
    """Readings of the rules that also apply when the search is over."""
    source = state.plan.source
    followed = () if source is None else follows_a_go(source)
    lost = (infrastructure(state, batch) for batch in open_batches(state))
    return [*followed, setup_failed(state), budget(state), *lost]


# The budget


def budget(state: RunState) -> Reading:
    """The next generation, or the next evaluation that the run waits for, does not fit under a cap.

    Half a generation teaches the search nothing, so one that is not expected to fit into what a cap
    leaves free is not begun. Its last attempt needs its whole reservation free, beside what the
    verdict is expected to take.
    """
    plan, calibration, refusal = state.plan, state.plan.calibration, None
    batch = next((one for one in blocking_batches(state) if one.pending), None)
    if batch is not None and not state.accounts.holds:
        refusal = refusal_of(state, batch, batch.pending[0][0])
    elif state.current is None and calibration is not None and not search_is_over(state):
        count, parts = plan.resolved.per_generation, [left_for_the_verdict(state)]
        for cost in (1.0,) if plan.proxy is None else (1.0, plan.proxy.variant.cost_factor):
            parts.append(expected(count, count * cost, calibration, plan.devices.count))
        last = calibration.median_seconds / 3600
        keep = sum(p.device_hours for p in parts) - last, sum(p.hours for p in parts) - last
        refusal = state.accounts.refusal(plan.limits.reserve_ms, keep=keep)
    return Reading("budget", state.begun) if refusal is None else refused(state, batch, refusal)


def refusal_of(
    state: RunState, batch: Batch, candidate: int, accounts: Accounts | None = None
) -> Refusal | None:
    """Why an attempt at the candidate may not start now, or by the `accounts` of a later moment.

    The search leaves free what the comparisons are expected to take.
    """
    accounts, compares = accounts or state.accounts, batch.comparison is not None
    reserve_ms = state.plan.limits.stretched(batch.configurations[candidate].cost_factor).reserve_ms
    keep = (0.0, 0.0)
    if not compares and state.plan.search is not None:
        verdict = left_for_the_verdict(state)
        keep = verdict.device_hours, verdict.hours
    return accounts.refusal(reserve_ms, compares=compares, keep=keep)


def refused(state: RunState, batch: Batch | None, refusal: Refusal) -> Reading:
    """The stop that follows from a refused reservation in the batch; None: of a generation."""
    facts: Facts = {"flag": refusal.flag, "unit": refusal.unit}
    number = state.begun
    if batch is not None:
        facts |= {"currency": refusal.currency, "comparison": batch.comparison or ""}
        number = place_of(state, batch)
    return Reading("budget", number, refusal.needed, refusal.free, fires=True, facts=facts)
