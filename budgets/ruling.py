"""What the rules mean for a run: go on, pause, stop or done; and what the caps still admit."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from budgets import rules
from budgets.accounts import MS_PER_HOUR, Accounts, Refusal
from budgets.course import (
    ENDS_THE_SEARCH,
    at_work,
    awaited,
    expected,
    next_step,
    search_is_over,
    still_for_the_verdict,
)
from budgets.formatting import against, precise_duration
from budgets.rules import Reading, name_of, place_of
from budgets.state import Batch, RunState

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
    if next_step(state) != "over":
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
    return state.plan.confirmation is not None and bool(state.told) and not search_is_over(state)


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
        return read if plan.proxy is not None else [*read, rules.baseline_failed(latest)]
    read += [rules.crash_rate(state, latest), rules.sustained_nan(state, latest)]
    read += [rules.too_few_healthy(latest), rules.runaway_time(state, latest)]
    return read if plan.search is None else [*read, rules.patience(state)]


def _of_the_run(state: RunState) -> list[Reading]:
    """Of the rules that apply also when the search is over."""
    source = state.plan.source
    founded = () if source is None else rules.follows_a_go(source)
    lost = (rules.infrastructure(state, batch) for batch in at_work(state))
    return [*founded, rules.setup_failed(state), budget(state), *lost]


# The budget


def budget(state: RunState) -> Reading:
    """What comes next does not fit under a cap: a generation, or an evaluation of it."""
    why = "what comes next is expected to fit under every cap"
    fits = Reading("budget", state.asked, None, None, why)
    return unaffordable(state) or _out_of_budget(state) or fits


def unaffordable(state: RunState) -> Reading | None:
    """The next generation, if there is one, is not expected to fit into what a cap leaves free.

    Half a generation teaches the search nothing, so it is not begun. Its last attempt must still
    find its whole reservation free beside what the verdict will take.
    """
    plan, accounts, calibration = state.plan, state.accounts, state.plan.calibration
    if state.current is not None or calibration is None or search_is_over(state):
        return None
    apart = still_for_the_verdict(state)
    last = max(0.0, plan.limits.reserve_ms / MS_PER_HOUR - calibration.median_seconds / 3600)
    device_hours, hours = apart.device_hours + last, apart.hours + last
    count = plan.resolved.per_generation
    for length in (1.0,) if plan.proxy is None else (1.0, plan.proxy.varied.length):
        own = expected(count, count * length, calibration, plan.devices.count)
        device_hours, hours = device_hours + own.device_hours, hours + own.hours
    checks = (
        ("device-hours", device_hours, accounts.device_hours_free, "--max-device-hours"),
        ("hours", hours, accounts.hours_free, "--max-hours"),
        ("of money", device_hours * plan.price_per_device_hour, accounts.cost_free, "--max-cost"),
        ("hours", hours, accounts.window_hours_free, "--window"),
    )
    for unit, need, free, flag in checks:
        if free is not None and need > free:
            needs, left = against(need, max(free, 0.0), unit)
            verdict = f" and the verdict's {apart.evaluations}" * (apart.evaluations > 0)
            evidence = (
                f"generation {state.asked} is expected to need {needs} (its {count} "
                f"evaluations{verdict}, the last with its whole limit), {left} are free ({flag})"
            )
            return Reading("budget", state.asked, need, free, evidence, fires=True, flag=flag)
    return None


def _out_of_budget(state: RunState) -> Reading | None:
    """What the run waits for has evaluations left, and no cap leaves room for another attempt."""
    owed = next((batch for batch in awaited(state) if batch.owed()), None)
    if owed is None or state.accounts.holds:
        return None
    refusal = refusal_of(state, owed, owed.owed()[0][0])
    return None if refusal is None else refused(state, owed, refusal)


def refusal_of(
    state: RunState, batch: Batch, candidate: int, accounts: Accounts | None = None
) -> Refusal | None:
    """Why an attempt at the candidate may not start; `accounts`: by those of a moment later.

    The search leaves their due to the evaluations beside it.
    """
    accounts = accounts or state.accounts
    reserve_ms = state.plan.limits.stretched(batch.length(candidate)).reserve_ms
    if batch.panel is not None or state.plan.search is None:
        return accounts.refusal(reserve_ms, apart=batch.panel is not None)
    others = still_for_the_verdict(state)
    return accounts.refusal(reserve_ms, apart=False, aside=(others.device_hours, others.hours))


def refused(state: RunState, batch: Batch, refusal: Refusal) -> Reading:
    """The stop that a refused reservation amounts to."""
    evidence = f"{name_of(batch)} cannot be finished: {refusal}"
    if batch.panel is None and (verdict := still_for_the_verdict(state)).evaluations:
        left = precise_duration(3600 * verdict.device_hours)
        evidence += f", when {left} of device time are left to the verdict"
    flag = refusal.flag if refusal.flag.startswith("--") else ""
    place, needed, free = place_of(state, batch), refusal.needed, refusal.free
    return Reading("budget", place, needed, free, evidence, fires=True, flag=flag)
