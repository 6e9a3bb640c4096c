"""Which evaluation of its batch it is, in words."""

from budgets.events import Late, Reserved, Settled
from budgets.liveness import label
from budgets.state import Generation, RunState

Place = Reserved | Settled | Late


def which(state: RunState, place: Place) -> str:
    """`candidate 2`; an arm and its seed; a check's knob and end, a condition."""
    batch, seed = state.batch(place), f"seed {place.seed}"
    if place.panel is not None:
        arm = state.panels[place.panel, place.generation].arms[place.candidate].name
        return f"{arm}, {seed}"
    if state.plan.search is not None or state.plan.proxy is not None:
        several = len(batch.seeds_of(place.candidate)) > 1
        return f"candidate {place.candidate}{f', {seed}' * several}"
    assert isinstance(batch, Generation), "what is no panel is a generation"
    return f"{label(state.plan, batch, place.candidate)}, {seed}"
