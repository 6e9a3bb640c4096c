"""What a run did cost, of what it was allowed, in the currencies that count."""

from collections.abc import Iterator

from budgets.accounts import MS_PER_HOUR
from budgets.report import Balance
from budgets.state import RunState
from budgets.statistics.comparison import percent
from orchestrator.report.answers.asked import Asked
from orchestrator.report.numbers import about

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
    yield f"{_time(clock)} on the clock{_left(clock)}"
    device = balances["device-hours"]
    yield f"{_time(device)} of device time on {asked.report.devices}{_left(device)}"
    money = balances["cost"]
    if money.counts:
        yield f"{money.spent:.4g} {'' if money.cap is None else f'of {money.cap:.4g} '}in money"
    yield from _failed(asked)


def _evaluations(asked: Asked, own: Balance, beside: Balance | None) -> str:
    """`165 evaluations (120 of the search, 45 to compare on fresh seeds)`."""
    is_over = asked.report.decision == "done"
    flying = own.reserved + (0 if beside is None else beside.reserved)
    more = f", and {flying:.0f} in flight" if flying else ""
    if beside is None:
        return f"{_of(own, asked.state, is_over=is_over)} evaluations{more}"
    what = "to compare on fresh seeds" if asked.searches else "beside them"
    if asked.state.plan.proxy is not None:
        what = "in full beside short ones, and to compare on fresh seeds"
    most = beside.cap or 0
    count = f"{beside.spent:.0f}"
    if beside.spent != most:
        count += f" of at most {most:.0f}" if is_over else f" of {most:.0f}"
    search = f"{_of(own, asked.state, is_over=is_over)} of the search"
    return f"{own.spent + beside.spent:.0f} evaluations ({search}, {count} {what}){more}"


def _of(own: Balance, state: RunState, *, is_over: bool) -> str:
    """`120`, `34 of 120`; over with less than was allowed: `56 of the 60 allowed`."""
    planned = state.plan.resolved.evaluations
    if own.spent == (own.cap or planned):
        return f"{own.spent:.0f}"
    if is_over and own.spent == planned:
        return f"{own.spent:.0f} of the {own.cap:.0f} allowed"
    return f"{own.spent:.0f} of {planned:.0f}"


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
        yield f"{lost} attempt{'s' * (lost > 1)} cost something and gave no result"


def _before(state: RunState) -> str:
    """What was paid before the run began and counts, where that is a good part of it."""
    calibration, spent = state.planned.calibration, state.accounts.device_ms
    if calibration is None or not spent or calibration.charged_ms < WORTH_SAYING * spent:
        return ""
    if calibration.charged_ms == 0:
        return ""
    share = percent(round(calibration.charged_ms / spent, 2))
    paid = about(3600 * calibration.charged_ms / MS_PER_HOUR)
    return f" {paid[:1].upper()}{paid[1:]} of the device time ({share}) went to measure the baseline first."
