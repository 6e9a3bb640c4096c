"""What a run did cost, of what it was allowed, in the currencies that count."""

from collections.abc import Iterator

from budgets.accounts import MS_PER_HOUR
from budgets.report.model import Balance
from budgets.state import RunState
from budgets.words import about, percent
from orchestrator.report.answers.asked import Asked

WORTH_SAYING = 0.1
"""Of all device time: a calibration that took less is no news."""


def cost(asked: Asked) -> str:
    """Evaluations, the time they took, money; what of each is left where it has a cap; failures."""
    return f"{'; '.join(_parts(asked))}.{_before(asked.state)}"


def _parts(asked: Asked) -> Iterator[str]:
    balances = {balance.currency: balance for balance in asked.report.balances}
    own, beside = balances["evaluations"], balances.get("evaluations apart")
    yield _evaluations(asked, own, beside)
    clock = balances["hours open"]
    yield f"{_time(clock)} of wall clock{_left(clock)}"
    device = balances["device-hours"]
    yield f"{_time(device)} of device time on {asked.report.devices}{_left(device)}"
    money = balances["cost"]
    if money.counts:
        yield f"{money.spent:.4g} {'' if money.cap is None else f'of {money.cap:.4g} '}in money"
    yield from _failed(asked)


def _evaluations(asked: Asked, own: Balance, beside: Balance | None) -> str:
    """`165 evaluations (120 of the search, 45 to compare on fresh seeds)`."""
    state, is_over = asked.state, asked.report.decision == "done"
    flying = own.reserved + (0 if beside is None else beside.reserved)
    more = f", and {flying:.0f} in flight" if flying else ""
    if beside is None:
        return f"{_of_all(own, state, is_over=is_over)}{more}"
    count = f"{own.spent + beside.spent:.0f} evaluations"
    search = f"{own.spent:.0f} of the search"
    if own.spent != state.plan.resolved.evaluations:
        search = f"{own.spent:.0f} of {state.plan.resolved.evaluations} of the search"
    return f"{count} ({search}, {_beside(asked, beside, is_over=is_over)}){more}"


def _of_all(own: Balance, state: RunState, *, is_over: bool) -> str:
    """`16 evaluations`, `34 of 120 evaluations`, `56 evaluations of the 60 allowed`."""
    planned, cap = state.plan.resolved.evaluations, own.cap or own.spent
    if own.spent < planned:
        return f"{own.spent:.0f} of {planned} evaluations"
    allowed = f" of the {cap:.0f} allowed" if is_over and own.spent < cap else ""
    return f"{own.spent:.0f} evaluations{allowed}"


def _beside(asked: Asked, own: Balance, *, is_over: bool) -> str:
    """`45 to compare on fresh seeds`, or why they are fewer than planned."""
    what = "to compare on fresh seeds" if asked.searches else "beside them"
    if asked.state.plan.proxy is not None:
        what = "in full beside short ones, and to compare on fresh seeds"
    missing = (own.cap or own.spent) - own.spent
    if not missing:
        return f"{own.spent:.0f} {what}"
    if not is_over:
        return f"{own.spent:.0f} of {own.cap:.0f} {what}"
    confirmation = asked.state.plan.confirmation
    rung = None if confirmation is None else confirmation.rung
    if rung is not None and missing == 2 * rung.seeds and asked.state.panel("rung") is None:
        return (
            f"{own.spent:.0f} {what}; {missing:.0f} more with {rung.varied.label} only after a Go"
        )
    return f"{own.spent:.0f} of at most {own.cap:.0f} {what}"


def _time(balance: Balance) -> str:
    spent = about(3600 * balance.spent)
    if balance.cap is None:
        return spent
    return f"{spent} of {about(3600 * balance.cap)}"


def _left(balance: Balance) -> str:
    if balance.cap is None or balance.free is None:
        return ""
    return f" ({about(3600 * balance.free)} left)"


def _failed(asked: Asked) -> Iterator[str]:
    """How many evaluations gave no score, and how many attempts were lost on the way."""
    if not asked.settled:
        return
    yield f"{asked.failed or 'none'} failed"
    if lost := asked.report.lost_attempts:
        yield "1 attempt was lost" if lost == 1 else f"{lost} attempts were lost"


def _before(state: RunState) -> str:
    """What was paid before the run began and counts, where that is a good part of it."""
    calibration, spent = state.planned.calibration, state.accounts.device_ms
    if calibration is None or calibration.charged_ms < max(1000, WORTH_SAYING * spent):
        return ""
    share = percent(round(calibration.charged_ms / spent, 2))
    paid = about(3600 * calibration.charged_ms / MS_PER_HOUR)
    return f" {paid} of the device time ({share}) went to measure the baseline first."
