"""Closed generations with given scores."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from budgets.events import Settled, Status
from budgets.state import Batch
from orchestrator.search import Point, Search
from tests.ledgers import closed_batch

Scored = Callable[..., Batch]
Evaluated = Callable[..., Batch]


def closed(
    number: int, points: tuple[Point, ...], scores: Sequence[float | None], **more: Any
) -> Batch:
    """A closed generation with these scores; a candidate without one has failed.

    `more` are fields of it.
    """
    ends = []
    for candidate, score in enumerate(scores):
        place: dict[str, Any] = {
            "generation": number,
            "candidate": candidate,
            "seed": 5,
            "attempt": 1,
        }
        end = Settled(
            **place,
            status=Status.ERROR if score is None else Status.OK,
            score=score,
            charged_ms=1,
            seconds=0.001,
        )
        ends.append(end)
    return closed_batch(number, points, ends, **more)


@pytest.fixture(scope="session")
def scored() -> Scored:
    """`scored(number, points, scores)`: a closed generation."""
    return closed


@pytest.fixture(scope="session")
def evaluated() -> Evaluated:
    """`evaluated(search, failing=(), score=...)`: its next generation, some of which fails.

    Scored by the squared distance from 0.7 in every coordinate, unless told otherwise.
    """

    def evaluate(
        search: Search,
        failing: frozenset[int] = frozenset(),
        score: Callable[[Point], float] = lambda point: sum((u - 0.7) ** 2 for u in point),
        **more: Any,
    ) -> Batch:
        points = search.ask()
        scores = [None if i in failing else score(point) for i, point in enumerate(points)]
        return closed(search.generation, points, scores, **more)

    return evaluate
