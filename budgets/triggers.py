"""Every rule that pauses or ends a run, as a pure function of its state.

A rule returns a `Trigger` with what it observed and its limit, or None. `judge` asks them all. The
numbers they compare with are `budgets.terms.Thresholds`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Literal

from budgets.accounts import MS_PER_HOUR, Accounts, Refusal
from budgets.calibration import forecast
from budgets.course import Needs, at_work, awaited, next_step, search_is_over, still_apart
from budgets.events import Status
from budgets.state import Batch, Generation, RunState

Decision = Literal["continue", "pause", "stop", "done"]

RULES = (
    "crash_rate",
    "too_few_healthy",
    "runaway_time",
    "baseline_failed",
    "infrastructure",
    "budget",
    "storage",
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
    if next_step(state) != "over":
        return Verdict("continue")
    if state.decided is not None:
        return Verdict("done", (), state.decided.evidence)
    evaluations = state.accounts.evaluations
    return Verdict("done", (), f"all {evaluations} planned evaluations are settled")


def _triggers(state: RunState) -> Iterator[Trigger]:
    if state.decided is not None:
        return
    rules = [unaffordable(state), out_of_budget(state)]
    rules += [keeps_getting_lost(state, batch) for batch in at_work(state)]
    if (latest := state.latest) is not None and not search_is_over(state):
        if state.plan.phase == "check":  # an end of a range that fails or takes long is a finding
            rules += [baseline_failed(latest)]
        else:
            rules += [crash_rate(state, latest), too_few_healthy(latest)]
            rules += [runaway_time(state, latest)]
    yield from (trigger for trigger in rules if trigger is not None)


def _waived(state: RunState, trigger: Trigger) -> bool:
    return trigger.overridable and any(
        o.rule == trigger.rule and o.generation == trigger.generation for o in state.overridden
    )


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


def keeps_getting_lost(state: RunState, batch: Batch) -> Trigger | None:
    """The infrastructure lost one evaluation too often since the run was last opened."""
    limit, session = state.plan.thresholds.attempts_per_session, len(state.opened) - 1
    for (candidate, seed), tries in batch.tries.items():
        lost = [
            t.settled
            for t in tries
            if t.session == session and t.settled and t.settled.status is Status.LOST
        ]
        if len(lost) >= limit and batch.result(candidate, seed) is None:
            evidence = (
                f"candidate {candidate}, seed {seed} of {name_of(batch)} was lost "
                f"{len(lost)} times ({lost[-1].cause}); resuming tries again"
            )
            return Trigger(
                "infrastructure",
                place_of(state, batch),
                "pause",
                len(lost),
                limit,
                evidence,
                overridable=False,
            )
    return None


def unaffordable(state: RunState) -> Trigger | None:
    """The next generation, if there is one, is not expected to fit into what a cap leaves free.

    Half a generation teaches the search nothing, so it is not begun. Its last attempt must still
    find its whole reservation free, however short it will be, beside what the verdict will take.
    """
    plan, accounts = state.plan, state.accounts
    if state.current is not None or plan.calibration is None or search_is_over(state):
        return None
    one = plan.resolved.model_copy(update={"generations": 1})
    needed = forecast(one, plan.calibration.median_seconds, plan.devices.count)
    last = max(0.0, plan.limits.reserve_ms / MS_PER_HOUR - needed.eval_seconds / 3600)
    apart = still_apart(state)
    device_hours = needed.device_hours + last + apart.device_hours
    hours = needed.barrier_hours + last + apart.hours
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
                f"({_included(apart)}), {max(free, 0.0):.4g} are free ({flag})"
            )
            return Trigger("budget", state.asked, "stop", need, free, evidence, overridable=False)
    return None


def _included(apart: Needs) -> str:
    if not apart.evaluations:
        return "its last attempt's whole limit included"
    return f"with the {apart.evaluations} evaluations that the verdict will take"


def out_of_budget(state: RunState) -> Trigger | None:
    """What the run waits for has evaluations left, and no cap leaves room for another attempt."""
    owed = next((b for b in awaited(state) if b.owed()), None)
    if owed is None or state.accounts.holds:
        return None
    refusal = refusal_of(state, owed, owed.owed()[0][0])
    return None if refusal is None else refused(state, owed, refusal)


def refusal_of(state: RunState, batch: Batch, candidate: int) -> Refusal | None:
    """Why an attempt at the candidate may not start now. The search leaves its due to the rest."""
    return refusal_from(state.accounts, state, batch, candidate)


def refusal_from(
    accounts: Accounts, state: RunState, batch: Batch, candidate: int
) -> Refusal | None:
    """The same, by other accounts than the state's: those of a moment later."""
    reserve_ms = state.plan.limits.stretched(batch.length(candidate)).reserve_ms
    if batch.panel is not None or state.plan.search is None:
        return accounts.refusal(reserve_ms, apart=batch.panel is not None)
    apart = still_apart(state)
    return accounts.refusal(reserve_ms, aside=(apart.device_hours, apart.hours))


def place_of(state: RunState, batch: Batch) -> int:
    """Where a rule about the batch speaks: its generation, or that which would come next."""
    return batch.number if batch.panel is None else state.asked


def name_of(batch: Batch) -> str:
    """As people read it."""
    return f"generation {batch.number}" if batch.panel is None else f"the {batch.panel} panel"


def disk_full(generation: int, why: str) -> Trigger:
    """The pause that a disk without room for further results amounts to."""
    return Trigger("storage", generation, "pause", 0, 0, why, overridable=False)


def refused(state: RunState, batch: Batch, refusal: Refusal) -> Trigger:
    """The stop that a refused reservation amounts to."""
    evidence = f"{name_of(batch)} cannot be finished: {refusal}"
    place = place_of(state, batch)
    return Trigger(
        "budget", place, "stop", refusal.needed, refusal.free, evidence, overridable=False
    )
