"""A campaign of trainings as one run: its plan, and the pace of its first starts."""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor
from typing import ClassVar

from budgets.plan import Calibration, CampaignTerms, Devices, Envelope, Phase, Plan
from budgets.state import RunState
from orchestrator.capacity import Pace
from orchestrator.config import Config
from orchestrator.planning.names import check_run_id
from orchestrator.planning.plan import plan_of
from orchestrator.records.recommended import Point


@dataclass(frozen=True)
class CampaignRequest:
    """The conditions to compare; `config` says on which objective and within which limits."""

    config: Config
    campaign: CampaignTerms
    phase: ClassVar[Phase] = "campaign"

    def points(self) -> tuple[Point, ...]:
        """One for each condition."""
        return points_of(self.campaign, self.config.tuned.space.baseline)

    def name(self, kind: str) -> str:  # noqa: ARG002 - the same on every kind of device
        """The run's id: the campaign's name. Raises ValueError where that is no run's."""
        check_run_id(self.campaign.name)
        return self.campaign.name

    def plan(self, devices: Devices, calibration: Calibration | None) -> Plan:
        """One generation whose candidates are the conditions.

        Raises ValueError where a cap on evaluations does not pay for all of them: a campaign that
        is cut short compares nothing.
        """
        shape = Envelope(
            population=len(self.campaign.conditions),
            generations=1,
            seeds_per_candidate=len(self.campaign.seeds),
        )
        most, wanted = self.config.budget.max_evals, shape.evaluations
        if most is not None and most < wanted:
            raise ValueError(
                f"--max-evals {most} does not pay for the campaign's {wanted} "
                "evaluations: take fewer conditions or seeds"
            )
        return plan_of(
            self.config,
            devices,
            calibration,
            shape,
            self.phase,
            run_id=self.name(devices.kind),
            thresholds=self.config.thresholds,
            campaign=self.campaign,
        )

    def in_words(self, plan: Plan) -> str:
        shape = plan.resolved
        return (
            f"Campaign {self.campaign.name}: {shape.population} conditions on "
            f"{shape.seeds_per_candidate} seeds, {shape.evaluations} evaluations."
        )


def points_of(campaign: CampaignTerms, baseline: Point) -> tuple[Point, ...]:
    """The point of each condition: its own, or `baseline` where its settings tell it apart."""
    return tuple(baseline if c.point is None else c.point for c in campaign.conditions)


class Staggered(Pace):
    """Admits one more evaluation in flight every so many seconds, from the first question on.

    `now` is a clock that never runs backwards, in seconds.
    """

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds = seconds
        self._now = now
        self._began: float | None = None

    def admits(self, state: RunState) -> bool:
        """Whether one more may be reserved now."""
        at = self._now()
        if self._began is None:
            self._began = at
        if not self._seconds:
            return True
        return len(state.accounts.holds) < 1 + floor((at - self._began) / self._seconds)
