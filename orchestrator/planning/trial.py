"""One imagined search on a landscape that has so much to gain, up to its verdict.

The search is the plan's own, the comparison and its rules those of every run
(`orchestrator.search`, `budgets.verdict`); only the scores are drawn, and nothing fails.
"""

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from budgets.accounts import Accounts
from budgets.events import Reserved, Settled, Status
from budgets.state import Batch, Generation, Panel, RunState, Try
from budgets.terms import PanelName, Plan, SearchTerms
from budgets.verdict.conditions import conditions
from budgets.verdict.finalists import BASELINE, winner
from budgets.verdict.gains import winner_gain
from orchestrator.planning.panels import panel
from orchestrator.planning.seeds import evaluation_seeds

if TYPE_CHECKING:
    from orchestrator.search import Search

Point = tuple[float, ...]


@dataclass(frozen=True)
class Noise:
    """Standard deviations of one evaluation's score, as shares of the baseline's."""

    own: float  # differs between two points on one seed
    shared: float  # a seed adds it to all points alike


class Landscape:
    """A quadratic, 1 where the search begins and 1 - `gain` at its lowest, a random point.

    Its curvatures along the knobs that matter, a random choice, lie geometrically between 1 and
    1 / `conditioning`; the others do nothing.
    """

    def __init__(
        self, start: Point, gain: float, share: float, conditioning: float, rng: np.random.Generator
    ) -> None:
        dimension = len(start)
        count = max(1, ceil(share * dimension))
        curvatures = np.zeros(dimension)
        curvatures[rng.permutation(dimension)[:count]] = np.geomspace(1, 1 / conditioning, count)
        self._curvatures, self._gain = curvatures, gain
        self._lowest = rng.random(dimension)
        self._scale = self._distance(np.array(start))

    def _distance(self, point: NDArray[np.float64]) -> float:
        return float(self._curvatures @ np.square(point - self._lowest))

    def score(self, point: Point) -> float:
        """Without noise."""
        return 1 - self._gain * (1 - self._distance(np.array(point)) / self._scale)


@dataclass(frozen=True)
class Ending:
    """What an imagined search came to."""

    shown: bool  # the winner's gain is more than chance on fresh seeds
    go: bool
    true_gain: float  # of the winner


class _Scores:
    """Draws scores: common random numbers, so a seed adds the same to all points."""

    def __init__(self, landscape: Landscape, noise: Noise, rng: np.random.Generator) -> None:
        self.landscape, self._noise, self._rng = landscape, noise, rng
        self._of_seed: dict[int, float] = {}

    def fill(self, batch: Batch, points: tuple[Point, ...]) -> None:
        """Settle every evaluation of the batch, as healthy."""
        for candidate, seed in batch.evaluations():
            score = self.landscape.score(points[candidate]) + self._drawn(seed)
            batch.tries[candidate, seed] = (_settled(batch, candidate, seed, score),)

    def _drawn(self, seed: int) -> float:
        if seed not in self._of_seed:
            self._of_seed[seed] = self._noise.shared * float(self._rng.standard_normal())
        return self._of_seed[seed] + self._noise.own * float(self._rng.standard_normal())


def _settled(batch: Batch, candidate: int, seed: int, score: float) -> Try:
    reserved = Reserved(
        panel=batch.panel, generation=batch.number, candidate=candidate, seed=seed,
        attempt=1, reserve_ms=0,
    )  # fmt: skip
    settled = Settled(
        panel=batch.panel, generation=batch.number, candidate=candidate, seed=seed, attempt=1,
        status=Status.OK, score=score, charged_ms=0, seconds=0.0,
    )  # fmt: skip
    return Try(0, reserved, settled)


def imagined(
    plan: Plan, search: SearchTerms, landscape: Landscape, noise: Noise, rng: np.random.Generator
) -> Ending:
    """How the plan's search ends there, proposing candidates as `search` says.

    Its controls, its rung and a proxy are left out: no Go depends on them.
    """
    from orchestrator.search import Search  # imports cma

    confirmation = plan.confirmation
    assert confirmation is not None, "a search without a comparison shows nothing"
    bare = confirmation.model_copy(
        update={"controls": (), "control_seeds": 0, "rung": None, "incumbent": None}
    )
    changed = {"confirmation": bare, "proxy": None, "search": search, "calibration": None}
    own = plan.model_copy(update=changed)
    state = RunState(own, own, "", 0, "", 0, Accounts(own.caps))
    scores = _Scores(landscape, noise, rng)
    _search(state, Search(search, own.resolved.population), scores)
    for name in _PANELS:
        _compare(state, name, scores)
    return _ending(state, landscape)


_PANELS: tuple[PanelName, ...] = ("reference", "finalists", "winner")


def _search(state: RunState, search: "Search", scores: _Scores) -> None:
    for number in range(state.plan.resolved.generations):
        points = search.ask()
        generation = Generation(
            number=number,
            points=points,
            seeds=evaluation_seeds(state.plan, search.seeded(number)),
            distances=search.distances(),
        )
        scores.fill(generation, points)
        generation.told = search.tell(generation)
        state.told.append(generation)


def _compare(state: RunState, name: PanelName, scores: _Scores) -> None:
    """One panel. The baseline is where the search began: there the landscape is 1."""
    confirmation, search = state.plan.confirmation, state.plan.search
    assert confirmation is not None
    assert search is not None
    asked = panel(state, name, confirmation)
    points = tuple(search.start if arm.name == BASELINE else arm.point for arm in asked.arms)
    made = Panel(number=0, points=points, name=name, arms=asked.arms, seeds=asked.seeds)
    scores.fill(made, points)
    state.panels[name, 0] = made


def _ending(state: RunState, landscape: Landscape) -> Ending:
    best, measured = winner(state), winner_gain(state)
    assert best is not None
    assert measured is not None
    return Ending(
        shown=measured.is_shown,
        go=all(condition.met for condition in conditions(state)),
        true_gain=1 - landscape.score(best.point),
    )
