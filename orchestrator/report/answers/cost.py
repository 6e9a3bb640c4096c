"""What a run did cost, of what it was allowed, in the currencies that count."""

from collections.abc import Iterator

from budgets.accounts import MS_PER_HOUR
from budgets.markdown import duration
from budgets.report import Balance, BudgetReport
from budgets.state import RunState
from budgets.statistics.comparison import percent


def cost(state: RunState, report: BudgetReport) -> str:
    """Evaluations, device time, time open and money, each of its cap; on which devices."""
    said = "; ".join(_parts(report))
    of_it = _wasted(report)
    return f"{said}. On {report.devices}.{of_it}{_before(state)}"


def _parts(report: BudgetReport) -> Iterator[str]:
    balances = {balance.currency: balance for balance in report.balances}
    own, apart = balances["evaluations"], balances.get("evaluations apart")
    yield f"{own.spent:.0f} of {own.cap or own.spent:.0f} evaluations"
    if apart is not None and apart.cap:
        yield f"{apart.spent:.0f} of {apart.cap:.0f} more to compare on fresh seeds"
    yield f"{_hours(balances['device-hours'])} of device time"
    yield f"{_hours(balances['hours open'])} open"
    money = balances["cost"]
    if money.counts:
        cap = "no cap" if money.cap is None else f"of {money.cap:.4g}"
        yield f"{money.spent:.4g} {cap} in money"
    if any(balance.reserved for balance in report.balances):
        yield f"and {own.reserved + (apart.reserved if apart else 0):.0f} in flight"


def _hours(balance: Balance) -> str:
    spent = time_in_words(3600 * balance.spent)
    return f"{spent} (no cap)" if balance.cap is None else f"{spent} of {_cap(balance.cap)}"


def _cap(hours: float) -> str:
    return time_in_words(3600 * hours)


def time_in_words(seconds: float) -> str:
    """`6.4 s`, `41 s`, `3 min 20 s`: a tenth where that is something."""
    return f"{seconds:.1f} s" if 0 < seconds < 10 else duration(seconds)


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
