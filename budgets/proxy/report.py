"""What became of a shorter evaluation that was to stand in for the full one."""

from collections.abc import Iterable
from statistics import median

from budgets.frozen import Frozen
from budgets.proxy.certificate import Certificate, certificate, seconds, why_over
from budgets.state import Batch, RunState


class Comparison(Frozen):
    """A generation that was evaluated at both lengths, and what followed."""

    certificate: Certificate
    holds: bool  # short evaluations may stand in for full ones
    short: tuple[int, ...]  # generations that were evaluated short because of it
    over: str | None  # why no further one was; None while one may be, or where it never held


class ProxyReport(Frozen):
    """Where a plan's proxy stands."""

    label: str  # of the shorter evaluation
    asked: float  # of the lower bound of Kendall's tau-b
    is_check: bool  # nothing is searched: both lengths are compared, once
    comparisons: tuple[Comparison, ...]
    short: tuple[int, ...]  # generations
    comparing_seconds: float  # of devices, spent on short evaluations beside full ones
    saved_seconds: float | None  # of devices, against the same candidates in full; net of those


def proxy_report(state: RunState) -> ProxyReport | None:
    """None of a plan without a proxy."""
    plan, terms = state.plan, state.plan.proxy
    if terms is None:
        return None
    found = [c for g in state.generations if (c := certificate(state, g.number)) is not None]
    panels = (panel for panel in state.panels.values() if panel.name == "proxy")
    comparing = _charged_seconds(panels)
    return ProxyReport(
        label=terms.varied.label,
        asked=terms.agreement,
        is_check=plan.search is None,
        comparisons=tuple(_comparison(state, found, place) for place in range(len(found))),
        short=tuple(g.number for g in state.generations if not g.is_full),
        comparing_seconds=comparing,
        saved_seconds=_saved_seconds(state, comparing),
    )


def _comparison(state: RunState, found: list[Certificate], place: int) -> Comparison:
    own = found[place]
    end = found[place + 1].generation if place + 1 < len(found) else state.asked
    after = state.generations[own.generation + 1 : end]
    short = tuple(g.number for g in after if not g.is_full)
    return Comparison(
        certificate=own,
        holds=own.holds,
        short=short,
        over=_over(state, own, short) if own.holds and state.plan.search is not None else None,
    )


def _over(state: RunState, own: Certificate, short: tuple[int, ...]) -> str | None:
    """Why the generation after the last one that it covers is not covered."""
    number = (short[-1] if short else own.generation) + 1
    if number == state.plan.resolved.generations - 1:
        return "the last generation is always full"
    return why_over(state, own, number) if number <= len(state.told) else None


def _saved_seconds(state: RunState, comparing: float) -> float | None:
    """What the short generations would have taken in full, less what was spent instead."""
    full = [second for g in state.generations if g.is_full for second in seconds(g)]
    short = [g for g in state.generations if not g.is_full]
    if not full or not short:
        return None
    in_full = median(full) * sum(len(g.results()) for g in short)
    return in_full - _charged_seconds(short) - comparing


def _charged_seconds(batches: Iterable[Batch]) -> float:
    """Of devices, whatever came of it."""
    return sum(end.charged_ms for batch in batches for end in batch.ends()) / 1000
