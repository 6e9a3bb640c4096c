"""Which differences a campaign's picture shows: its effects, or its conditions against controls."""

from dataclasses import dataclass

from budgets.campaign.differences import Difference
from budgets.campaign.effects import CampaignReport, telling
from budgets.campaign.words import name_of

MOST_INTERACTIONS = 24


@dataclass(frozen=True)
class Bar:
    """A difference with its name, and what its percents are of."""

    name: str
    difference: Difference
    reference: str

    def values(
        self, *, is_relative: bool
    ) -> tuple[float, float, float] | tuple[float, None, None] | None:
        """Mean and bounds, in percent or in the score's unit; None where there is none."""
        own = self.difference
        mean, lower, upper = own.mean, own.lower, own.upper
        if is_relative:
            mean, lower, upper = own.percent, own.percent_lower, own.percent_upper
        if mean is None:
            return None
        return (mean, None, None) if lower is None or upper is None else (mean, lower, upper)


def bars_of(report: CampaignReport) -> list[Bar]:
    """The effects, interactions last; of a campaign without factors every comparison."""
    if report.effects:
        mains = [effect for effect in report.effects if not effect.is_interaction]
        both = [effect for effect in report.effects if effect.is_interaction]
        shown = [*mains, *telling(both, MOST_INTERACTIONS)]
        return [Bar(name_of(e), e.difference, report.reference_of) for e in shown]
    pairs = [(row, one) for row in report.rows for one in row.comparisons]
    is_one = len({one.control for _, one in pairs}) == 1
    return [
        Bar(row.name if is_one else f"{row.name} - {one.control}", one.difference, one.control)
        for row, one in pairs
    ]


def bars_title(report: CampaignReport) -> str:
    """What they are."""
    if not report.effects:
        return "Against the control, paired by seed"
    both = [effect for effect in report.effects if effect.is_interaction]
    left_out = len(both) - len(telling(both, MOST_INTERACTIONS))
    more = f", {left_out} more in effects.json" if left_out else ""
    return f"Effects, paired by seed{more}"
