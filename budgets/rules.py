"""Rules that pause or stop a run, and what follows from them.

Each rule is a pure function of the state that returns the event `Fired`, or None: numbers and names
alone, which `orchestrator.look.text` puts in words. Limits are in `plan.Thresholds`.
"""

from collections.abc import Iterator, Sequence
from math import floor
from statistics import fmean, median
from typing import Literal, NamedTuple

from budgets.accounts import Account, Accounts
from budgets.events import Facts, Fired, Settled, Status
from budgets.ledger import LEAST_FREE_BYTES
from budgets.measurements import noise
from budgets.plan import Plan, Source
from budgets.schedule import (
    blocking_batches,
    expected,
    left_for_the_verdict,
    next_action,
    open_batches,
    search_is_over,
)
from budgets.state import Batch, Evaluation, RunState
from budgets.stats import at_least, lowest_rate

OVERRIDABLE = ("go", "unproven_knobs", "crash_rate", "sustained_nan", "runaway_time", "patience")
"""Rules that a person may override. The others name something to repair, or a cap to amend."""

_TO_REPAIR = ("baseline_failed", "setup_failed", "infrastructure", "storage")

DECISIONS = dict.fromkeys((*OVERRIDABLE, *_TO_REPAIR), "pause")
DECISIONS |= {"patience": "stop", "budget": "stop"}
"""What each rule leads to, as the ledger and `--override` know it."""


def _fired(
    rule: str, generation: int, observed: float, limit: float, **facts: float | str
) -> Fired:
    own = {"rule": rule, "generation": generation, "decision": DECISIONS[rule]}
    return Fired.model_validate(own | {"observed": observed, "limit": limit, "facts": facts})


def _place(state: RunState, batch: Batch) -> int:
    """The generation that a rule about the batch names: its own, or the next of a comparison."""
    return batch.number if batch.comparison is None else state.begun


# A phase 2 and the run that it follows


def follows_a_go(source: Source) -> Iterator[Fired]:
    """What speaks against following `source`: no Go; added knobs not shown to move the score."""
    if source.grade not in ("go", "go_persists"):
        yield _fired("go", 0, 0.0, 1.0)
    if source.unproven:
        yield _fired("unproven_knobs", 0, len(source.unproven), 0)


# Failures and losses


def crash_rate(state: RunState, generation: Batch) -> Fired | None:
    """Failed evaluations, of all planned: it fires as soon as the rate cannot stay below its limit.

    Lost attempts do not count, nor do NaNs of extreme candidates or those for which `sustained_nan`
    fires. With `crash_level` the generations since the last override are judged together: it fires
    where the rate is above the limit with that confidence.
    """
    level, count, pool = state.plan.thresholds.crash_level, 0, [generation]
    if level is not None:
        overridden = (one.generation for one in state.overridden if one.rule == "crash_rate")
        pool = list(state.generations[max(overridden, default=-1) + 1 :])
    for one in pool:
        nans = [] if sustained_nan(state, one) else _unexplained(state, one)
        count += sum(end.status is not Status.NAN or end in nans for end in one.failed)
    return _too_many("crash_rate", state, pool, count, level)


def sustained_nan(state: RunState, generation: Batch) -> Fired | None:
    """NaNs of candidates that are not extreme, of all evaluations planned for the generation."""
    return _too_many("sustained_nan", state, (generation,), len(_unexplained(state, generation)))


def _too_many(
    rule: str, state: RunState, pool: Sequence[Batch], count: int, level: float | None = None
) -> Fired | None:
    """Fires for a share above `crash_rate_pause`, if they are `crash_count_pause` or more."""
    limits, planned = state.plan.thresholds, sum(one.planned for one in pool)
    if count < limits.crash_count_pause:
        return None
    rate = count / planned if level is None else lowest_rate(count, planned, level)
    if rate <= limits.crash_rate_pause:
        return None
    facts = {"failed": count} | ({} if level is None else {"planned": planned})
    return _fired(rule, pool[-1].number, rate, limits.crash_rate_pause, **facts)


def paused_by_chance(plan: Plan, rate: float) -> float:
    """How often `crash_rate` pauses a search somewhere, if evaluations fail at that rate."""
    limits, count = plan.thresholds, plan.resolved.per_generation
    least = max(limits.crash_count_pause, floor(limits.crash_rate_pause * count) + 1)
    return 1 - (1 - at_least(least, count, rate)) ** plan.resolved.generations


def _unexplained(state: RunState, generation: Batch) -> list[Settled]:
    """NaN results of candidates that are not extreme: at an end of a range where the start is not.

    The search learns by itself to avoid NaNs at the ends; elsewhere they may be a defect.
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


def baseline_failed(generation: Batch) -> Fired | None:
    """A check's baseline, candidate 0, failed, so nothing can be compared with it."""
    count = sum(one.candidate == 0 for one in generation.failed)
    return _fired("baseline_failed", generation.number, count, 0) if count else None


def setup_failed(state: RunState) -> Fired | None:
    """An evaluation found that nothing can be evaluated; a new session may repeat it."""
    if (end := state.setup_failed) is None:
        return None
    batch, key = state.batch(end), (end.candidate, end.seed)
    return _fired("setup_failed", _place(state, batch), 1, 0, **_evaluation(batch, key))


def infrastructure(state: RunState, batch: Batch) -> Fired | None:
    """This session lost one evaluation too often; a new session makes another attempt."""
    limit = state.plan.thresholds.attempts_per_session
    for key, losses in batch.losses.items():
        if losses >= limit:
            place = _place(state, batch)
            return _fired("infrastructure", place, losses, limit, **_evaluation(batch, key))
    return None


def _evaluation(batch: Batch, key: Evaluation) -> Facts:
    """Names an evaluation of the generation, or of a comparison."""
    return {"comparison": batch.comparison or "", "candidate": key[0], "seed": key[1]}


def disk_full(state: RunState, batch: Batch, free_bytes: int) -> Fired:
    """The pause for a disk without space for further results."""
    return _fired("storage", _place(state, batch), free_bytes, LEAST_FREE_BYTES)


# Time and progress


def runaway_time(state: RunState, generation: Batch) -> Fired | None:
    """The generation's median evaluation takes more than twice the calibrated time.

    Judged by CPU seconds on CPUs, where wall clock depends on what else runs.
    """
    calibration, limits = state.plan.calibration, state.plan.thresholds
    healthy = [one for one in generation.results() if one.status is Status.OK]
    if calibration is None or not generation.closed or not healthy:
        return None
    taken, of = median(one.seconds for one in healthy), "wall"
    calibrated = calibration.median_seconds
    if state.plan.devices.kind == "cpu" and calibration.samples:
        taken, of = median(one.cpu_seconds for one in healthy), "CPU"
        calibrated = median(sample.cpu_seconds for sample in calibration.samples)
    most = limits.time_drift_pause
    if calibrated < max(limits.time_drift_floor_seconds, 1e-9) or taken / calibrated <= most:
        return None
    drift = taken / calibrated
    return _fired("runaway_time", generation.number, drift, most, seconds=taken, of=of)


def patience(state: RunState) -> Fired | None:
    """The search hardly improved over the last N = `patience_generations` generations.

    Compares medians, over generations, of the healthy candidates' mean score: of the last N told,
    and of the N before them, or as many as there are. A generation's seeds move its mean, and a
    median ignores one outlier. Scores are divided by the baseline's, or without a
    calibration by the first mean.

    It fires between generations, never after the last. After an override it waits for N more.
    """
    limits, last = state.plan.thresholds, len(state.completed) - 1
    count, is_between = limits.patience_generations, state.current is None
    if count is None or not is_between or state.finished == state.plan.resolved.generations:
        return None
    measured = [generation for generation in state.completed if generation.healthy]
    if len(measured) <= count:
        return None
    means = [fmean(generation.healthy) for generation in measured]
    baseline = noise(state.plan.calibration)
    before, after = median(means[-2 * count : -count]), median(means[-count:])
    size = abs(means[0] if baseline is None else baseline.mean) or 1.0
    gain = state.plan.sign * (before - after) / size
    overridden = (one.generation for one in state.overridden if one.rule == "patience")
    waits = max(overridden, default=-1) >= measured[-count].number
    if gain > limits.patience_improve or waits:
        return None
    return _fired("patience", last, gain, limits.patience_improve, generations=count)


# What the rules mean for the run

Decision = Literal["continue", "pause", "stop", "done"]


class Ruling(NamedTuple):
    """What happens next, and why."""

    decision: Decision
    triggers: tuple[Fired, ...] = ()


def judge(state: RunState) -> Ruling:
    """What the recorded facts allow next. The same ledger always gets the same ruling."""
    fired = firing(state)
    for decision in ("pause", "stop"):
        if triggers := tuple(one for one in fired if one.decision == decision):
            return Ruling(decision, triggers)
    return Ruling("done" if next_action(state) == "over" else "continue")


def ruling_of(state: RunState) -> Ruling:
    """How the run stands; a stop that only ends its search lets it continue."""
    ruling = judge(state)
    return Ruling("continue") if only_ends_the_search(state, ruling) else ruling


def only_ends_the_search(state: RunState, ruling: Ruling) -> bool:
    """Whether the run continues after this stop, to compare what the search found."""
    is_compared = state.plan.confirmation is not None and bool(state.completed)
    return ruling.decision == "stop" and is_compared and not search_is_over(state)


def firing(state: RunState) -> list[Fired]:
    """What fires in the run and its latest generation, and is not overridden; not `storage`."""
    if state.decided is not None or state.concluded is not None:
        return []
    overridden = {(o.rule, o.generation) for o in state.overridden if o.rule in OVERRIDABLE}
    found = (one for one in _all_rules(state) if one is not None)
    return [one for one in found if (one.rule, one.generation) not in overridden]


def _all_rules(state: RunState) -> Iterator[Fired | None]:
    plan, latest = state.plan, (None, *state.generations)[-1]
    if plan.source is not None:
        yield from follows_a_go(plan.source)
    yield setup_failed(state)
    yield budget(state)
    for batch in open_batches(state):
        yield infrastructure(state, batch)
    if latest is None or search_is_over(state) or plan.campaign is not None:
        return  # a condition of a campaign that fails is a finding
    if plan.phase == "check":  # an end of a range that fails or takes long is a finding
        if plan.proxy is None:
            yield baseline_failed(latest)
        return
    yield crash_rate(state, latest)
    yield sustained_nan(state, latest)
    yield runaway_time(state, latest)
    if plan.search is not None:
        yield patience(state)


# The budget


def budget(state: RunState) -> Fired | None:
    """The next generation, or the next evaluation that the run waits for, does not fit under a cap.

    Half a generation teaches the search nothing. Its last attempt needs its whole reservation free,
    beside what the verdict is expected to take.
    """
    plan, calibration = state.plan, state.plan.calibration
    batch = next((one for one in blocking_batches(state) if one.pending), None)
    if batch is not None and not state.accounts.holds:
        return no_room(state, batch, batch.pending[0][0])
    if state.current is not None or calibration is None or search_is_over(state):
        return None
    count, last = plan.resolved.per_generation, calibration.median_seconds / 3600
    own = expected([(count, count)], calibration, plan.devices.count)
    verdict = left_for_the_verdict(state)
    keep = (own[0] + verdict[0] - last, own[1] + verdict[1] - last)
    refusal = state.accounts.refusal(plan.limits.reserve_ms, keep=keep)
    return None if refusal is None else _refused(refusal, state.begun)


def no_room(
    state: RunState, batch: Batch, candidate: int, accounts: Accounts | None = None
) -> Fired | None:
    """The stop because an attempt at the candidate may not start, by the `accounts` of a moment.

    Generations leave free what the comparisons are expected to take.
    """
    accounts, compares = accounts or state.accounts, batch.comparison is not None
    reserve_ms = state.plan.limits.stretched(batch.configurations[candidate].cost_factor).reserve_ms
    keep = (0.0, 0.0) if compares else left_for_the_verdict(state)
    if (refusal := accounts.refusal(reserve_ms, compares=compares, keep=keep)) is None:
        return None
    facts = {"currency": refusal[0].name, "comparison": batch.comparison or ""}
    return _refused(refusal, _place(state, batch), **facts)


def _refused(refusal: tuple[Account, float], generation: int, **facts: str) -> Fired:
    own, needed = refusal
    free = own.free or 0.0
    return _fired("budget", generation, needed, free, flag=own.flag, unit=own.unit, **facts)
