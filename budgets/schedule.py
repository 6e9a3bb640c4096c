"""What a run does next: search, compare on fresh seeds, decide; and what that still needs.

The search's own evaluations come first. The reference panel (the baseline and the controls on the
confirmation's seeds) is known before the search begins, so its evaluations fill the slots that a
generation leaves idle; the other panels follow from what was found.
"""

from math import ceil
from typing import Literal, NamedTuple

from budgets.accounts import MS_PER_HOUR
from budgets.plan import Calibration, Confirmation, Rung
from budgets.state import Batch, Panel, RunState
from budgets.verdict.decision import is_promising
from budgets.verdict.finalists import has_winner

Step = Literal["reference", "proxy", "generation", "finalists", "winner", "rung", "decide", "over"]

ENDS_THE_SEARCH = ("budget", "patience")
"""Rules that stop the search, and leave what it found to be confirmed."""


class Needs(NamedTuple):
    """What the evaluations beside the search are still expected to take."""

    evaluations: int
    device_hours: float
    hours: float


NOTHING = Needs(0, 0.0, 0.0)


def next_step(state: RunState) -> Step:
    """What the run does next, as long as no rule holds it up."""
    plan = state.plan
    if state.decided is not None or state.concluded is not None:
        return "over"
    if plan.proxy is not None and state.current is not None and state.panel("proxy") is None:
        return "proxy"
    if plan.search is None:
        unfinished = state.finished < plan.resolved.generations or pairing(state) is not None
        return "generation" if unfinished else "over"
    if plan.confirmation is not None and state.panel("reference") is None and not state.told:
        return "reference"
    if not search_is_over(state):
        return "generation"
    return "over" if plan.confirmation is None else _after_the_search(state, plan.confirmation)


def _after_the_search(state: RunState, confirmation: Confirmation) -> Step:
    """The first panel that was not closed; the rung only for a winner that deserves it.

    Finalists are compared, and controls given the reference's seconds, when both panels are closed.
    """
    if not _is_closed(state.panel("finalists")):
        return "finalists"
    if not _is_closed(state.panel("reference")):
        return "reference"
    if not _is_closed(state.panel("winner")):
        return "winner" if has_winner(state) else "decide"
    if state.panel("rung") is not None:
        return "decide" if _is_closed(state.panel("rung")) else "rung"
    return "rung" if _fits(state, confirmation.rung) and is_promising(state) else "decide"


def _fits(state: RunState, rung: Rung | None) -> bool:
    """Whether there is a rung, and all of it fits under every cap: it is no part of a Go.

    The last attempt at it must find its whole reservation free.
    """
    if rung is None:
        return False
    plan, length = state.plan, rung.varied.length
    others, needs = 2 * rung.seeds - 1, NOTHING
    if plan.calibration is not None:
        needs = expected(others, others * length, plan.calibration, plan.devices.count)
    reserve_ms, aside = plan.limits.stretched(length).reserve_ms, (needs.device_hours, needs.hours)
    return state.accounts.refusal(reserve_ms, apart=True, aside=aside) is None


def pairing(state: RunState) -> Panel | None:
    """The short evaluations that a check compares with its full ones, until all are settled."""
    panel = state.panel("proxy")
    return None if panel is None or panel.closed else panel


def can_ask(state: RunState) -> bool:
    """Whether the next generation's points are known now."""
    return state.current is None and next_step(state) == "generation"


def _is_closed(panel: Panel | None) -> bool:
    return panel is not None and panel.closed


def search_is_over(state: RunState) -> bool:
    """Whether no further generation will be told, whatever a cap allows later."""
    if state.plan.search is None:
        return False
    if state.panel("finalists") is not None:
        return True
    if state.finished == state.plan.resolved.generations:
        return True
    can_be_confirmed = state.plan.confirmation is not None and bool(state.told)
    return state.ended is not None and can_be_confirmed


def at_work(state: RunState) -> list[Batch]:
    """Batches with evaluations to do now: what the run waits for first, then what fills slots."""
    panels = [panel for panel in state.panels.values() if not panel.closed]
    if search_is_over(state) or state.current is None:
        return list(panels)
    return [state.current, *panels]


def awaited(state: RunState) -> list[Batch]:
    """What must be closed before the run can go on: the generation, or after the search all.

    In a check of a proxy, once its full evaluations are settled, the short ones.
    """
    if search_is_over(state):
        return at_work(state)
    current, pairs = state.current, pairing(state)
    if current is not None and (state.plan.search is not None or not current.closed):
        return [current]
    return [] if pairs is None else [pairs]


def still_for_the_verdict(state: RunState) -> Needs:
    """What the panels still need, as far as they are planned and not settled.

    Nothing where no time of an evaluation is known. The last attempt must find its whole
    reservation free; one of the rung, which is longer, may not: the rung is left out then.
    """
    return _needs(state, _for_the_verdict(state))


def length_apart(state: RunState) -> float:
    """The verdict's evaluations that are not settled yet, in evaluations of the search."""
    return sum(length for _, length in _for_the_verdict(state))


def _needs(state: RunState, panels: list[tuple[int, float]]) -> Needs:
    plan, calibration = state.plan, state.plan.calibration
    if calibration is None or not panels:
        return NOTHING
    parts = [expected(*panel, calibration, plan.devices.count) for panel in panels]
    last = plan.limits.reserve_ms / MS_PER_HOUR
    return Needs(
        sum(part.evaluations for part in parts),
        sum(part.device_hours for part in parts) + last,
        sum(part.hours for part in parts) + last,  # each panel begins when the last one is closed
    )


def _for_the_verdict(state: RunState) -> list[tuple[int, float]]:
    """Of each panel how many evaluations are not settled, and their length together."""
    confirmation = state.plan.confirmation
    if confirmation is None or state.decided is not None:
        return []
    sizes = confirmation.sizes().items()
    parts = [whole if (p := state.panel(name)) is None else left(p) for name, whole in sizes]
    return [part for part in parts if part[0]]


def expected(count: int, length: float, calibration: Calibration, devices: int) -> Needs:
    """What so many evaluations, `length` whole ones together, are expected to take."""
    device_hours = length * calibration.median_seconds / 3600
    rounds = ceil(count / devices) * (length / count)
    return Needs(count, device_hours, rounds * calibration.median_seconds / 3600)


def left(batch: Batch) -> tuple[int, float]:
    """How many of its evaluations are not settled, and their length together."""
    owed = [c for c, seed in batch.evaluations() if batch.result(c, seed) is None]
    return len(owed), sum(batch.length(candidate) for candidate in owed)
