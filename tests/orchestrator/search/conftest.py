"""Closed generations with given scores."""

from collections.abc import Callable, Sequence
from typing import Any

from budgets.events import Settled, Status
from budgets.state import Batch
from orchestrator.search import Search
from orchestrator.search.surrogate import Point
from tests.ledgers import closed_batch


def closed(
    number: int, points: tuple[Point, ...], scores: Sequence[float | None], **fields: Any
) -> Batch:
    """A closed generation with these scores; a candidate without one has failed."""
    ends = [
        Settled(
            generation=number,
            candidate=candidate,
            seed=5,
            attempt=1,
            status=Status.ERROR if score is None else Status.OK,
            score=score,
            charged_ms=1,
            seconds=0.001,
        )
        for candidate, score in enumerate(scores)
    ]
    return closed_batch(number, points, ends, **fields)


def bowl(point: Point) -> float:
    return sum((u - 0.7) ** 2 for u in point)


def evaluated(
    search: Search,
    failing: frozenset[int] = frozenset(),
    score: Callable[[Point], float] = bowl,
) -> Batch:
    """The search's next generation, some of which fails."""
    points = search.ask()
    scores = [None if i in failing else score(point) for i, point in enumerate(points)]
    return closed(search.generation, points, scores)
