"""What must hold of the evaluations beside a search, and of what is decided."""

from collections.abc import Collection

from budgets.accounts import MS_PER_HOUR
from budgets.course import still_apart
from budgets.events import (
    Decided,
    Event,
    Fired,
    GenerationAsked,
    PanelAsked,
    Reserved,
    Settled,
)
from budgets.state import Panel, RunState
from tests.simulation.journal import Evaluation
from tests.simulation.must import must
from tests.simulation.reference import Reference


def observe(
    state: RunState,
    event: Event,
    in_flight: Collection[Evaluation],
    final: Collection[Evaluation],
    reference: Reference | None,
) -> None:
    """To be called after each record, with the books of the judge. Raises InvariantError."""
    match event:
        case GenerationAsked():
            _is_fresh(state)
        case PanelAsked():
            _is_fresh(state)
            _is_the_same(state, state.panels[event.panel, event.number], reference)
        case Reserved():
            _adds_up(state, in_flight, final)
            if event.panel is None:
                _leaves_its_due(state)
        case Settled():
            _adds_up(state, in_flight, final)
        case Fired() if event.decision == "stop":
            must(not in_flight, f"{event.rule} stops the run, and its holds may be given back")
        case Decided():
            must(not in_flight, f"{sorted(in_flight, key=str)} are in flight, and it is decided")
            _is_decided(state, reference)
        case _:
            pass


def stops(state: RunState) -> None:
    """To be called when a cap has stopped the run. Raises InvariantError.

    What outlived its kill and its reservation may have used what was set aside to compare.
    """
    is_comparable = state.plan.confirmation is not None and bool(state.told)
    is_comparable = is_comparable and not state.accounts.overrun_ms
    is_compared = state.panel("finalists") is not None
    must(is_compared or not is_comparable, "it is stopped, and what it found is never compared")


def ends(state: RunState, final: Collection[Evaluation], reference: Reference | None) -> None:
    """To be called when the run is concluded. Raises InvariantError."""
    for panel in state.panels.values():
        _is_the_same(state, panel, reference)
    if state.plan.confirmation is not None:
        must(state.decided is not None, "the run is concluded, and nothing is decided")
        _is_decided(state, reference)
    wanted = {
        (panel.name, panel.number, *key)
        for panel in state.panels.values()
        for key in panel.evaluations()
    }
    found = {evaluation for evaluation in final if evaluation[0] is not None}
    must(found == wanted, f"{len(found)} of {len(wanted)} results beside the search are there")


def _is_fresh(state: RunState) -> None:
    """No seed that the search scored on decides anything, nor one that a finalist was picked on."""
    searched = {seed for generation in state.generations for seed in generation.seeds}
    seeds = {name: {s for own in p.seeds for s in own} for (name, _), p in state.panels.items()}
    for name, own in seeds.items():
        must(not own & searched, f"the {name} panel has a seed of the search's")
    picked = seeds.get("finalists", set()) & seeds.get("winner", set())
    must(not picked, "the winner is judged on seeds that it was picked on")


def is_comparable(state: RunState | None, event: Reserved | Settled, reference: Reference) -> bool:
    """Whether the undisturbed run did the same there: not what follows from less of a search."""
    assert state is not None, "a record was read"
    return event.panel in (None, "reference") or _is_whole(state, reference)


def _is_whole(state: RunState, reference: Reference) -> bool:
    """Whether the search found all that the undisturbed one did: no cap ended it early."""
    return len(state.told) == len(reference.told)


def _is_the_same(state: RunState, panel: Panel, reference: Reference | None) -> None:
    if reference is not None and (panel.name == "reference" or _is_whole(state, reference)):
        expected = reference.panels[panel.name, panel.number]
        must(panel.arms == expected.arms, f"the {panel.name} panel compares other arms")
        must(panel.seeds == expected.seeds, f"the {panel.name} panel has other seeds")


def _is_decided(state: RunState, reference: Reference | None) -> None:
    for panel in state.panels.values():
        must(panel.closed, f"the {panel.name} panel is not closed, and it is decided")
    if reference is None or not _is_whole(state, reference):
        return
    own, other = state.decided, reference.decided
    if own is not None and other is not None and _left_its_rung_out(state, reference):
        must(own.grade == "go", f"{own.grade} without the rung that {other.grade} had")
        same = (own.gain, own.lower) == (other.gain, other.lower)
        must(same, f"a gain of {own.gain} instead of {other.gain}")
        return
    must(own == other, f"{own} instead of {other}")


def _left_its_rung_out(state: RunState, reference: Reference) -> bool:
    """A cap had no room for it."""
    return ("rung", 0) in reference.panels and state.panel("rung") is None


def _adds_up(
    state: RunState, in_flight: Collection[Evaluation], final: Collection[Evaluation]
) -> None:
    """Evaluations of the search and beside it are counted apart, and neither are too many."""
    own, apart = _counted(final)
    accounts, plan = state.accounts, state.plan
    must((accounts.evaluations, accounts.apart) == (own, apart), "the evaluations do not add up")
    running, beside = _counted(in_flight)
    must(own + running <= plan.resolved.evaluations, "more evaluations than E")
    must(apart + beside <= plan.apart, "more evaluations beside the search than planned")


def _counted(evaluations: Collection[Evaluation]) -> tuple[int, int]:
    apart = sum(panel is not None for panel, *_ in evaluations)
    return len(evaluations) - apart, apart


def _leaves_its_due(state: RunState) -> None:
    """The search takes nothing of what the verdict is still expected to need."""
    needs, accounts = still_apart(state), state.accounts
    used_ms = accounts.device_ms + accounts.reserved_device_ms + needs.device_hours * MS_PER_HOUR
    must(used_ms <= accounts.device_cap_ms + 1e-3, "the search takes the verdict's device time")
    if accounts.caps.hours is not None:
        hours = accounts.committed_wall_ms / MS_PER_HOUR + needs.hours
        must(hours <= accounts.caps.hours + 1e-9, "the search takes the verdict's hours")
    if accounts.calendar is not None:
        now_ms, longest_ms = accounts.calendar.now_ms, state.plan.limits.reserve_ms
        end_ms = now_ms + longest_ms + needs.hours * MS_PER_HOUR
        due_ms = accounts.calendar.deadline_ms
        must(end_ms <= due_ms + 1e-3, "the search takes the verdict's time before the deadline")
