"""Campaigns as tables of scores."""

from collections.abc import Mapping, Sequence

import pytest

from budgets.events import Status
from budgets.matrix import Cell, Matrix
from budgets.plan import CampaignTerms, Condition, Factor


def cell(score: object) -> Cell:
    """A healthy score, the `Status` of a failure, or None of what is still to come."""
    if score is None:
        return Cell(status="pending")
    if isinstance(score, Status):
        return Cell(status=str(score), note=f"it was {score}")
    assert isinstance(score, float)
    return Cell(status="ok", score=score, seconds=2.0)


class Campaigns:
    def of(
        self,
        rows: Mapping[str, Sequence[object]],
        factors: Mapping[str, Sequence[str]] | None = None,
        controls: Sequence[str] = (),
        levels: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Matrix:
        """Conditions by name, each with its cells by seed.

        Those of a factorial have their levels in their names, parted by commas; `levels` are
        those of controls, where they have any.
        """
        names = list(factors or {})
        given = levels or {}

        def condition(name: str) -> Condition:
            own = given.get(name, {})
            if factors and name not in controls:
                own = dict(zip(names, name.split(","), strict=True))
            return Condition(
                name=name, settings={}, knobs={}, levels=dict(own), control=name in controls
            )

        seeds = len(next(iter(rows.values())))
        terms = CampaignTerms(
            name="toy",
            conditions=tuple(map(condition, rows)),
            seeds=tuple(range(1, seeds + 1)),
            factors=tuple(Factor(name=n, levels=tuple(own)) for n, own in (factors or {}).items()),
        )
        cells = tuple(tuple(map(cell, scores)) for scores in rows.values())
        return Matrix(terms=terms, rows=cells)


@pytest.fixture(scope="session")
def campaigns() -> Campaigns:
    return Campaigns()
