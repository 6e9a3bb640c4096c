"""What a check of a shorter evaluation has found."""

from budgets.plan import Frozen
from budgets.proxy.certificate import Certificate, certificate
from budgets.state import RunState


class ProxyReport(Frozen):
    """How the two lengths compare."""

    label: str  # of the shorter evaluation
    asked: float  # of the lower bound of Kendall's tau-b
    certificate: Certificate | None  # None: not all evaluations of both lengths have ended
    holds: bool  # short evaluations may stand in for full ones


def proxy_report(state: RunState) -> ProxyReport | None:
    """None of a plan without a proxy."""
    terms, found = state.plan.proxy, certificate(state)
    if terms is None:
        return None
    return ProxyReport(
        label=terms.varied.label,
        asked=terms.agreement,
        certificate=found,
        holds=found is not None and found.holds,
    )
