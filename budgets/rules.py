"""Rules that pause or stop a run, and the table of all limits.

Each rule is a pure function of the state that returns a `Reading`, whether it fires or not.
`budgets.rules` says what follows for the run. The numbers are in `budgets.plan.Thresholds`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median
from typing import Any, Literal, NamedTuple

from budgets.accounts import MS_PER_HOUR, Accounts, Refusal
from budgets.events import Fired, Settled, Status
from budgets.following import GOES, verdict
from budgets.formatting import against, counted, listed, precise_duration
from budgets.plan import Source, Thresholds
from budgets.proxy import seconds
from budgets.schedule import (
    ENDS_THE_SEARCH,
    blocking_batches,
    expected,
    left_for_the_verdict,
    next_action,
    open_batches,
    search_is_over,
)
from budgets.state import Batch, RunState


class Rule(NamedTuple):
    """A row of the table."""

    name: str
    about: str  # what it looks at
    decision: Literal["pause", "stop", "no go", "finding"]
    thresholds: tuple[str, ...] = ()  # that it compares with
    overridable: bool = False

    def limits(self, thresholds: Thresholds) -> dict[str, Any]:
        """The thresholds that it compares with, by name."""
        return {name: getattr(thresholds, name) for name in self.thresholds}


_ROWS = (
    Rule("go", "whether the run that a phase 2 follows said Go, 1 or 0", "pause", (), True),
    Rule(
        "unproven_knobs",
        "new knobs of a phase 2 that no finished check has shown to move the score",
        "pause", (), True,
    ),
    Rule(
        "crash_rate",
        "failed evaluations, of all that the generation will have; neither lost ones, nor NaNs "
        "that are extreme or that sustained_nan counts",
        "pause", ("crash_rate_pause", "crash_count_pause"), True,
    ),
    Rule(
        "sustained_nan",
        "NaN evaluations of candidates that are not extreme, of all that the generation will "
        "have; or one in each of several generations running",
        "pause",
        ("nan_rate_pause", "nan_count_pause", "nan_generations_pause", "edge", "far"), True,
    ),
    Rule(
        "too_few_healthy",
        "healthy candidates of a closed generation, against half of P, which CMA-ES recombines",
        "pause", (), True,
    ),
    Rule(
        "runaway_time",
        "median time of a closed generation's healthy evaluations, times the calibrated one; CPU "
        "seconds on a CPU",
        "pause", ("time_drift_pause", "time_drift_floor_seconds"), True,
    ),
    Rule("baseline_failed", "failed evaluations of a check's baseline", "pause"),
    Rule(
        "setup_failed",
        "evaluations of this session which found that nothing can be evaluated: data or a program "
        "missing, sources changed, a budget too small",
        "pause",
    ),
    Rule(
        "infrastructure",
        "how often this session lost one evaluation with its worker or node",
        "pause", ("attempts_per_session",),
    ),
    Rule("storage", "free disk space for results, when an evaluation is to start", "pause"),
    Rule(
        "patience",
        "by how much the mean healthy score got better over the last generations, of the "
        "baseline's",
        "stop", ("patience_generations", "patience_improve"), True,
    ),
    Rule(
        "budget",
        "what the next generation or evaluation needs, against what the caps leave free",
        "stop",
    ),
    Rule(
        "stability",
        "share of evaluations that failed, over the last generations",
        "no go", ("go_crash_rate", "go_generations"),
    ),
    Rule(
        "signal",
        "the winner's gain over the baseline, paired on fresh seeds, and its lower bound",
        "no go", ("go_gain", "go_seeds", "go_level"),
    ),
    Rule(
        "persistence",
        "gain of the distribution's mean over the last third of generations, on fresh seeds",
        "no go",
    ),
    Rule(
        "sanity",
        "share of the winner's runs that failed, exploded or were unstable",
        "no go", ("go_pathological",),
    ),
    Rule(
        "rung",
        "share of the gain that is kept with more FLOPs, and its lower bound there",
        "no go", ("persist_share", "go_level"),
    ),
    Rule(
        "flat",
        "no gain is shown; where candidates differ by no more than chance, the knobs do nothing",
        "no go", ("go_gain", "dead_spread", "dead_freedom"),
    ),
    Rule(
        "seed_luck",
        "the best score's apparent gain, against the most that fresh seeds and noise allow",
        "no go", ("go_gain", "go_level"),
    ),
    Rule(
        "alive",
        "a check's knobs: scores that count as equal, and the share of finds that may be luck",
        "finding", ("same_score", "alive_level"),
    ),
)  # fmt: skip

TABLE = {rule.name: rule for rule in _ROWS}
"""Every rule, in the order in which they are shown."""

RULES = tuple(rule.name for rule in _ROWS if rule.decision in ("pause", "stop"))
"""Rules that pause or stop a run, as the ledger and `--override` know them."""

BEFORE_THE_RUN = ("go", "unproven_knobs")
"""Rules that a person may override before the run that they hold up has begun."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a rule observes, against its limit."""

    rule: str
    generation: int
    observed: float | None  # None: there is nothing to observe yet
    limit: float | None  # None: the rule is off
    evidence: str
    fires: bool = False
    flag: str = ""  # of the cap that is in the way

    @property
    def decision(self) -> Literal["pause", "stop"]:
        """What follows when it fires."""
        decision = TABLE[self.rule].decision
        assert decision in ("pause", "stop"), f"{self.rule} holds no run up"
        return decision

    @property
    def overridable(self) -> bool:
        return TABLE[self.rule].overridable

    def fired(self) -> Fired:
        """As it goes on record once it fires."""
        assert self.observed is not None, "a rule fires on what it observed"
        assert self.limit is not None, "... beyond a limit"
        return Fired(
            rule=self.rule,
            generation=self.generation,
            decision=self.decision,
            observed=self.observed,
            limit=self.limit,
            evidence=self.evidence,
        )


def place_of(state: RunState, batch: Batch) -> int:
    """Where a rule about the batch speaks: its generation, or the one that would come next."""
    return batch.number if batch.comparison is None else state.begun


def name_of(batch: Batch) -> str:
    """`generation 3`, `the winner`."""
    return f"generation {batch.number}" if batch.comparison is None else f"the {batch.comparison}"


# A phase 2 and the run that it follows


def follows_a_go(source: Source) -> Iterator[Reading]:
    """What speaks for or against a run that follows `source`."""
    is_go = source.grade in GOES
    said = f"{source.run_id} {verdict(source.grade)}"
    why = said if is_go else f"phase 2 follows a Go, and {said}"
    yield Reading("go", 0, float(is_go), 1.0, why, fires=not is_go)
    if source.added:
        unproven, why = len(source.unproven), "each new knob was shown to move the score"
        if unproven:
            names = ", ".join(source.unproven)
            why = f"no finished check has shown that these knobs move the score: {names}"
        yield Reading("unproven_knobs", 0, unproven, 0, why, fires=unproven > 0)


# Failures and losses


def crash_rate(state: RunState, generation: Batch) -> Reading:
    """Failed evaluations, of all that the generation will have.

    So it fires as soon as the rate can no longer fall below its limit. Lost attempts have no final
    status and do not count. Nor do NaNs of extreme candidates, or those that `sustained_nan` fires
    for.
    """
    limits, number, failed = state.plan.thresholds, generation.number, generation.failed
    nans = [one for one in failed if one.status is Status.NAN]
    if nans:
        others = [] if sustained_nan(state, generation).fires else _unexplained(state, generation)
        failed = [one for one in failed if one.status is not Status.NAN or one in others]
    said, rate = _share(generation, len(failed))
    evidence = (
        f"{said} failed ({rate:.1%}; limit {limits.crash_rate_pause:.0%} and "
        f"{limits.crash_count_pause} evaluations)"
    )
    if causes := sorted({f"{one.status} ({one.cause})" for one in failed}):
        evidence += f": {'; '.join(causes[:3])}"
    if spared := len(generation.failed) - len(failed):
        evidence += f"; {spared} more that are NaN do not count here"
    fires = rate > limits.crash_rate_pause and len(failed) >= limits.crash_count_pause
    return Reading("crash_rate", number, rate, limits.crash_rate_pause, evidence, fires)


def _share(generation: Batch, count: int) -> tuple[str, float]:
    """So many of all evaluations that the generation will have: `2 of 8 evaluations of ...`."""
    planned = generation.planned
    return f"{count} of {planned} evaluations of generation {generation.number}", count / planned


def sustained_nan(state: RunState, generation: Batch) -> Reading:
    """NaNs of candidates that are not extreme: many in the generation, or some in several running.

    Generations before one that an override let through do not count among those running.
    """
    limits, number = state.plan.thresholds, generation.number
    nans = _unexplained(state, generation)
    said, rate = _share(generation, len(nans))
    running = _generations_with_nan(state, generation)
    candidates = listed(dict.fromkeys(str(one.candidate) for one in nans), 4)
    evidence = (
        f"{said} are NaN where no extreme point explains it ({rate:.1%}; limit "
        f"{limits.nan_rate_pause:.0%} and {limits.nan_count_pause} evaluations)"
        f"{f': candidates {candidates}' if nans else ''}; in {running} generations running (limit "
        f"{limits.nan_generations_pause})"
    )
    if rate > limits.nan_rate_pause and len(nans) >= limits.nan_count_pause:
        if state.plan.search is None:
            evidence = f"{said} are NaN: the baseline has no score to compare with"
        return Reading("sustained_nan", number, rate, limits.nan_rate_pause, evidence, fires=True)
    if running >= limits.nan_generations_pause:
        limit = limits.nan_generations_pause
        return Reading("sustained_nan", number, running, limit, evidence, fires=True)
    return Reading("sustained_nan", number, rate, limits.nan_rate_pause, evidence)


def _unexplained(state: RunState, generation: Batch) -> list[Settled]:
    """NaN results of candidates that are not extreme."""
    nans = (one for one in generation.failed if one.status is Status.NAN)
    return [one for one in nans if not _is_extreme(state, generation, one.candidate)]


def _is_extreme(state: RunState, generation: Batch, candidate: int) -> bool:
    """Whether it lies at an end of a range where the search's start does not, or far out.

    The search learns by itself to avoid NaNs there; elsewhere they are a defect, or a region that
    nobody knew of. Far out is an outlier of the distribution it was drawn from, by Mahalanobis.
    """
    limits, search, point = state.plan.thresholds, state.plan.search, generation.points[candidate]
    start = generation.points[0] if search is None else search.start
    ends = (
        (_end(own, limits.edge), _end(at, limits.edge))
        for own, at in zip(point, start, strict=True)
    )
    if any(own not in (0, at) for own, at in ends):
        return True
    distances = generation.distances
    return bool(distances) and distances[candidate] > sqrt(len(point)) + limits.far


def _end(unit: float, edge: float) -> int:
    """-1 within `edge` of the lower end of a knob's range, 1 of the upper, else 0."""
    return (unit >= 1 - edge) - (unit <= edge)


def _generations_with_nan(state: RunState, generation: Batch) -> int:
    """How many generations up to this one, without a gap, have a NaN that nothing explains.

    Up to the limit, and none from before an override of an earlier one.
    """
    passed = [o.generation for o in state.overridden if o.rule == "sustained_nan"]
    first = max((number + 1 for number in passed if number < generation.number), default=0)
    first = max(first, generation.number + 1 - state.plan.thresholds.nan_generations_pause)
    numbers = range(generation.number, first - 1, -1)
    for count, number in enumerate(numbers):
        if not _unexplained(state, state.generation(number)):
            return count
    return len(numbers)


def too_few_healthy(generation: Batch) -> Reading:
    """Fewer healthy candidates than CMA-ES recombines (mu = P // 2).

    The search learns little from such a generation: an override tells it all the same, failed
    candidates behind the healthy ones.
    """
    needed = len(generation.points) // 2
    healthy = len(generation.healthy)
    evidence = (
        f"{healthy} of {len(generation.points)} candidates of generation {generation.number} are "
        f"healthy, the search needs {needed}"
    )
    fires = generation.closed and healthy < needed
    return Reading("too_few_healthy", generation.number, healthy, needed, evidence, fires)


def baseline_failed(generation: Batch) -> Reading:
    """A check's baseline, candidate 0, failed: there is nothing to compare with.

    No override: the same evaluation would fail again, and it is paid for.
    """
    failed = [one for one in generation.failed if one.candidate == 0]
    evidence = "the baseline has not failed"
    if failed:
        evidence = (
            f"the baseline failed on seed {failed[0].seed}: {failed[0].status} "
            f"({failed[0].cause}). Mend it, then check on other seeds (evaluation.seed)"
        )
    number, fires = generation.number, bool(failed)
    return Reading("baseline_failed", number, len(failed), 0, evidence, fires)


def setup_failed(state: RunState) -> Reading:
    """An evaluation found that nothing can be evaluated at all: the next would find the same.

    No override, for there is nothing to let through: a new session tries again.
    """
    end = state.setup_failed
    if end is None:
        evidence = "no evaluation of this session found that nothing can be evaluated"
        return Reading("setup_failed", state.begun, 0, 0, evidence)
    batch = state.batch(end)
    evidence = (
        f"nothing can be evaluated, as candidate {end.candidate}, seed {end.seed} of "
        f"{name_of(batch)} found: {end.cause.rstrip('.')}. Mend it and repeat the command: the "
        "evaluation is pending again"
    )
    return Reading("setup_failed", place_of(state, batch), 1, 0, evidence, fires=True)


def infrastructure(state: RunState, batch: Batch) -> Reading:
    """This session lost one evaluation too often. No override: a new session tries again."""
    limit, number = state.plan.thresholds.attempts_per_session, place_of(state, batch)
    most, key = max(((count, key) for key, count in batch.losses.items()), default=(0, (0, 0)))
    if most < limit:
        evidence = f"no pending evaluation of {name_of(batch)} was lost {limit} times"
        return Reading("infrastructure", number, most, limit, evidence)
    ends = [one.settled for one in batch.attempts[key] if one.settled is not None]
    evidence = (
        f"candidate {key[0]}, seed {key[1]} of {name_of(batch)} was lost {most} times "
        f"({ends[-1].cause}). See to the machines, then resume: lost again it counts as its "
        "candidate's failure"
    )
    return Reading("infrastructure", number, most, limit, evidence, fires=True)


def disk_full(generation: int, why: str) -> Reading:
    """The pause of a disk without room for further results."""
    return Reading("storage", generation, 0, 0, why, fires=True)


# Time and progress


def runaway_time(state: RunState, generation: Batch) -> Reading:
    """The generation's median evaluation takes more than twice the calibrated one.

    Judged on CPU seconds where the devices are CPUs: wall clock there measures the neighbours.
    """
    calibration, limits = state.plan.calibration, state.plan.thresholds
    limit, number = limits.time_drift_pause, generation.number
    if calibration is None:
        return Reading("runaway_time", number, None, limit, "there is no calibrated time")
    on_cpu = state.plan.devices.kind == "cpu" and calibration.median_cpu_seconds is not None
    calibrated = calibration.median_cpu_seconds if on_cpu else calibration.median_seconds
    expected = calibrated or 0.0
    if expected < limits.time_drift_floor_seconds or not expected:
        evidence = f"an evaluation takes {expected:.3g} s: too short to judge"
        return Reading("runaway_time", number, None, limit, evidence)
    healthy = seconds(generation, cpu=on_cpu)
    if not healthy or not generation.closed:
        evidence = f"generation {number} is not closed, or nothing of it is healthy"
        return Reading("runaway_time", number, None, limit, evidence)
    observed = median(healthy)
    drift = observed / expected
    evidence = (
        f"the median evaluation of generation {number} took {observed:.1f} "
        f"{'CPU ' if on_cpu else ''}seconds, {drift:.1f} times the expected {expected:.1f} "
        f"(limit {limit:g})"
    )
    return Reading("runaway_time", number, drift, limit, evidence, fires=drift > limit)


def patience(state: RunState) -> Reading:
    """The search got hardly better over the last N = `patience_generations` generations.

    Compared are medians, over generations, of the mean score of the healthy candidates: over the
    last N told, and over the N before them, or as many as there are. Each generation has fresh
    seeds that all its candidates share, so its mean moves with them: one lucky generation shall
    neither set a bar nor count as an improvement. Scores are divided by the baseline's, or without
    one by the first mean.

    It fires between generations, never after the last. After an override it waits for N more.
    """
    limits, number = state.plan.thresholds, max(len(state.completed) - 1, 0)
    count, limit = limits.patience_generations, limits.patience_improve
    if count is None:
        return Reading("patience", number, None, None, "no patience is set")
    alike = [g for g in state.completed if g.healthy]
    means = [fmean(generation.healthy) for generation in alike]
    if len(means) <= count:
        evidence = f"{len(means)} generations can be compared, it takes more than {count}"
        return Reading("patience", number, None, limit, evidence)
    calibration = state.plan.calibration
    baseline = None if calibration is None else calibration.mean_score
    before, after = median(means[-2 * count : -count]), median(means[-count:])
    gain = (before - after) / (abs(means[0] if baseline is None else baseline) or 1.0)
    evidence = (
        f"the mean score got {gain:.3%} better over {counted(count, 'generation')}, to "
        f"{after:.5g} from {before:.5g} (medians over generations; limit {limit:.3%})"
    )
    goes_on = state.current is None and state.finished < state.plan.resolved.generations
    passed = [o.generation for o in state.overridden if o.rule == "patience"]
    # that of the latest generation is waived by whoever judges it
    waits = any(alike[-count].number <= n < len(state.completed) - 1 for n in passed)
    fires = gain <= limit and goes_on and not waits
    return Reading("patience", number, gain, limit, evidence, fires)


# What they mean for the run

Decision = Literal["continue", "pause", "stop", "done"]


@dataclass(frozen=True, slots=True)
class Ruling:
    """What happens next, and why."""

    decision: Decision
    triggers: tuple[Reading, ...] = ()
    reason: str = ""


def judge(state: RunState) -> Ruling:
    """What the recorded facts allow next. The same ledger always gets the same ruling."""
    if state.concluded is not None:
        return Ruling("done", (), state.concluded.reason)
    firing = list(_firing(state))
    for decision in ("pause", "stop"):
        if fired := tuple(one for one in firing if one.decision == decision):
            return Ruling(decision, fired, "; ".join(one.evidence for one in fired))
    if next_action(state) != "over":
        return Ruling("continue")
    reason = f"all {state.accounts.evaluations} planned evaluations are settled"
    return Ruling("done", (), reason if state.decided is None else state.decided.evidence)


def ruling_of(state: RunState) -> Ruling:
    """How the run stands: what only ends its search does not end it."""
    ruling = judge(state)
    goes_on = only_ends_the_search(state, ruling)
    return Ruling("continue", (), ruling.reason) if goes_on else ruling


def only_ends_the_search(state: RunState, ruling: Ruling) -> bool:
    """Whether the run goes on after this stop: the search has found something to compare."""
    names = {reading.rule for reading in ruling.triggers}
    if ruling.decision != "stop" or not names <= set(ENDS_THE_SEARCH):
        return False
    return (
        state.plan.confirmation is not None and bool(state.completed) and not search_is_over(state)
    )


def held_up_by(state: RunState, rule: str) -> tuple[Reading, ...]:
    """What that rule sees that holds the run up, whatever else does."""
    if state.concluded is not None:
        return ()
    return tuple(reading for reading in _firing(state) if reading.rule == rule)


def _firing(state: RunState) -> Iterator[Reading]:
    """Readings that fire and that no override let through."""
    if state.decided is None:
        read = _of_the_run(state) if search_is_over(state) else readings(state)
        yield from (one for one in read if one.fires and not is_overridden(state, one))


def is_overridden(state: RunState, reading: Reading) -> bool:
    """Whether a person let it through."""
    passed = ((one.rule, one.generation) for one in state.overridden)
    return reading.overridable and (reading.rule, reading.generation) in passed


def readings(state: RunState) -> list[Reading]:
    """What each rule observes in the run and its latest generation, whether it fires or not.

    None of `storage`: no record says how full the disk is.
    """
    plan, read, latest = state.plan, _of_the_run(state), state.latest
    if latest is None or plan.campaign is not None:  # a condition that fails is a finding
        return read
    if plan.phase == "check":  # an end of a range that fails or takes long is a finding
        return read if plan.proxy is not None else [*read, baseline_failed(latest)]
    read += [crash_rate(state, latest), sustained_nan(state, latest)]
    read += [too_few_healthy(latest), runaway_time(state, latest)]
    return read if plan.search is None else [*read, patience(state)]


def _of_the_run(state: RunState) -> list[Reading]:
    """Of the rules that apply also when the search is over."""
    source = state.plan.source
    founded = () if source is None else follows_a_go(source)
    lost = (infrastructure(state, batch) for batch in open_batches(state))
    return [*founded, setup_failed(state), budget(state), *lost]


# The budget


def budget(state: RunState) -> Reading:
    """What comes next does not fit under a cap: a generation, or an evaluation of it."""
    why = "what comes next is expected to fit under every cap"
    fits = Reading("budget", state.begun, None, None, why)
    return unaffordable(state) or _out_of_budget(state) or fits


def unaffordable(state: RunState) -> Reading | None:
    """The next generation, if there is one, is not expected to fit into what a cap leaves free.

    Half a generation teaches the search nothing, so it is not begun. Its last attempt must still
    find its whole reservation free beside what the verdict will take.
    """
    plan, accounts, calibration = state.plan, state.accounts, state.plan.calibration
    if state.current is not None or calibration is None or search_is_over(state):
        return None
    verdict = left_for_the_verdict(state)
    last = max(0.0, plan.limits.reserve_ms / MS_PER_HOUR - calibration.median_seconds / 3600)
    device_hours, hours = verdict.device_hours + last, verdict.hours + last
    count = plan.resolved.per_generation
    for cost in (1.0,) if plan.proxy is None else (1.0, plan.proxy.variant.cost_factor):
        own = expected(count, count * cost, calibration, plan.devices.count)
        device_hours, hours = device_hours + own.device_hours, hours + own.hours
    table = accounts.table
    checks = (
        ("device-hours", device_hours, table["device time"].free, "--max-device-hours"),
        ("hours", hours, table["wall clock"].free, "--max-hours"),
        ("of money", device_hours * plan.price_per_device_hour, table["money"].free, "--max-cost"),
        ("hours", hours, accounts.window_hours_free, "--window"),
    )
    for unit, need, free, flag in checks:
        if free is not None and need > free:
            needs, left = against(need, max(free, 0.0), unit)
            beside = f" and the verdict's {verdict.evaluations}" * (verdict.evaluations > 0)
            evidence = (
                f"generation {state.begun} is expected to need {needs} (its {count} "
                f"evaluations{beside}, the last with its whole limit), {left} are free ({flag})"
            )
            return Reading("budget", state.begun, need, free, evidence, fires=True, flag=flag)
    return None


def _out_of_budget(state: RunState) -> Reading | None:
    """What the run waits for has evaluations left, and no cap leaves room for another attempt."""
    batch = next((one for one in blocking_batches(state) if one.pending), None)
    if batch is None or state.accounts.holds:
        return None
    refusal = refusal_of(state, batch, batch.pending[0][0])
    return None if refusal is None else refused(state, batch, refusal)


def refusal_of(
    state: RunState, batch: Batch, candidate: int, accounts: Accounts | None = None
) -> Refusal | None:
    """Why an attempt at the candidate may not start; `accounts`: by those of a moment later.

    The search leaves their due to the evaluations beside it.
    """
    accounts, compares = accounts or state.accounts, batch.comparison is not None
    reserve_ms = state.plan.limits.stretched(batch.configurations[candidate].cost_factor).reserve_ms
    keep = (0.0, 0.0)
    if not compares and state.plan.search is not None:
        others = left_for_the_verdict(state)
        keep = others.device_hours, others.hours
    return accounts.refusal(reserve_ms, compares=compares, keep=keep)


def refused(state: RunState, batch: Batch, refusal: Refusal) -> Reading:
    """The stop that a refused reservation amounts to."""
    evidence = f"{name_of(batch)} cannot be finished: {refusal}"
    if batch.comparison is None and (verdict := left_for_the_verdict(state)).evaluations:
        left = precise_duration(3600 * verdict.device_hours)
        evidence += f", when {left} of device time are left to the verdict"
    flag = refusal.flag if refusal.flag.startswith("--") else ""
    place, needed, free = place_of(state, batch), refusal.needed, refusal.free
    return Reading("budget", place, needed, free, evidence, fires=True, flag=flag)
