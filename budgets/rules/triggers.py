"""Every rule that pauses or ends a run, as a pure function of its state.

A rule returns a `Reading` with what it observes, its limit, and whether it fires. `judge` asks them
all, `ruling_of` says what that means for the run. `budgets.rules.table` has the table,
`budgets.terms.Thresholds` the numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from budgets import following
from budgets.accounts import MS_PER_HOUR, Accounts, Refusal
from budgets.course import (
    ENDS_THE_SEARCH,
    Needs,
    at_work,
    awaited,
    expected,
    next_step,
    pairing,
    search_is_over,
    still_apart,
    still_for_the_verdict,
)
from budgets.proxy.certificate import fidelity_of_next
from budgets.rules.failures import (
    baseline_failed,
    crash_rate,
    keeps_getting_lost,
    runaway_time,
    setup_failed,
    too_few_healthy,
)
from budgets.rules.nan import sustained_nan
from budgets.rules.progress import patience
from budgets.rules.table import BUDGET, HOLDING_UP, STORAGE, Reading, name_of, place_of
from budgets.state import Batch, RunState
from budgets.terms import Calibration
from budgets.words import against, precise_duration

Decision = Literal["continue", "pause", "stop", "done"]

RULES = tuple(rule.name for rule in HOLDING_UP)
"""Every rule by name, as the ledger and `--override` know it."""


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
    triggers = tuple(t for t in _triggers(state) if not _waived(state, t))
    for decision in ("pause", "stop"):
        if fired := tuple(t for t in triggers if t.decision == decision):
            return Ruling(decision, fired, "; ".join(t.evidence for t in fired))
    if next_step(state) != "over":
        return Ruling("continue")
    if state.decided is not None:
        return Ruling("done", (), state.decided.evidence)
    evaluations = state.accounts.evaluations
    return Ruling("done", (), f"all {evaluations} planned evaluations are settled")


def held_up_by(state: RunState, rule: str) -> tuple[Reading, ...]:
    """What that rule sees that holds the run up, whatever else does."""
    if state.concluded is not None:
        return ()
    return tuple(t for t in _triggers(state) if t.rule == rule and not _waived(state, t))


def ruling_of(state: RunState) -> Ruling:
    """How the run stands: what only ends its search does not end it."""
    ruling = judge(state)
    goes_on = only_ends_the_search(state, ruling)
    return Ruling("continue", (), ruling.reason) if goes_on else ruling


def only_ends_the_search(state: RunState, ruling: Ruling) -> bool:
    """Whether the run goes on after this stop: the search has found something to compare."""
    rules = {trigger.rule for trigger in ruling.triggers}
    if ruling.decision != "stop" or not rules <= set(ENDS_THE_SEARCH):
        return False
    return state.plan.confirmation is not None and bool(state.told) and not search_is_over(state)


def _triggers(state: RunState) -> Iterator[Reading]:
    if state.decided is not None:
        return
    read = _of_the_run(state) if search_is_over(state) else readings(state)
    yield from (reading for reading in read if reading.fires)


def readings(state: RunState) -> list[Reading]:
    """What each rule observes in the run and its latest generation, whether it fires or not.

    None of `storage`: no record says how full the disk is.
    """
    read, latest = _of_the_run(state), state.latest
    if latest is None:
        return read
    if state.plan.campaign is not None:  # a condition that fails is a finding
        return read
    if state.plan.phase == "check":  # an end of a range that fails or takes long is a finding
        return read if state.plan.proxy is not None else [*read, baseline_failed(latest)]
    read += [crash_rate(state, latest), sustained_nan(state, latest)]
    read += [too_few_healthy(latest), runaway_time(state, latest)]
    return read if state.plan.search is None else [*read, patience(state)]


def _of_the_run(state: RunState) -> list[Reading]:
    """Of the rules that apply also when the search is over."""
    source = state.plan.source
    founded = () if source is None else following.readings(source)
    lost = (keeps_getting_lost(state, batch) for batch in at_work(state))
    return [*founded, setup_failed(state), budget(state), *lost]


def _waived(state: RunState, trigger: Reading) -> bool:
    return trigger.overridable and any(
        o.rule == trigger.rule and o.generation == trigger.generation for o in state.overridden
    )


def budget(state: RunState) -> Reading:
    """What comes next does not fit under a cap: a generation, or an evaluation of it."""
    why = "what comes next is expected to fit under every cap"
    fits = BUDGET.reads(state.asked, None, None, why, fires=False)
    return unaffordable(state) or out_of_budget(state) or fits


def unaffordable(state: RunState) -> Reading | None:
    """The next generation, if there is one, is not expected to fit into what a cap leaves free.

    Half a generation teaches the search nothing, so it is not begun. Its last attempt must still
    find its whole reservation free, however short it will be, beside what the verdict will take.
    """
    plan, accounts = state.plan, state.accounts
    if state.current is not None or plan.calibration is None or search_is_over(state):
        return None
    if pairing(state) is not None:  # it decides how long the next one's evaluations are
        return None
    needed, apart = _next_generation(state, plan.calibration), still_apart(state)
    last = max(0.0, plan.limits.reserve_ms / MS_PER_HOUR - plan.calibration.median_seconds / 3600)
    device_hours = needed.device_hours + last + apart.device_hours
    hours = needed.hours + last + apart.hours
    cost = device_hours * plan.price_per_device_hour
    checks = (
        ("device-hours", device_hours, accounts.device_hours_free, "--max-device-hours"),
        ("hours", hours, accounts.hours_free, "--max-hours"),
        ("of money", cost, accounts.cost_free, "--max-cost"),
        ("hours", hours, accounts.window_hours_free, "--window"),
    )
    for unit, need, free, flag in checks:
        if free is not None and need > free:
            needs, left = against(need, max(free, 0.0), unit)
            evidence = (
                f"generation {state.asked} is expected to need {needs} ({_included(apart)}), "
                f"{left} are free ({flag})"
            )
            return replace(BUDGET.reads(state.asked, need, free, evidence, fires=True), flag=flag)
    return None


def _next_generation(state: RunState, calibration: Calibration) -> Needs:
    """What it is expected to take, with its short evaluations if it is to have any."""
    plan, proxy, next_one = state.plan, state.plan.proxy, fidelity_of_next(state)
    count, devices = plan.resolved.per_generation, plan.devices.count
    short = count if proxy is None else count * proxy.varied.length
    own = expected(count, short if next_one.short else count, calibration, devices)
    if not next_one.paired:
        return own
    beside = expected(count, short, calibration, devices)
    return Needs(count, own.device_hours + beside.device_hours, own.hours + beside.hours)


def _included(apart: Needs) -> str:
    if not apart.evaluations:
        return "its last attempt's whole limit included"
    return (
        f"with the {apart.evaluations} evaluations that the verdict will take, and the last "
        "attempts' whole limits"
    )


def out_of_budget(state: RunState) -> Reading | None:
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
    is_apart, is_proxy = batch.panel is not None, batch.panel == "proxy"
    if (is_apart and not is_proxy) or state.plan.search is None:
        return accounts.refusal(reserve_ms, apart=is_apart)
    others = still_for_the_verdict(state) if is_proxy else still_apart(state)
    aside = (others.device_hours, others.hours)
    return accounts.refusal(reserve_ms, apart=is_apart, aside=aside)


def disk_full(generation: int, why: str) -> Reading:
    """The pause that a disk without room for further results amounts to."""
    return STORAGE.reads(generation, 0, 0, why, fires=True)


def refused(state: RunState, batch: Batch, refusal: Refusal) -> Reading:
    """The stop that a refused reservation amounts to."""
    evidence, place = f"{name_of(batch)} cannot be finished: {refusal}", place_of(state, batch)
    if batch.panel is None and (verdict := still_for_the_verdict(state)).evaluations:
        left = precise_duration(3600 * verdict.device_hours)
        evidence += f", when {left} of device time are left to the verdict"
    found = BUDGET.reads(place, refusal.needed, refusal.free, evidence, fires=True)
    return replace(found, flag=refusal.flag if refusal.flag.startswith("--") else "")
