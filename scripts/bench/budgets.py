"""What a race may spend: evaluations on so many workers, which is a number of rounds."""

from dataclasses import dataclass, replace

CHECKPOINTS = (0.125, 0.25, 0.375, 0.5, 0.75, 1.0)
BEYOND = (1.5, 2.0, 3.0, 4.0)
"""Shares of a budget at which a recommendation is looked at; and how far the reference goes on."""

DEAR_CHECKPOINTS = (0.5, 1.0)
DEAR_BEYOND = (2.0,)
"""The same where a look is as dear as several evaluations."""


@dataclass(frozen=True, slots=True)
class Budget:
    """E evaluations on W workers: E / W rounds of at most W evaluations each."""

    name: str
    evaluations: int
    workers: int
    population: int  # of a search that wants one: the tier's own
    whole: str = ""  # the tier that it is a share of, whose reference it is measured against

    @property
    def rounds(self) -> int:
        return self.evaluations // self.workers

    def alone(self) -> "Budget":
        """The same evaluations one after another."""
        return replace(self, workers=1)

    @property
    def generations(self) -> int:
        return self.evaluations // self.population


BUDGETS = {
    budget.name: budget
    for budget in (
        Budget("min", 16, 4, 8),
        Budget("target", 120, 6, 12),
        Budget("max", 480, 8, 16),
        Budget("phase2", 720, 8, 24),
        Budget("target40", 48, 6, 12, "target"),
        Budget("target25", 30, 6, 10, "target"),
    )
}
"""The tiers, and two shares of tier target: 40 % and 25 % of what it spends."""
