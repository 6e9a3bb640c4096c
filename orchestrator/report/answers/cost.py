"""What a run did cost, of what it was allowed, in the currencies that count."""

from collections.abc import Iterator

from budgets.accounts import MS_PER_HOUR
from budgets.report import Balance, BudgetReport
from budgets.state import RunState
from budgets.statistics.comparison import percent
from orchestrator.report.answers.asked import Asked
from orchestrator.report.numbers import time_in_words


def cost(asked: Asked) -> str:
    """Evaluations, device time, time open and money, each of its cap; on which devices."""
    state, report = asked.state, asked.report
    said = "; ".join(_parts(report))
    return f"{said}. On {report.devices}.{_wasted(report)}{_before(state)}"


def _parts(report: BudgetReport) -> Iterator[str]:
    balances = {balance.currency: balance for balance in report.balances}
    own, apart = balances["evaluations"], balances.get("evaluations apart")
    beside = ""
    if apart is not None:
        beside = f", and {apart.spent:.0f} of {apart.cap or 0:.0f} to compare on fresh seeds"
    yield f"{own.spent:.0f} of {own.cap or own.spent:.0f} evaluations{beside}"
    hours = (balances["device-hours"], balances["hours open"])
    yield f"{_hours(hours[0])} of device time"
    yield f"{_hours(hours[1])} open"
    if all(balance.cap is None for balance in hours):
        yield "no cap on time"
    money = balances["cost"]
    if money.counts:
        yield f"{money.spent:.4g} {'' if money.cap is None else f'of {money.cap:.4g} '}in money"
    if flying := own.reserved + (0 if apart is None else apart.reserved):
        yield f"{flying:.0f} in flight"


def _hours(balance: Balance) -> str:
    spent = time_in_words(3600 * balance.spent)
    return spent if balance.cap is None else f"{spent} of {time_in_words(3600 * balance.cap)}"


def _wasted(report: BudgetReport) -> str:
    spent = next(b.spent for b in report.balances if b.currency == "device-hours")
    if not report.wasted_hours or not spent:
        return ""
    share = percent(round(report.wasted_hours / spent, 3))
    return f" {share} of the device time gave no score."


def _before(state: RunState) -> str:
    """What was paid before the run began, and counts."""
    calibration = state.planned.calibration
    if calibration is None or not calibration.charged_ms:
        return ""
    paid = time_in_words(3600 * calibration.charged_ms / MS_PER_HOUR)
    return f" The calibration's {paid} of device time are in it."
