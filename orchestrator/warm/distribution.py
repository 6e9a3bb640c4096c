"""The distribution that a search begins with where another one has learned something."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import isclose, sqrt
from statistics import fmean
from typing import TYPE_CHECKING

from budgets.state import RunState
from budgets.terms import Plan, SearchTerms
from budgets.verdict.finalists import standing
from orchestrator.planning.request import Request, first_step
from orchestrator.records.planned import space_of

if TYPE_CHECKING:
    from orchestrator.search.landscape import Landscape, Matrix

LEAST_STEP, MOST_STEP = 0.05, 0.2
"""Of a search that begins where another one ended: that one's last step size, within these. Below,
the noise of a generation hides what its candidates differ in; above, what was learned is lost."""

SAME_PLACE = 1e-3
"""Further apart are two means only if they are of two descents."""


@dataclass(frozen=True)
class Beginning:
    """Scale and shape of a search's first distribution; no shape is that of a ball."""

    sigma0: float
    shape: "Matrix | None" = None


def within(step: float) -> float:
    return min(max(step, LEAST_STEP), MOST_STEP)


def begin(
    seen: "Landscape",
    earlier: Plan,
    request: Request,
    unlearned: Collection[str],
) -> Beginning:
    """For the search of `request`, after that of the plan `earlier` has come to `seen`.

    A knob of which nothing can be taken over, `unlearned`, gets the first step. A step that was
    asked for is that of these, or of all knobs where there are none.
    """
    from orchestrator.warm.blocks import blocks  # imports numpy

    step, asked = within(seen.scale), request.sigma0
    searched, names = names_of(earlier), [k.name for k in request.objective.space.knobs]
    if list(names) == list(searched) and not unlearned:
        return Beginning(step if asked is None else asked, seen.shape)
    kept = [place for place, name in enumerate(searched) if name not in unlearned]
    if not set(names) - set(unlearned):
        return Beginning(first_step(request))
    shape = [[seen.shape[i][j] for j in kept] for i in kept]
    known = [searched[place] for place in kept]
    begun = blocks(shape, known, names, sigma=step, sigma0=first_step(request))
    beginning = Beginning(begun.sigma0, begun.shape)
    return beginning if unlearned or asked is None else replace(beginning, sigma0=asked)


def names_of(plan: Plan) -> list[str]:
    """The knobs that it searches."""
    return [knob.name for knob in space_of(plan).knobs]


def foreseen(state: RunState, asked: float | None) -> Beginning:
    """The same as far as the records tell without replaying them: the shape is missing."""
    told = standing(state)
    step = within(told[-1].sigma if told else MOST_STEP)
    return Beginning(step if asked is None else asked)


def scale_again(
    asked: float | None, recorded: Plan, search: SearchTerms, unlearned: Collection[str]
) -> float:
    """The scale of a recorded beginning, had its unlearned knobs the first step asked for now."""
    names = names_of(recorded)
    if asked is None:
        return search.sigma0
    if not unlearned or search.shape is None:
        return asked
    variances = [search.sigma0**2 * row[place] for place, row in enumerate(search.shape)]
    new = [place for place, name in enumerate(names) if name in unlearned]
    if all(isclose(sqrt(variances[place]), asked) for place in new):
        return search.sigma0
    return sqrt(fmean(asked**2 if i in new else v for i, v in enumerate(variances)))


def learned(state: RunState, *, accept_drift: bool) -> "Landscape":
    """What the descent that a recorded search stands by has come to, replayed.

    Where it had converged, its last distribution is that of the generation before: the search
    begins anew at once. Raises ReplayError where the replay diverges.
    """
    from orchestrator.search import Search  # imports cma

    assert state.plan.search is not None
    search = Search(state.plan.search, state.plan.resolved.population)
    seen = [search.landscape()]
    for generation in state.told[: standing(state)[-1].generation + 1]:
        search.replay([generation], accept_drift=accept_drift)
        seen.append(search.landscape())
    return stood_at(state, seen)


def stood_at(state: RunState, seen: "Sequence[Landscape]") -> "Landscape":
    """Of the landscapes at first and after each generation the last of the descent that counts."""
    found = seen[0]
    for told in standing(state):
        if told.generation + 1 < len(seen):
            now = seen[told.generation + 1]
            found = now if is_there(now.favourite, told.favourite) else found
    return found


def is_there(point: Sequence[float], other: Sequence[float]) -> bool:
    """Whether a distribution that favours the one point is where the other was recorded."""
    return all(abs(a - b) < SAME_PLACE for a, b in zip(point, other, strict=True))
