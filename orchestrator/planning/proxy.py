"""The terms on which a shorter evaluation may stand in for the full one."""

from statistics import median

from budgets.plan import Calibration, ProxyTerms, Varied
from budgets.proxy.certificate import LEAST_CANDIDATES
from objectives.api import Objective


def proxy_terms(
    objective: Objective, fraction: float, calibration: Calibration | None
) -> ProxyTerms:
    """An evaluation of `fraction` of the objective's FLOPs, with a schedule of its own.

    Never the beginning of a full one: under a schedule that cools down, and that a search may
    move, what a training run scores on its way says little of a run that ends there. Raises
    ValueError on a fraction that is none, and where the objective cannot be scaled.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"--fraction: expected a number between 0 and 1, got {fraction:g}")
    shorter = objective.rung(fraction)
    if shorter is None:
        raise ValueError(f"{objective.spec.name} has no shorter evaluation: no proxy is possible")
    length = _length(shorter.length, calibration)
    return ProxyTerms(varied=Varied(label=shorter.label, settings=shorter.settings, length=length))


def _length(shorter: float, calibration: Calibration | None) -> float:
    """Of the whole evaluation: only its training shrinks, not its start-up and its scoring."""
    samples = () if calibration is None else calibration.samples
    shares = [min(1.0, s.train_seconds / s.seconds) for s in samples if s.seconds > 0]
    share = median(shares) if shares else 1.0
    return round(1 - share + share * shorter, 4)


def check_population(candidates: int) -> None:
    """Raises ValueError where too few are compared to show that both lengths agree."""
    if candidates < LEAST_CANDIDATES:
        raise ValueError(
            f"a proxy is certified on {LEAST_CANDIDATES} candidates or more, got {candidates}"
        )
