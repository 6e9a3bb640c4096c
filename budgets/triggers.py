"""Every rule that pauses or ends a run, as a pure function of its state.

A rule returns a `Trigger` with what it observed and its limit, or None. `judge` asks them all. The
numbers they compare with are `budgets.terms.Thresholds`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Literal

from budgets.accounts import MS_PER_HOUR, Refusal
from budgets.calibration import forecast
from budgets.events import Status
from budgets.following import FOLLOWING_RULES, objections
from budgets.state import Generation, RunState

Decision = Literal["continue", "pause", "stop", "done"]

RULES = (
    "crash_rate",
    "too_few_healthy",
    "runaway_time",
    "baseline_failed",
    "infrastructure",
    "budget",
    "storage",
    *FOLLOWING_RULES,
)
"""Every rule by name, as the ledger and `--override` know it."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """A rule that fired, with its numbers."""

    rule: str
    generation: int
    decision: Literal["pause", "stop"]
    observed: float
    limit: float
    evidence: str
    overridable: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens next, and why."""

    decision: Decision
    triggers: tuple[Trigger, ...] = ()
    reason: str = ""


def judge(state: RunState) -> Verdict:
    """What the recorded facts allow next. The same ledger always gets the same verdict."""
    if state.concluded is not None:
        return Verdict("done", (), state.concluded.reason)
    triggers = tuple(t for t in _triggers(state) if not _waived(state, t))
    for decision in ("pause", "stop"):
        if fired := tuple(t for t in triggers if t.decision == decision):
            return Verdict(decision, fired, "; ".join(t.evidence for t in fired))
    if state.finished == state.plan.resolved.generations:
        evaluations = state.accounts.evaluations
        return Verdict("done", (), f"all {evaluations} planned evaluations are settled")
    return Verdict("continue")


def _triggers(state: RunState) -> Iterator[Trigger]:
    yield from unfounded(state)
    rules = [unaffordable(state), out_of_budget(state)]
    if (latest := state.latest) is not None:
        if state.plan.phase == "check":  # an end of a range that fails or takes long is a finding
            rules += [baseline_failed(latest)]
        else:
            rules += [crash_rate(state, latest), too_few_healthy(latest)]
            rules += [runaway_time(state, latest)]
        rules += [keeps_getting_lost(state, latest)]
    yield from (trigger for trigger in rules if trigger is not None)


def _waived(state: RunState, trigger: Trigger) -> bool:
    return trigger.overridable and any(
        o.rule == trigger.rule and o.generation == trigger.generation for o in state.overridden
    )


def unfounded(state: RunState) -> list[Trigger]:
    """The run follows one without a Go, or searches knobs that nobody has shown to matter."""
    source = state.plan.source
    return [
        Trigger(objection.rule, 0, "pause", objection.observed, objection.limit, objection.why)
        for objection in (() if source is None else objections(source))
    ]


def crash_rate(state: RunState, generation: Generation) -> Trigger | None:
    """More failed evaluations than the generation may have, counted against all it will have.

    It speaks as soon as the rate can no longer fall below its limit. Attempts lost to the
    infrastructure do not count: they have no final status.
    """
    limits = state.plan.thresholds
    failed, planned = len(generation.failed), len(generation.points) * len(generation.seeds)
    rate = failed / planned
    if rate <= limits.crash_rate_pause or failed < limits.crash_count_pause:
        return None
    causes = sorted({f"{r.status} ({r.cause})" for r in generation.failed})
    evidence = (
        f"{failed} of {planned} evaluations of generation {generation.number} failed "
        f"({rate:.1%}, limit {limits.crash_rate_pause:.0%}): {'; '.join(causes[:3])}"
    )
    return Trigger(
        "crash_rate", generation.number, "pause", rate, limits.crash_rate_pause, evidence
    )


def too_few_healthy(generation: Generation) -> Trigger | None:
    """Fewer healthy candidates than CMA-ES recombines (mu = P // 2): nothing to learn from.

    No override lets such a generation through.
    """
    if not generation.closed:
        return None
    parents = len(generation.points) // 2
    healthy = sum(score is not None for score in generation.scores())
    if healthy >= parents:
        return None
    evidence = (
        f"only {healthy} of {len(generation.points)} candidates of generation "
        f"{generation.number} are healthy, the search needs {parents}"
    )
    return Trigger(
        "too_few_healthy", generation.number, "pause", healthy, parents, evidence, overridable=False
    )


def runaway_time(state: RunState, generation: Generation) -> Trigger | None:
    """The generation's median evaluation takes more than twice the calibrated one.

    Judged on CPU seconds where the devices are CPUs: wall clock there measures the neighbours.
    """
    calibration, limits = state.plan.calibration, state.plan.thresholds
    if calibration is None or not generation.closed:
        return None
    healthy = [r for r in generation.results() if r.status is Status.OK]
    on_cpu = state.plan.devices.kind == "cpu" and calibration.median_cpu_seconds is not None
    expected = calibration.median_cpu_seconds if on_cpu else calibration.median_seconds
    if not healthy or expected is None or expected < limits.time_drift_floor_seconds:
        return None
    observed = median(r.cpu_seconds if on_cpu else r.seconds for r in healthy)
    drift = observed / expected
    if drift <= limits.time_drift_pause:
        return None
    evidence = (
        f"the median evaluation of generation {generation.number} took {observed:.1f} "
        f"{'CPU ' if on_cpu else ''}seconds, {drift:.1f} times the calibrated {expected:.1f} "
        f"(limit {limits.time_drift_pause:g})"
    )
    return Trigger(
        "runaway_time", generation.number, "pause", drift, limits.time_drift_pause, evidence
    )


def baseline_failed(generation: Generation) -> Trigger | None:
    """A check's baseline, candidate 0, failed on a seed: there is nothing to compare with there.

    No override: the same evaluation would fail again, and it is paid for.
    """
    failed = [r for r in generation.failed if r.candidate == 0]
    if not failed:
        return None
    evidence = (
        f"the baseline failed on seed {failed[0].seed}: {failed[0].status} ({failed[0].cause}); "
        "nothing can be compared with it. Mend what failed, then check on other seeds (--eval-seed)"
    )
    number = generation.number
    return Trigger("baseline_failed", number, "pause", len(failed), 0, evidence, overridable=False)


def keeps_getting_lost(state: RunState, generation: Generation) -> Trigger | None:
    """The infrastructure lost one evaluation too often since the run was last opened."""
    limit, session = state.plan.thresholds.attempts_per_session, len(state.opened) - 1
    for (candidate, seed), tries in generation.tries.items():
        lost = [
            t.settled
            for t in tries
            if t.session == session and t.settled and t.settled.status is Status.LOST
        ]
        if len(lost) >= limit and generation.result(candidate, seed) is None:
            evidence = (
                f"candidate {candidate}, seed {seed} of generation {generation.number} was lost "
                f"{len(lost)} times ({lost[-1].cause}); resuming tries again"
            )
            number = generation.number
            return Trigger(
                "infrastructure", number, "pause", len(lost), limit, evidence, overridable=False
            )
    return None


def unaffordable(state: RunState) -> Trigger | None:
    """The next generation, if there is one, is not expected to fit into what a cap leaves free.

    Half a generation teaches the search nothing, so it is not begun. Its last attempt must still
    find its whole reservation free, however short it will be.
    """
    plan, accounts = state.plan, state.accounts
    if state.current is not None or plan.calibration is None:
        return None
    if state.finished == plan.resolved.generations:
        return None
    one = plan.resolved.model_copy(update={"generations": 1})
    needed = forecast(one, plan.calibration.median_seconds, plan.devices.count)
    last = max(0.0, plan.limits.reserve_ms / MS_PER_HOUR - needed.eval_seconds / 3600)
    device_hours, hours = needed.device_hours + last, needed.barrier_hours + last
    cost = device_hours * plan.price_per_device_hour
    checks = (
        ("device-hours", device_hours, accounts.device_hours_free, "--max-device-hours"),
        ("hours", hours, accounts.hours_free, "--max-hours"),
        ("of money", cost, accounts.cost_free, "--max-cost"),
        ("hours", hours, accounts.window_hours_free, "--window"),
    )
    for unit, need, free, flag in checks:
        if free is not None and need > free:
            evidence = (
                f"generation {state.asked} is expected to need {need:.4g} {unit} "
                f"(its last attempt's whole limit included), {max(free, 0.0):.4g} are free ({flag})"
            )
            return Trigger("budget", state.asked, "stop", need, free, evidence, overridable=False)
    return None


def out_of_budget(state: RunState) -> Trigger | None:
    """The generation has evaluations left, and no cap leaves room for another attempt."""
    if state.current is None or state.accounts.holds or not state.current.owed():
        return None
    refusal = state.accounts.refusal(state.plan.limits.reserve_ms)
    return None if refusal is None else refused(state.current, refusal)


def disk_full(generation: int, why: str) -> Trigger:
    """The pause that a disk without room for further results amounts to."""
    return Trigger("storage", generation, "pause", 0, 0, why, overridable=False)


def refused(generation: Generation, refusal: Refusal) -> Trigger:
    """The stop that a refused reservation amounts to."""
    evidence = f"generation {generation.number} cannot be finished: {refusal}"
    return Trigger(
        "budget",
        generation.number,
        "stop",
        refusal.needed,
        refusal.free,
        evidence,
        overridable=False,
    )
